#include "cmd/reader_access.h"

#include <fmt/format.h>
#include <openssl/sha.h>

#include <array>
#include <utility>

#include "kube/client.h"

namespace nos::cmd {
namespace {

using telemetry::Reader;

constexpr Duration kKeep = std::chrono::minutes(1), kKeepRefusals = std::chrono::seconds(10);
constexpr Duration kPatience = std::chrono::seconds(10);
constexpr size_t kMostKnown = 10'000, kMostTokenBytes = size_t{16} * 1024;
constexpr size_t kMostNamespaces = 500;  // that one reader is asked about

const kube::Resource kTokenReviews{"authentication.k8s.io", "v1", "tokenreviews", "TokenReview",
                                   false};
const kube::Resource kAccessReviews{"authorization.k8s.io", "v1", "subjectaccessreviews",
                                    "SubjectAccessReview", false};

std::string HashOf(std::string_view text) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest;
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  return {digest.begin(), digest.end()};
}

Json ReviewOf(const kube::Resource& of, JsonObject spec) {
  return {
      {"apiVersion", of.group + "/" + of.version}, {"kind", of.kind}, {"spec", std::move(spec)}};
}

// The user as an access review wants them named.
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
  if (!header.starts_with(kBearer) || header.size() > kMostTokenBytes) {
    return Status(Code::kPermission, options_.review_tokens
                                         ? "sign in with a token of the cluster, such as "
                                           "`kubectl create token NAME` gives"
                                         : "sign in");
  }
  const std::string token(header.substr(kBearer.size()));
  const std::string key = "token " + HashOf(token);
  bool was_good = false;
  if (auto known = Recall(key, was_good)) return *std::move(known);
  if (!was_good && HasFailedTooOften(address)) {
    return Status(Code::kExhausted, "too many failed attempts to sign in: come again in a minute");
  }
  Result<Reader> reader = Ask(token);
  if (!reader.ok() && reader.status().code() == Code::kPermission) CountFailure(address);
  return Keep(key, std::move(reader));
}

Result<Reader> ReaderAccess::OfSubject(const Json& subject) {
  const std::string key = "subject " + HashOf(WriteJson(subject));
  bool was_good = false;
  if (auto known = Recall(key, was_good)) return *std::move(known);
  Result<Reader> reader = RightsOf(subject);
  if (reader.ok()) reader->has_session = true;
  return Keep(key, std::move(reader));
}

// `was_good`: it was known, however long ago.
std::optional<Result<Reader>> ReaderAccess::Recall(const std::string& key, bool& was_good) {
  const std::scoped_lock lock(mutex_);
  const auto known = known_.find(key);
  if (known == known_.end()) return std::nullopt;
  was_good = known->second.reader.ok();
  if (clock_.Now() >= known->second.until) return std::nullopt;
  return known->second.reader;
}

Result<Reader> ReaderAccess::Keep(const std::string& key, Result<Reader> reader) {
  const bool refused = !reader.ok() && reader.status().code() == Code::kPermission;
  if (!reader.ok() && !refused) return reader;
  const Time now = clock_.Now();
  const std::scoped_lock lock(mutex_);
  MakeRoom(now);
  known_.insert_or_assign(key, Known{reader, now + (refused ? kKeepRefusals : kKeep)});
  return reader;
}

void ReaderAccess::MakeRoom(Time now) {
  if (known_.size() < kMostKnown) return;
  std::erase_if(known_, [&](const auto& known) { return known.second.until <= now; });
  if (known_.size() >= kMostKnown) known_.clear();
}

bool ReaderAccess::HasFailedTooOften(const std::string& address) const {
  if (options_.limits == nullptr) return false;
  const Time now = clock_.Now();
  const std::string network = telemetry::NetworkOf(address);
  return options_.limits->failures.Wait(network, now) > Duration(0) ||
         options_.limits->all_failures.Wait(PoolOf(network, now), now) > Duration(0);
}

