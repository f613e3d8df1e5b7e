// Counts and times the requests that pass through it.
#pragma once

#include <memory>
#include <vector>

#include "base/metrics.h"
#include "kube/transport.h"

namespace nos::kube {

inline constexpr MetricFamily kApiRequests{
    MetricFamily::Kind::kCounter, "nos_api_requests_total",
    "Requests to the API server by verb and HTTP status; code 0 when no answer came."};
inline constexpr MetricFamily kApiRequestDuration{
    MetricFamily::Kind::kDuration, "nos_api_request_duration_seconds",
    "How long requests to the API server took, repetitions included, watches left out."};

// Thread-safe.
class MeteredTransport final : public Transport {
 public:
  // Both must outlive this.
  MeteredTransport(Transport& transport, Metrics& metrics)
      : transport_(transport), metrics_(metrics) {}

  Result<ApiResponse> Do(const ApiRequest& request) override;
  Result<std::unique_ptr<WatchStream>> Watch(const ApiRequest& request) override;
  // Timed as one.
  std::vector<Result<ApiResponse>> DoAll(const std::vector<ApiRequest>& requests) override;

 private:
  Transport& transport_;
  Metrics& metrics_;
};

}  // namespace nos::kube
