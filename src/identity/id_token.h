// Claims of an ID token whose signature has been verified.
//
// Sources: OpenID Connect Core 1.0, 3.1.3.7; names and prefixes follow kube-apiserver
// (--oidc-username-claim and related flags). Pure functions.
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
  std::string username_prefix{};  // "": "ISSUER#" unless the claim is email; "-": no prefix
  std::string groups_claim = "groups", groups_prefix{};
};

// True if the token is meant for the client (aud). Does not verify the signature.
bool IsFor(const Json& claims, std::string_view client);

// If `nonce` is not empty, the token must contain it. Clocks may differ by half a minute. Error:
// kPermission with the invalid claim.
Status CheckClaims(const Json& claims, const IdTokenRules& rules, Time now,
                   std::string_view nonce = {});

// {"user", "groups"} in the form of access reviews. Names reserved by Kubernetes ("system:...") are
// rejected. Error: kPermission.
Result<Json> SubjectOf(const Json& claims, const IdTokenRules& rules);

}  // namespace nos::identity
