// Requests to a real API server over HTTP/1.1, TLS verified (libcurl).
//
// One thread drives all transfers: connections are kept and shared, many requests and watches are
// in flight at once. Callers wait for their own answers. An answer with Retry-After is repeated
// after that time, within the request's time limit; many requests can wait in this way at once. A
// refused identity is renewed once. A watch that is silent for long counts as ended: API servers
// send a bookmark about every minute.
//
// Thread-safe. Must outlive its streams.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "kube/connection.h"
#include "kube/transport.h"

namespace nos::kube {

struct HttpOptions {
  Duration timeout = std::chrono::seconds(30);  // of a request, including waits and repetitions
  Duration watch_silence = std::chrono::seconds(150);
  // Limits the rate of started requests and watches, so that a fault here cannot overload the
  // server.
  double requests_per_second = 100;
  int burst = 200;
  size_t max_answer_bytes = size_t{1} << 30;  // after decompression; a longer answer is an error
  // Limit of the events of one watch that wait to be read. Beyond it the watch ends, and a
  // reflector resumes it after the last event that it has read.
  size_t max_watch_bytes = size_t{64} << 20;
  int max_connections = 50;  // kept while idle; also the number of concurrent requests of DoAll
  // Called when a connection is ready and a request other than GET is about to be sent. False: the
  // request is not sent (kUnavailable), so a replica that lost leadership while it waited cannot
  // write. A request that has been sent may still take effect, therefore writers include the
  // resourceVersion of the object. Called on the transport's thread; empty: always allowed.
  std::function<bool()> may_write{};
};

class HttpTransport final : public Transport {
 public:
  explicit HttpTransport(ConnectionConfig config, HttpOptions options = {});
  ~HttpTransport() override;

  Result<ApiResponse> Do(const ApiRequest& request) override;
  Result<std::unique_ptr<WatchStream>> Watch(const ApiRequest& request) override;
  std::vector<Result<ApiResponse>> DoAll(const std::vector<ApiRequest>& requests) override;

  // The time on the server's clock, for ages of its objects: the header Date of the last answer to
  // a request, which has whole seconds, and the time since. Nullopt: no answer had one.
  std::optional<Time> ServerTime() const;

 private:
  class Stream;
  struct Dated {
    Time date;
    std::chrono::steady_clock::time_point at;  // when the answer was read
  };
  using Deadline = std::chrono::steady_clock::time_point;

  Deadline DeadlineOf(const ApiRequest& request) const;
  Result<std::shared_ptr<class HttpTransfer>> Start(const ApiRequest& request, Deadline deadline);
  Result<ApiResponse> Finish(const ApiRequest& request,
                             Result<std::shared_ptr<HttpTransfer>> transfer, Deadline deadline);

  Connection connection_;
  const HttpOptions options_;
  const std::unique_ptr<class HttpLoop> loop_;
  mutable std::mutex mutex_;
  std::optional<Dated> last_;
};

}  // namespace nos::kube
