// Who asks, and what of the clusters they may see.
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
  bool may_all = false;              // everything, what belongs to no namespace included
  std::set<std::string> namespaces;  // else only what is theirs
  size_t unasked = 0;                // further ones, of which nobody has said yet
  bool may_create = false;           // pods, in some namespace that is known here
  Json subject = {};                 // user, uid, groups, extra: as access reviews name them
  bool has_cluster_token = false;    // its bearer token is one of the cluster's
  bool has_session = false;          // of a browser, which it may end

  bool May(std::string_view ns) const { return may_all || namespaces.contains(std::string(ns)); }
};

// Errors, in a sentence for whoever asks: kPermission (nobody known), kExhausted (too many failed
// lately from there); another: nobody can tell now.
using Authenticate = std::function<Result<Reader>(const net::HttpRequest&)>;

}  // namespace nos::telemetryserver
