// Metrics of this library: name and help text of each (docs/metrics.md).
#pragma once

#include "base/metrics.h"

namespace nos::exports {

inline constexpr MetricFamily kRequests{MetricFamily::Kind::kCounter,
                                        "nos_telemetry_export_requests_total",
                                        "Number of requests to other systems, by export and "
                                        "result: ok, refused (permanently rejected) or failed."};
inline constexpr MetricFamily kDropped{
    MetricFamily::Kind::kCounter, "nos_telemetry_export_dropped_total",
    "Number of items not exported, by export and reason: samples and rows that are rejected or "
    "late, envelopes dropped because the backlog exceeded its limit."};
inline constexpr MetricFamily kLag{MetricFamily::Kind::kGauge, "nos_telemetry_export_lag_seconds",
                                   "Age of the oldest undelivered record in seconds, by export."};

}  // namespace nos::exports
