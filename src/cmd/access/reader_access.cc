#include "cmd/access/reader_access.h"

#include <fmt/format.h>
#include <openssl/sha.h>

#include <array>
#include <utility>

#include "kube/client.h"

namespace nos::cmd {
namespace {

using telemetryserver::Reader;

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

}  // namespace

Result<Reader> ReaderAccess::Of(const net::HttpRequest& request, const std::string& address) {
  constexpr std::string_view kBearer = "Bearer ";
  const std::string_view header = request.Header("authorization");
  if (!header.starts_with(kBearer) || header.size() > kMaxTokenBytes) {
    return Status(Code::kPermission, options_.review_tokens
                                         ? "sign in with a token of the cluster, such as "
                                           "`kubectl create token NAME` gives"
                                         : "sign in");
  }
  NOS_ASSIGN(const Holder holder, HolderOf(std::string(header.substr(kBearer.size())), address));
  NOS_ASSIGN(Reader reader, rights_.Of(holder.subject));
  reader.has_cluster_token = holder.of_cluster;
  return reader;
}

Result<Reader> ReaderAccess::OfSubject(const Json& subject) {
  NOS_ASSIGN(Reader reader, rights_.Of(subject));
  reader.has_session = true;
  return reader;
}

Result<ReaderAccess::Holder> ReaderAccess::HolderOf(const std::string& token,
                                                    const std::string& address) {
  const std::string key = HashOf(token);
  bool was_good = false;
  if (auto known = FindCached(key, was_good)) return *std::move(known);
  return flight_.Do(key, [&]() -> Result<Holder> {
    if (auto known = FindCached(key, was_good))
      return *std::move(known);  // another caller just asked
    if (!was_good && HasFailedTooOften(address)) {
      return Status(Code::kExhausted,
                    "too many failed attempts to sign in: come again in a minute");
    }
    Result<Holder> holder = Ask(token);
    if (!holder.ok() && holder.status().code() == Code::kPermission) CountFailure(address);
    return Keep(key, std::move(holder));
  });
}

// `was_good`: set if the token was valid at any earlier time.
std::optional<Result<ReaderAccess::Holder>> ReaderAccess::FindCached(const std::string& key,
                                                                     bool& was_good) {
  const std::scoped_lock lock(mutex_);
  const auto known = known_.find(key);
  if (known == known_.end()) return std::nullopt;
  was_good = known->second.holder.ok();
  if (clock_.Now() >= known->second.until) return std::nullopt;
  return known->second.holder;
}

Result<ReaderAccess::Holder> ReaderAccess::Keep(const std::string& key, Result<Holder> holder) {
  const bool refused = !holder.ok() && holder.status().code() == Code::kPermission;
  if (!holder.ok() && !refused) return holder;
  const Time now = clock_.Now();
  const std::scoped_lock lock(mutex_);
  MakeRoom(now);
  known_.insert_or_assign(key, Known{holder, now + (refused ? kKeepRefusals : kKeep)});
  return holder;
}

void ReaderAccess::MakeRoom(Time now) {
  if (known_.size() < kMaxKnown) return;
  std::erase_if(known_, [&](const auto& known) { return known.second.until <= now; });
  if (known_.size() >= kMaxKnown) known_.clear();
}

bool ReaderAccess::HasFailedTooOften(const std::string& address) const {
  if (options_.limits == nullptr) return false;
  const Time now = clock_.Now();
  const std::string network = telemetryserver::NetworkOf(address);
  return options_.limits->failures.Wait(network, now) > Duration(0) ||
         options_.limits->all_failures.Wait(PoolOf(network, now), now) > Duration(0);
}

// Separate pools: clients without recent failures do not queue behind clients with failures.
std::string ReaderAccess::PoolOf(const std::string& network, Time now) const {
  return options_.limits->failures.Knows(network, now) ? "failed" : "first";
}

void ReaderAccess::CountFailure(const std::string& address) {
  if (options_.limits == nullptr) return;
  const Time now = clock_.Now();
  const std::string network = telemetryserver::NetworkOf(address);
  (void)options_.limits->all_failures.Take(PoolOf(network, now), now);
  (void)options_.limits->failures.Take(network, now);
}

Result<ReaderAccess::Holder> ReaderAccess::Ask(const std::string& token) {
  auto identified = options_.identify ? options_.identify(token) : std::nullopt;
  const bool of_cluster = !identified.has_value();
  if (of_cluster && !options_.review_tokens) {
    return Status(Code::kPermission, "unknown token");
  }
  NOS_ASSIGN(Json subject, of_cluster ? Review(token) : *std::move(identified));
  return Holder{std::move(subject), of_cluster};
}

Result<Json> ReaderAccess::Review(const std::string& token) {
  kube::Client client = kube::Client(transport_).Within(kPatience);
  const auto reviewed =
      client.Create(kTokenReviews, "",
                    {{"apiVersion", kTokenReviews.group + "/" + kTokenReviews.version},
                     {"kind", kTokenReviews.kind},
                     {"spec", {{"token", token}}}});
  if (!reviewed.ok()) {
    return Status(Code::kUnavailable,
                  fmt::format("the cluster's API server cannot be asked who you are: {}",
                              reviewed.status().message()));
  }
  const Json* authenticated = Find(*reviewed, "status", "authenticated");
  const Json* user = Find(*reviewed, "status", "user");
  if (authenticated == nullptr || *authenticated != Json(true) || user == nullptr) {
    return Status(Code::kPermission, "the cluster does not know this token, or not any more");
  }
  return SubjectOf(*user);
}

}  // namespace nos::cmd
