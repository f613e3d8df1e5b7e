// A reader and its rights.
#pragma once

#include <functional>
#include <set>
#include <string>

#include "base/status.h"
#include "codec/json.h"
#include "net/http.h"

namespace nos::telemetryserver {

struct Reader {
  std::string user;
  bool may_all = false;              // everything, including objects without a namespace
  std::set<std::string> namespaces;  // otherwise only objects in these
  size_t unasked = 0;                // namespaces whose access is not checked yet
  bool may_create = false;           // pods, in some known namespace
  Json subject = {};                 // user, uid, groups, extra in the form of access reviews
  bool has_cluster_token = false;    // authenticated by a token of the cluster
  bool has_session = false;          // a browser session, which it may end

  bool May(std::string_view ns) const { return may_all || namespaces.contains(std::string(ns)); }
};

// Errors, as a sentence for the client: kPermission (not authenticated), kExhausted (too many
// recent failures from the address); any other: authentication is not available now.
using Authenticate = std::function<Result<Reader>(const net::HttpRequest&)>;

}  // namespace nos::telemetryserver
