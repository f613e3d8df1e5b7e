// Counts and times the requests that pass through a transport.
#pragma once

#include <memory>
#include <vector>

#include "kube/metrics.h"
#include "kube/transport.h"

namespace nos::kube {

// Thread-safe.
class MeteredTransport final : public Transport {
 public:
  // Both must outlive this.
  MeteredTransport(Transport& transport, Metrics& metrics)
      : transport_(transport), metrics_(metrics) {}

  Result<ApiResponse> Do(const ApiRequest& request) override;
  Result<std::unique_ptr<WatchStream>> Watch(const ApiRequest& request) override;
  // Times the whole batch as one request.
  std::vector<Result<ApiResponse>> DoAll(const std::vector<ApiRequest>& requests) override;

 private:
  Transport& transport_;
  Metrics& metrics_;
};

}  // namespace nos::kube
