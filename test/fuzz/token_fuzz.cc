// OpenID Connect tokens: refused, or read exactly as signed; no random key verifies a token, and no
// token yields a user name reserved by Kubernetes.
#include "identity/id_token.h"
#include "identity/jwt.h"
#include "target.h"

using namespace nos;            // NOLINT
using namespace nos::identity;  // NOLINT

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(FuzzText(data, size));
  const auto jwt = ParseJwt(text);
  if (!jwt.ok()) {
    Require(jwt.status().code() == Code::kInvalid, "refused as invalid");
    return 0;
  }
  Require(text.starts_with(jwt->content + "."), "what is signed is what was read");
  const auto keys = KeySet::Parse(jwt->claims);
  if (keys.ok()) Require(!keys->Verify(*jwt).ok(), "a token does not vouch for itself");
  IdTokenRules rules;
  rules.issuer = "https://a.example";
  rules.client_id = "nos";
  const Time now{std::chrono::seconds(1'800'000'000)};
  (void)CheckClaims(jwt->claims, rules, now, "n");
  rules.username_prefix = "-";
  const auto subject = SubjectOf(jwt->claims, rules);
  if (!subject.ok()) return 0;
  Require(!FindString(*subject, "user").starts_with("system:"), "a user of their own");
  for (const Json& group : Find(*subject, "groups")->get_array()) {
    const std::string_view name = View(group.get_string());
    Require(name == "system:authenticated" || !name.starts_with("system:"), "a group of their own");
  }
  return 0;
}
