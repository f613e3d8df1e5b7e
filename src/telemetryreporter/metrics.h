// Metrics of this library: name and help text of each (docs/metrics.md).
#pragma once

#include "base/metrics.h"

namespace nos::telemetry {

inline constexpr MetricFamily kSent{MetricFamily::Kind::kCounter, "nos_telemetry_envelopes_total",
                                    "Number of envelopes sent to the telemetry server, by result "
                                    "(acknowledged, failed or set_aside)."};
inline constexpr MetricFamily kRefused{MetricFamily::Kind::kCounter,
                                       "nos_telemetry_refused_records_total",
                                       "Number of records that the telemetry server rejected."};

}  // namespace nos::telemetry
