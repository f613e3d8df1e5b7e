// A request to a Kubernetes API server as a value, and the paths of resources.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "codec/json.h"

namespace nos::codec {

struct ApiRequest {
  std::string method;  // GET POST PUT PATCH DELETE
  std::string path;    // "/api/v1/namespaces/default/pods/a"; percent-decoded
  std::vector<std::pair<std::string, std::string>> query;
  std::string content_type;  // of the body: application/json, application/merge-patch+json, ...
  std::string accept;        // "" = application/json
  Json body;                 // null: none
  // Keys that occur twice in the text of the body; the last value of each counts: "spec.replicas".
  std::vector<std::string> duplicate_keys = {};
  // Time limit for the answer, if shorter than the transport's own; 0: the transport's.
  Duration patience{};
  std::string text{};              // if not empty, sent as the body instead of `body`
  std::string content_encoding{};  // of `text`: gzip, snappy; "": none
  std::vector<std::pair<std::string, std::string>> headers{};  // in addition to the above

  // The first value of a query key, or "".
  std::string Query(std::string_view key) const;
};

// A served resource. `group` is "" for core.
struct Resource {
  std::string group, version, plural, kind;
  bool namespaced = true;
};
// "/api/v1/namespaces/<ns>/pods/<name>/<subresource>"; empty parts are left out.
std::string PathOf(const Resource& resource, std::string_view ns, std::string_view name = "",
                   std::string_view subresource = "");

}  // namespace nos::codec
