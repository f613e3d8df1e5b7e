#include "cmd/reviews/token_holders.h"

#include <fmt/format.h>
#include <openssl/sha.h>

#include <algorithm>
#include <array>
#include <utility>

#include "kube/client.h"

namespace nos::cmd {
namespace {

constexpr Duration kKeep = std::chrono::minutes(1), kKeepRefusals = std::chrono::seconds(10);
constexpr Duration kPatience = std::chrono::seconds(10);
constexpr size_t kMaxKnown = 10'000, kMaxTokenBytes = size_t{16} * 1024;

const kube::Resource kTokenReviews{"authentication.k8s.io", "v1", "tokenreviews", "TokenReview",
                                   false};

std::string HashOf(std::string_view text) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest;
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  return {digest.begin(), digest.end()};
}

// The user in the form of an access review.
Json SubjectOf(const Json& user) {
  JsonObject subject{{"user", FindString(user, "username")}};
  for (const char* key : {"uid", "groups", "extra"}) {
    if (const Json* value = Find(user, key)) subject[key] = *value;
  }
  return subject;
}

// True if the API server has checked the token for this audience: one that does not know audiences
// names none.
bool IsFor(const Json& review, const std::string& audience) {
  if (audience.empty()) return true;
  const Json* audiences = Find(review, "status", "audiences");
  return audiences != nullptr && audiences->is_array() &&
         std::ranges::any_of(audiences->get_array(),
                             [&](const Json& one) { return one == Json(audience); });
}

}  // namespace

std::optional<std::string> BearerOf(const net::HttpRequest& request) {
  constexpr std::string_view kBearer = "Bearer ";
  const std::string_view header = request.Header("authorization");
  if (!header.starts_with(kBearer) || header.size() > kMaxTokenBytes) return std::nullopt;
  return std::string(header.substr(kBearer.size()));
}

Result<Json> ReviewToken(kube::Transport& transport, const std::string& token,
                         const std::string& audience) {
  JsonObject spec{{"token", token}};
  if (!audience.empty()) spec["audiences"] = JsonArray{audience};
  kube::Client client = kube::Client(transport).Within(kPatience);
  const auto reviewed =
      client.Create(kTokenReviews, "",
                    {{"apiVersion", kTokenReviews.group + "/" + kTokenReviews.version},
                     {"kind", kTokenReviews.kind},
                     {"spec", std::move(spec)}});
  if (!reviewed.ok()) {
    return Status(Code::kUnavailable,
                  fmt::format("the cluster's API server cannot review the token: {}",
                              reviewed.status().message()));
  }
  const Json* authenticated = Find(*reviewed, "status", "authenticated");
  const Json* user = Find(*reviewed, "status", "user");
  if (authenticated == nullptr || *authenticated != Json(true) || user == nullptr ||
      !IsFor(*reviewed, audience)) {
    return Status(Code::kPermission,
                  "the cluster does not accept this token: it is invalid or has expired");
  }
  return SubjectOf(*user);
}

Result<TokenHolders::Holder> TokenHolders::Of(const std::string& token,
                                              const std::string& address) {
  const std::string key = HashOf(token);
  bool was_good = false;
  if (auto known = FindCached(key, was_good)) return *std::move(known);
  return flight_.Do(key, [&]() -> Result<Holder> {
    if (auto known = FindCached(key, was_good))
      return *std::move(known);  // another caller just asked
    if (!was_good && HasFailedTooOften(address)) {
      return Status(Code::kExhausted, "too many failed attempts to sign in: retry in a minute");
    }
    Result<Holder> holder = ask_(token);
    if (!holder.ok() && holder.status().code() == Code::kPermission) CountFailure(address);
    return Keep(key, std::move(holder));
  });
}

// `was_good`: set if the token was valid at any earlier time.
std::optional<Result<TokenHolders::Holder>> TokenHolders::FindCached(const std::string& key,
                                                                     bool& was_good) {
  const std::scoped_lock lock(mutex_);
  const auto known = known_.find(key);
  if (known == known_.end()) return std::nullopt;
  was_good = known->second.holder.ok();
  if (clock_.Now() >= known->second.until) return std::nullopt;
  return known->second.holder;
}

Result<TokenHolders::Holder> TokenHolders::Keep(const std::string& key, Result<Holder> holder) {
  const bool refused = !holder.ok() && holder.status().code() == Code::kPermission;
  if (!holder.ok() && !refused) return holder;
  const Time now = clock_.Now();
  const std::scoped_lock lock(mutex_);
  MakeRoom(now);
  known_.insert_or_assign(key, Known{holder, now + (refused ? kKeepRefusals : kKeep)});
  return holder;
}

void TokenHolders::MakeRoom(Time now) {
  if (known_.size() < kMaxKnown) return;
  std::erase_if(known_, [&](const auto& known) { return known.second.until <= now; });
  if (known_.size() >= kMaxKnown) known_.clear();
}

bool TokenHolders::HasFailedTooOften(const std::string& address) const {
  if (limits_ == nullptr) return false;
  const Time now = clock_.Now();
  const std::string network = net::NetworkOf(address);
  return limits_->failures.Wait(network, now) > Duration(0) ||
         limits_->all_failures.Wait(PoolOf(network, now), now) > Duration(0);
}

// Separate pools: clients without recent failures do not queue behind clients with failures.
std::string TokenHolders::PoolOf(const std::string& network, Time now) const {
  return limits_->failures.Knows(network, now) ? "failed" : "first";
}

void TokenHolders::CountFailure(const std::string& address) {
  if (limits_ == nullptr) return;
  const Time now = clock_.Now();
  const std::string network = net::NetworkOf(address);
  (void)limits_->all_failures.Take(PoolOf(network, now), now);
  (void)limits_->failures.Take(network, now);
}

}  // namespace nos::cmd