// Who has not failed lately does not stand behind those who have.
std::string ReaderAccess::PoolOf(const std::string& network, Time now) const {
  return options_.limits->failures.Knows(network, now) ? "failed" : "first";
}

void ReaderAccess::CountFailure(const std::string& address) {
  if (options_.limits == nullptr) return;
  const Time now = clock_.Now();
  const std::string network = telemetry::NetworkOf(address);
  (void)options_.limits->all_failures.Take(PoolOf(network, now), now);
  (void)options_.limits->failures.Take(network, now);
}

Result<Reader> ReaderAccess::Ask(const std::string& token) {
  auto identified = options_.identify ? options_.identify(token) : std::nullopt;
  const bool of_cluster = !identified.has_value();
  if (of_cluster && !options_.review_tokens) {
    return Status(Code::kPermission, "nobody here knows this token");
  }
  NOS_ASSIGN(const Json subject, of_cluster ? Review(token) : *std::move(identified));
  NOS_ASSIGN(Reader reader, RightsOf(subject));
  reader.has_cluster_token = of_cluster;
  return reader;
}

Result<Json> ReaderAccess::Review(const std::string& token) {
  kube::Client client = kube::Client(transport_).Within(kPatience);
  const auto reviewed =
      client.Create(kTokenReviews, "", ReviewOf(kTokenReviews, {{"token", token}}));
  if (!reviewed.ok()) {
    return Status(Code::kUnavailable,
                  fmt::format("the cluster's API server cannot be asked who you "
                              "are: {}",
                              reviewed.status().message()));
  }
  const Json* authenticated = Find(*reviewed, "status", "authenticated");
  const Json* user = Find(*reviewed, "status", "user");
  if (authenticated == nullptr || *authenticated != Json(true) || user == nullptr) {
    return Status(Code::kPermission, "the cluster does not know this token, or not any more");
  }
  return SubjectOf(*user);
}

Result<Reader> ReaderAccess::RightsOf(const Json& subject) {
  Reader reader;
  reader.user = FindString(subject, "user");
  reader.subject = subject;
  NOS_ASSIGN(reader.may_all, May(subject, "list", ""));
  const bool ask_create = options_.ask_create;
  if (ask_create) {
    NOS_ASSIGN(reader.may_create, May(subject, "create", ""));
  }
  size_t asked = 0;
  for (const std::string& ns : namespaces_()) {
    const bool settled = reader.may_all && (reader.may_create || !ask_create);
    if (settled || ++asked > kMostNamespaces) break;
    if (!reader.may_all) {
      NOS_ASSIGN(const bool sees, May(subject, "list", ns));
      if (!sees) continue;
      reader.namespaces.insert(ns);
    }
    if (!ask_create || reader.may_create) continue;
    NOS_ASSIGN(reader.may_create, May(subject, "create", ns));
  }
  return reader;
}

Result<bool> ReaderAccess::MayCreate(const Reader& reader, const std::string& ns) {
  return May(reader.subject, "create", ns);
}

// Pods; "": of all namespaces.
Result<bool> ReaderAccess::May(const Json& subject, std::string_view verb, const std::string& ns) {
  JsonObject spec = subject.is_object() ? subject.get_object() : JsonObject();
  JsonObject attributes{{"verb", verb}, {"resource", "pods"}};
  if (!ns.empty()) attributes["namespace"] = ns;
  spec["resourceAttributes"] = std::move(attributes);
  const auto reviewed = kube::Client(transport_)
                            .Within(kPatience)
                            .Create(kAccessReviews, "", ReviewOf(kAccessReviews, std::move(spec)));
  if (!reviewed.ok()) {
    return Status(Code::kUnavailable, fmt::format("the cluster's API server cannot be asked what "
                                                  "you may see: {}",
                                                  reviewed.status().message()));
  }
  const Json* allowed = Find(*reviewed, "status", "allowed");
  return allowed != nullptr && *allowed == Json(true);
}

}  // namespace nos::cmd
