// How requests reach an API server: over the network, or by a direct call in the same process. One
// seam, so that the same client runs in production, in the sandbox, and under injected faults.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "codec/json.h"

namespace nos::kube {

struct ApiRequest {
  std::string method;  // GET POST PUT PATCH DELETE
  std::string path;    // "/api/v1/namespaces/default/pods/a"; percent-decoded
  std::vector<std::pair<std::string, std::string>> query;
  std::string content_type;  // of the body: application/json, application/merge-patch+json, ...
  std::string accept;        // "" = application/json
  Json body;                 // null: none
  // Keys that stood twice in the text of the body, of which the last counts: "spec.replicas".
  std::vector<std::string> duplicate_keys = {};

  // The first value of a query key, or "".
  std::string Query(std::string_view key) const;
};

struct ApiResponse {
  int code = 200;                          // HTTP status
  Json body;                               // an object, a list, a Table, or a metav1.Status
  std::vector<std::string> warnings = {};  // for whoever sent the request
};

struct WatchEvent {
  std::string type;  // ADDED MODIFIED DELETED BOOKMARK ERROR
  Json object;
};

// One watch. Reading never blocks; `Wait` does.
class WatchStream {
 public:
  virtual ~WatchStream() = default;
  // The next event, or nothing when none has arrived yet.
  virtual std::optional<WatchEvent> Next() = 0;
  // True when the stream has ended and all its events have been read.
  virtual bool Ended() const = 0;
  // Returns when an event is there, the stream has ended, or the time is up.
  virtual void Wait(Duration at_most) = 0;
};

class Transport {
 public:
  virtual ~Transport() = default;
  // Error: kUnavailable or kDeadline when no answer came; the request may still have taken effect.
  // An answer with an error code is a Result with a value. Thread-safe.
  virtual Result<ApiResponse> Do(const ApiRequest& request) = 0;
  virtual Result<std::unique_ptr<WatchStream>> Watch(const ApiRequest& request) = 0;
};

}  // namespace nos::kube
