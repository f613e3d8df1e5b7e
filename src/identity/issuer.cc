#include "identity/issuer.h"

#include <fmt/core.h>
#include <openssl/sha.h>

#include <array>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "identity/base64url.h"
#include "net/url.h"

namespace nos::identity {
namespace {

constexpr Duration kKeep = std::chrono::hours(1), kBetween = std::chrono::seconds(30);
constexpr Duration kPatience = std::chrono::seconds(2);  // for other threads that read the keys
// Without an answer of the issuer, its keys stay valid for this long.
constexpr Duration kMaxKeyAge = std::chrono::hours(24);
constexpr size_t kMaxSecret = 4096, kMaxCode = 4096;

std::string ChallengeOf(const std::string& verifier) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(verifier.data()), verifier.size(), digest.data());
  return EncodeBase64Url({reinterpret_cast<const char*>(digest.data()), digest.size()});
}

// "a=1&b=2"
std::string FormOf(std::initializer_list<std::pair<std::string_view, std::string_view>> fields) {
  std::string form;
  for (const auto& [name, value] : fields) {
    form += fmt::format("{}{}={}", form.empty() ? "" : "&", name, net::PercentEncode(value));
  }
  return form;
}

}  // namespace

bool Issuer::MayHaveIssued(std::string_view token) const {
  const auto jwt = ParseJwt(token);
  return jwt.ok() && FindString(jwt->claims, "iss") == options_.rules.issuer;
}

bool Issuer::MayBeForOthers(std::string_view token) const {
  const auto jwt = ParseJwt(token);
  return jwt.ok() && FindString(jwt->claims, "iss") == options_.rules.issuer &&
         !IsFor(jwt->claims, options_.rules.client_id);
}

Issuer::Shared Issuer::Current() const {
  const std::scoped_lock lock(mutex_);
  return known_;
}

// `anew`: the cached keys are not sufficient.
Result<Issuer::Shared> Issuer::Get(bool anew) {
  const Shared before = Current();
  const auto age = [&](const Shared& known) { return clock_.Now() - known->read; };
  if (before != nullptr && !anew && age(before) < kKeep) return before;
  // Only one thread reads. Others use the cached keys. If there are none, one more waits briefly:
  // the threads of a server are for others, too.
  std::unique_lock reading(reading_, std::defer_lock);
  const bool first = before == nullptr;
  if (!reading.try_lock() && !(first && WaitFor(reading))) {  // another thread reads them
    if (!first) return before;
    return Status(Code::kUnavailable,
                  "the identity provider is slow to answer: retry in some seconds");
  }
  const Shared meanwhile = Current();
  if (meanwhile != before) return meanwhile;
  // Reads are at least kBetween apart, so that forged tokens with unknown keys cause few requests.
  const Time now = clock_.Now();
  const bool soon = tried_ != Time() && now - tried_ < kBetween;
  if (!soon) {
    tried_ = now;
    auto read = Read();
    if (read.ok()) {
      const std::scoped_lock lock(mutex_);
      known_ = *read;
      return read;
    }
    if (before == nullptr || age(before) > kMaxKeyAge) return read;
  }
  if (before != nullptr && age(before) <= kMaxKeyAge) return before;
  return Status(
      Code::kUnavailable,
      fmt::format("identity provider {} did not answer the last request: retry in some seconds",
                  options_.rules.issuer));
}

// False: another thread waits already, or the time is over.
bool Issuer::WaitFor(std::unique_lock<std::timed_mutex>& reading) {
  if (waits_.exchange(true)) return false;
  const bool locked = reading.try_lock_for(kPatience);
  waits_ = false;
  return locked;
}

