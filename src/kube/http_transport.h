// Requests to a real API server over HTTP/1.1, TLS verified (libcurl).
//
// One thread drives all transfers: connections are kept and shared, many requests and watches are
// in flight at once. Callers wait for their own answers. An answer that says "busy" and for
// how long is waited out and asked again within the request's time, many at once; a refused
// identity is renewed once. A watch that says nothing for long has ended: API servers send a
// bookmark about every minute.
//
// Thread-safe. Must outlive its streams.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "kube/connection.h"
#include "kube/transport.h"

namespace nos::kube {

struct HttpOptions {
  Duration timeout = std::chrono::seconds(30);  // of a request, waits and repetitions included
  Duration watch_silence = std::chrono::seconds(150);
  // Requests and watches begun, so that a fault here cannot drown the server.
  double requests_per_second = 100;
  int burst = 200;
  size_t max_answer_bytes = size_t{1} << 30;  // once decompressed; what is longer is an error
  int max_connections = 50;  // kept when idle; DoAll has as many requests in flight
  // Asked when a connection is there and the next thing is to send a request that is no GET; no: it
  // is not sent (kUnavailable). Whatever it waited for before, who must not write any more does
  // not. A request that has been sent may still take effect: writers give the version of what they
  // change. Called on the transport's thread; empty: always.
  std::function<bool()> may_write{};
};

class HttpTransport final : public Transport {
 public:
  explicit HttpTransport(ConnectionConfig config, HttpOptions options = {});
  ~HttpTransport() override;

  Result<ApiResponse> Do(const ApiRequest& request) override;
  Result<std::unique_ptr<WatchStream>> Watch(const ApiRequest& request) override;
  std::vector<Result<ApiResponse>> DoAll(const std::vector<ApiRequest>& requests) override;

 private:
  class Stream;
  using Deadline = std::chrono::steady_clock::time_point;

  Deadline DeadlineOf(const ApiRequest& request) const;
  Result<std::shared_ptr<class HttpTransfer>> Start(const ApiRequest& request, Deadline deadline);
  Result<ApiResponse> Finish(const ApiRequest& request,
                             Result<std::shared_ptr<HttpTransfer>> transfer, Deadline deadline);

  Connection connection_;
  const HttpOptions options_;
  const std::unique_ptr<class HttpLoop> loop_;
};

}  // namespace nos::kube
