// Metrics of this library: name and help text of each (docs/metrics.md).
#pragma once

#include "base/metrics.h"

namespace nos::kube {

inline constexpr MetricFamily kApiRequests{
    MetricFamily::Kind::kCounter, "nos_api_requests_total",
    "Total number of requests to the API server by verb and HTTP status; code 0: no answer."};
inline constexpr MetricFamily kApiRequestDuration{
    MetricFamily::Kind::kDuration, "nos_api_request_duration_seconds",
    "Duration of requests to the API server, including repetitions, without watches."};

}  // namespace nos::kube
