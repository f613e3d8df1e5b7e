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
  // Keys that stood twice in the text of the body, of which the last counts: "spec.replicas".
  std::vector<std::string> duplicate_keys = {};
  // How long the answer is waited for, if less than the transport would; 0: as long as that.
  Duration patience{};
  std::string text{};              // when not empty, the body as it is sent, instead of `body`
  std::string content_encoding{};  // of `text`: gzip, snappy; "": none
  std::vector<std::pair<std::string, std::string>> headers{};  // besides those of the above

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
