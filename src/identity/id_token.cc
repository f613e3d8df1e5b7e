#include "identity/id_token.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/text.h"

namespace nos::identity {
namespace {

constexpr double kLeeway = 30;  // seconds
constexpr size_t kMaxName = 1000, kMaxGroups = 1000;
constexpr std::string_view kReserved = "system:";

Status Refused(std::string message) { return {Code::kPermission, std::move(message)}; }

// Seconds since the epoch (NumericDate, RFC 7519).
std::optional<double> SecondsOf(const Json& claims, std::string_view name) {
  const Json* value = Find(claims, name);
  if (value == nullptr || !value->is_number()) return std::nullopt;
  const double seconds = value->to_number<double>();
  return std::isfinite(seconds) ? std::optional(seconds) : std::nullopt;
}

bool IsName(std::string_view name) {
  return !name.empty() && name.size() <= kMaxName && std::ranges::none_of(name, [](char c) {
    return static_cast<unsigned char>(c) < ' ' || c == '\x7f';
  });
}

// The claim is one group or a list of groups.
JsonArray GroupsOf(const Json& claims, const IdTokenRules& rules) {
  const Json* claim = rules.groups_claim.empty() ? nullptr : Find(claims, rules.groups_claim);
  JsonArray groups;
  const auto add = [&](const Json& one) {
    if (!one.is_string() || groups.size() >= kMaxGroups) return;
    const std::string group = rules.groups_prefix + std::string(View(one.get_string()));
    if (IsName(group) && !group.starts_with(kReserved)) groups.emplace_back(group);
  };
  if (claim != nullptr && claim->is_string()) add(*claim);
  if (claim != nullptr && claim->is_array()) std::ranges::for_each(claim->get_array(), add);
  groups.emplace_back(
      "system:authenticated");  // the API server adds it to every authenticated user
  return groups;
}

}  // namespace

bool IsFor(const Json& claims, std::string_view client) {
  const Json* audience = Find(claims, "aud");
  if (audience == nullptr) return false;
  if (audience->is_string()) return View(audience->get_string()) == client;
  return audience->is_array() && std::ranges::any_of(audience->get_array(), [&](const Json& one) {
           return one.is_string() && View(one.get_string()) == client;
         });
}

namespace {

// The client for which a token of several audiences was issued has to say so (OpenID Connect Core
// 1.0, 3.1.3.7): the others could use it here.
bool IsOfOtherClient(const Json& claims, std::string_view client) {
  const Json* audience = Find(claims, "aud");
  const bool several =
      audience != nullptr && audience->is_array() && audience->get_array().size() > 1;
  return several && FindString(claims, "azp") != client;
}

}  // namespace

Status CheckClaims(const Json& claims, const IdTokenRules& rules, Time now,
                   std::string_view nonce) {
  if (FindString(claims, "iss") != rules.issuer) return Refused("the token is another issuer's");
  if (!IsFor(claims, rules.client_id)) {
    return Refused(fmt::format("the token is not for {} (aud)", rules.client_id));
  }
  if (IsOfOtherClient(claims, rules.client_id)) {
    return Refused(fmt::format("the token has several audiences and was not issued to {} (azp)",
                               rules.client_id));
  }
  const double time = ToSeconds(now.time_since_epoch());
  const auto expires = SecondsOf(claims, "exp");
  if (!expires) return Refused("the token does not say when it expires (exp)");
  if (*expires + kLeeway <= time) return Refused("the token has expired: sign in again");
  for (const char* name : {"nbf", "iat"}) {
    const auto from = SecondsOf(claims, name);
    if (from && *from - kLeeway > time) {
      return Refused(fmt::format("the token is from the future ({}): compare the clocks", name));
    }
    if (!from && Find(claims, name) != nullptr) {
      return Refused(fmt::format("{} is no time", name));
    }
  }
  if (!nonce.empty() && FindString(claims, "nonce") != nonce) {
    return Refused("the token was not asked for here (nonce)");
  }
  return Status::Ok();
}

Result<Json> SubjectOf(const Json& claims, const IdTokenRules& rules) {
  const std::string name(FindString(claims, rules.username_claim));
  if (!IsName(name)) {
    return Refused(
        fmt::format("the token has no {}, which is the user's name here", rules.username_claim));
  }
  const Json* verified = Find(claims, "email_verified");
  const bool email = rules.username_claim == "email";
  if (email && verified != nullptr && *verified != Json(true)) {
    return Refused("the issuer has not verified your email address");
  }
  std::string prefix = rules.username_prefix;
  if (prefix.empty() && !email) prefix = rules.issuer + "#";
  if (prefix == "-") prefix.clear();
  const std::string user = prefix + name;
  if (user.starts_with(kReserved)) {
    return Refused("names that begin with system: are Kubernetes' own");
  }
  return Json{{"user", user}, {"groups", GroupsOf(claims, rules)}};
}

}  // namespace nos::identity
