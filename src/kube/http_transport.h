// Requests to a real API server over HTTP/1.1, TLS verified (libcurl).
//
// Thread-safe. Each watch has a thread of its own that ends when the stream is destroyed.
#pragma once

#include <memory>

#include "base/clock.h"
#include "kube/kubeconfig.h"
#include "kube/transport.h"

namespace nos::kube {

class HttpTransport final : public Transport {
 public:
  explicit HttpTransport(Endpoint endpoint, Duration timeout = std::chrono::seconds(30));
  Result<ApiResponse> Do(const ApiRequest& request) override;
  Result<std::unique_ptr<WatchStream>> Watch(const ApiRequest& request) override;

 private:
  const Endpoint endpoint_;
  const Duration timeout_;
};

}  // namespace nos::kube
