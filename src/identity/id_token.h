// What an ID token says of somebody, once its signature has been checked.
//
// Sources: OpenID Connect Core 1.0, 3.1.3.7; names and prefixes as kube-apiserver has them
// (--oidc-username-claim and so on). Pure.
#pragma once

#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"
#include "codec/json.h"

namespace nos::identity {

struct IdTokenRules {
  std::string issuer, client_id;
  std::string username_claim = "sub";
  std::string username_prefix{};  // "": "ISSUER#" unless the claim is email; "-": none
  std::string groups_claim = "groups", groups_prefix{};
};

// Whether it is meant for that client (aud). Says nothing of who has signed it.
bool IsFor(const Json& claims, std::string_view client);

// `nonce` not empty: the token was asked for with it. Clocks may differ by half a minute. Error:
// kPermission, which claim is wrong.
Status CheckClaims(const Json& claims, const IdTokenRules& rules, Time now,
                   std::string_view nonce = {});

// {"user", "groups"}, as access reviews name them. What Kubernetes keeps for itself ("system:...")
// nobody gets from here. Error: kPermission.
Result<Json> SubjectOf(const Json& claims, const IdTokenRules& rules);

}  // namespace nos::identity