Result<Issuer::Shared> Issuer::Read() {
  const std::string& issuer = options_.rules.issuer;
  const auto ask = [&](const std::string& url) -> Result<Json> {
    const auto text = ask_({.url = url});
    if (!text.ok()) {
      return Status(Code::kUnavailable,
                    fmt::format("the identity provider: {}: {}", url, text.status().message()));
    }
    auto json = ParseJson(*text);
    if (json.ok()) return json;
    return Status(Code::kUnavailable, fmt::format("the identity provider: {}: it is no JSON", url));
  };
  const std::string base = issuer.ends_with('/') ? issuer.substr(0, issuer.size() - 1) : issuer;
  NOS_ASSIGN(const Json about, ask(base + "/.well-known/openid-configuration"));
  if (FindString(about, "issuer") != issuer) {
    return Status(Code::kUnavailable,
                  fmt::format("the identity provider calls itself \"{}\", not {}: see "
                              "readers.oidc.issuer",
                              Shortened(FindString(about, "issuer"), 200), issuer));
  }
  auto known = std::make_shared<Known>();
  known->authorization_endpoint = FindString(about, "authorization_endpoint");
  known->token_endpoint = FindString(about, "token_endpoint");
  const std::string keys(FindString(about, "jwks_uri"));
  for (const std::string& url : {known->authorization_endpoint, known->token_endpoint, keys}) {
    const Status usable = CheckWebAddress(url);
    if (!usable.ok())
      return Status(Code::kUnavailable, "the identity provider: " + usable.message());
  }
  NOS_ASSIGN(const Json document, ask(keys));
  NOS_ASSIGN(known->keys, KeySet::Parse(document));
  known->read = clock_.Now();
  return Shared(std::move(known));
}

Result<Json> Issuer::Verify(std::string_view token, std::string_view nonce) {
  const auto jwt = ParseJwt(token);
  if (!jwt.ok()) return Status(Code::kPermission, jwt.status().message());
  // Check the claims first: an invalid token causes no request to the issuer.
  NOS_RETURN_IF_ERROR(CheckClaims(jwt->claims, options_.rules, clock_.Now(), nonce));
  NOS_ASSIGN(Shared known, Get(false));
  Status signed_by = known->keys.Verify(*jwt);
  if (signed_by.code() == Code::kNotFound) {
    NOS_ASSIGN(known, Get(true));
    signed_by = known->keys.Verify(*jwt);
  }
  if (!signed_by.ok()) return Status(Code::kPermission, signed_by.message());
  return SubjectOf(jwt->claims, options_.rules);
}

Result<std::string> Issuer::SignInUrl(const SignIn& sign_in) {
  NOS_ASSIGN(const Shared known, Get(false));
  const std::string& to = known->authorization_endpoint;
  return to + (to.find('?') == std::string::npos ? "?" : "&") +
         FormOf({{"response_type", "code"},
                 {"client_id", options_.rules.client_id},
                 {"redirect_uri", options_.redirect_url},
                 {"scope", options_.scopes},
                 {"state", sign_in.state},
                 {"nonce", sign_in.nonce},
                 {"code_challenge", ChallengeOf(sign_in.verifier)},
                 {"code_challenge_method", "S256"}});
}

Result<Json> Issuer::Redeem(const std::string& code, const SignIn& sign_in) {
  if (code.empty() || code.size() > kMaxCode) {
    return Status(Code::kPermission, "the identity provider has sent no code");
  }
  NOS_ASSIGN(const Shared known, Get(false));
  std::string form = FormOf({{"grant_type", "authorization_code"},
                             {"code", code},
                             {"redirect_uri", options_.redirect_url},
                             {"client_id", options_.rules.client_id},
                             {"code_verifier", sign_in.verifier}});
  if (!options_.client_secret_file.empty()) {
    NOS_ASSIGN(const std::string secret, ReadFile(options_.client_secret_file, kMaxSecret));
    form += "&" + FormOf({{"client_secret", Trim(secret)}});
  }
  const auto text = ask_({.url = known->token_endpoint, .form = std::move(form)});
  if (!text.ok()) {
    const bool refused = text.status().code() == Code::kInvalid;
    return Status(refused ? Code::kPermission : Code::kUnavailable,
                  "the identity provider: " + text.status().message());
  }
  const Json answer = ParseJson(*text).value_or(Json());
  const std::string_view token = FindString(answer, "id_token");
  if (token.empty()) return Status(Code::kPermission, "the identity provider gave no ID token");
  return Verify(token, sign_in.nonce);
}

}  // namespace nos::identity
