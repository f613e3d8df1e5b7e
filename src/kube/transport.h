// How requests reach an API server: over the network, or by a direct call in the same process. One
// seam, so that the same client runs in production, in the sandbox, and under injected faults.
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

// What is sent: an object, a list, a Table, or a metav1.Status. From the network it comes as text,
// so that a reader who wants typed values needs no tree; from a server in this process, as a tree.
struct ApiResponse {
  int code = 200;  // HTTP status
  Json body;
  std::vector<std::string> warnings{};  // for whoever sent the request
  std::string text{};                   // when not empty, instead of `body`
  Duration retry_after{};               // what a server that is busy asks for; 0: it does not say

  JsonSource json() const { return text.empty() ? JsonSource(body) : JsonSource(text); }
};

struct WatchEvent {
  std::string type;  // ADDED MODIFIED DELETED BOOKMARK ERROR
  Json object;
  std::string text{};  // when not empty, instead of `object`

  JsonSource json() const { return text.empty() ? JsonSource(object) : JsonSource(text); }
};

// One watch. Reading never blocks. One reader.
class WatchStream {
 public:
  virtual ~WatchStream() = default;
  // The next event, or nothing when none has arrived yet.
  virtual std::optional<WatchEvent> Next() = 0;
  // True when the stream has ended and all its events have been read.
  virtual bool Ended() const = 0;
  // Calls `wake` once (any thread, at once if so) when Next has something or the stream has ended;
  // a later call replaces it. `wake` does not come back here, and must be callable until the
  // stream is gone.
  virtual void OnReady(std::function<void()> wake) = 0;
};

class Transport {
 public:
  virtual ~Transport() = default;
  // Error: kUnavailable or kDeadline when no answer came; the request may still have taken effect.
  // An answer with an error code is a Result with a value. Thread-safe.
  virtual Result<ApiResponse> Do(const ApiRequest& request) = 0;
  virtual Result<std::unique_ptr<WatchStream>> Watch(const ApiRequest& request) = 0;
  // Independent requests, in flight together where that is possible; answers in their order.
  virtual std::vector<Result<ApiResponse>> DoAll(const std::vector<ApiRequest>& requests) {
    std::vector<Result<ApiResponse>> answers;
    answers.reserve(requests.size());
    for (const ApiRequest& request : requests) answers.push_back(Do(request));
    return answers;
  }
};

}  // namespace nos::kube
