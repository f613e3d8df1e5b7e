// Transport of requests to an API server: over the network, or by a direct call in the same
// process. The same client thus runs in production, in the sandbox, and under injected faults.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "codec/api_request.h"
#include "codec/cursor.h"
#include "codec/json.h"

namespace nos::kube {

using codec::ApiRequest;

// The answer: an object, a list, a Table, or a metav1.Status. From the network it is text, so that
// a reader of typed values needs no tree; from a server in this process it is a tree.
struct ApiResponse {
  int code = 200;  // HTTP status
  Json body;
  std::vector<std::string> warnings{};  // for the sender of the request
  std::string text{};                   // if not empty, used instead of `body`
  Duration retry_after{};               // Retry-After of a busy server; 0: not given

  JsonSource json() const { return text.empty() ? JsonSource(body) : JsonSource(text); }
};

struct WatchEvent {
  std::string type;  // ADDED MODIFIED DELETED BOOKMARK ERROR
  Json object;
  std::string text{};  // if not empty, used instead of `object`

  JsonSource json() const { return text.empty() ? JsonSource(object) : JsonSource(text); }
};

// One watch. Reading never blocks. For one reader.
class WatchStream {
 public:
  virtual ~WatchStream() = default;
  // The next event; empty if none has arrived yet.
  virtual std::optional<WatchEvent> Next() = 0;
  // True after the stream has ended and all its events were read.
  virtual bool Ended() const = 0;
  // Calls `wake` once (from any thread, possibly at once) when Next has an event or the stream has
  // ended; a later call replaces it. `wake` must not call back into the stream, and must be
  // callable until the stream is destroyed.
  virtual void OnReady(std::function<void()> wake) = 0;
};

class Transport {
 public:
  virtual ~Transport() = default;
  // Error: kUnavailable or kDeadline if no answer arrived; the request may still have taken effect.
  // An answer with an error code is a Result with a value. Thread-safe.
  virtual Result<ApiResponse> Do(const ApiRequest& request) = 0;
  virtual Result<std::unique_ptr<WatchStream>> Watch(const ApiRequest& request) = 0;
  // Sends independent requests, concurrently if possible; the answers are in the same order.
  virtual std::vector<Result<ApiResponse>> DoAll(const std::vector<ApiRequest>& requests) {
    std::vector<Result<ApiResponse>> answers;
    answers.reserve(requests.size());
    for (const ApiRequest& request : requests) answers.push_back(Do(request));
    return answers;
  }
};

}  // namespace nos::kube
