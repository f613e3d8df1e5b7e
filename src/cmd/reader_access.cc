#include "cmd/reader_access.h"

#include <fmt/format.h>
#include <openssl/sha.h>

#include <array>
#include <utility>

#include "kube/client.h"

namespace nos::cmd {
namespace {

constexpr Duration kKeep = std::chrono::minutes(1), kKeepRefusals = std::chrono::seconds(10);
constexpr Duration kPatience = std::chrono::seconds(10);
constexpr size_t kMostKnown = 10'000, kMostTokenBytes = size_t{16} * 1024;
constexpr size_t kMostNamespaces = 500;  // that one reader is asked about

const kube::Resource kTokenReviews{"authentication.k8s.io", "v1", "tokenreviews", "TokenReview",
                                   false};
const kube::Resource kAccessReviews{"authorization.k8s.io", "v1", "subjectaccessreviews",
                                    "SubjectAccessReview", false};

std::string HashOf(const std::string& token) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest;
  SHA256(reinterpret_cast<const unsigned char*>(token.data()), token.size(), digest.data());
  return {digest.begin(), digest.end()};
}

Json Review(const kube::Resource& of, JsonObject spec) {
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

Result<telemetry::Reader> ReaderAccess::Of(const net::HttpRequest& request) {
  constexpr std::string_view kBearer = "Bearer ";
  const std::string_view header = request.Header("authorization");
  if (!header.starts_with(kBearer) || header.size() > kMostTokenBytes) {
    return Status(Code::kPermission,
                  "sign in with a token of the cluster, such as `kubectl create token NAME` gives");
  }
  const std::string token(header.substr(kBearer.size()));
  const std::string hash = HashOf(token);
  const Time now = clock_.Now();
  {
    const std::scoped_lock lock(mutex_);
    const auto known = known_.find(hash);
    if (known != known_.end() && now < known->second.until) return known->second.reader;
  }
  Result<telemetry::Reader> reader = Ask(token);
  const bool refused = !reader.ok() && reader.status().code() == Code::kPermission;
  if (!reader.ok() && !refused) return reader;
  const std::scoped_lock lock(mutex_);
  MakeRoom(now);
  known_.insert_or_assign(hash, Known{reader, now + (refused ? kKeepRefusals : kKeep)});
  return reader;
}

void ReaderAccess::MakeRoom(Time now) {
  if (known_.size() < kMostKnown) return;
  std::erase_if(known_, [&](const auto& known) { return known.second.until <= now; });
  if (known_.size() >= kMostKnown) known_.clear();
}

Result<telemetry::Reader> ReaderAccess::Ask(const std::string& token) {
  kube::Client client = kube::Client(transport_).Within(kPatience);
  const auto reviewed = client.Create(kTokenReviews, "", Review(kTokenReviews, {{"token", token}}));
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
  telemetry::Reader reader;
  reader.user = FindString(*user, "username");
  NOS_ASSIGN(reader.may_all, MayList(*user, ""));
  if (reader.may_all) return reader;
  size_t asked = 0;
  for (const std::string& ns : namespaces_()) {
    if (++asked > kMostNamespaces) break;
    NOS_ASSIGN(const bool may, MayList(*user, ns));
    if (may) reader.namespaces.insert(ns);
  }
  return reader;
}

// "": in all namespaces.
Result<bool> ReaderAccess::MayList(const Json& user, const std::string& ns) {
  Json subject = SubjectOf(user);
  JsonObject attributes{{"verb", "list"}, {"resource", "pods"}};
  if (!ns.empty()) attributes["namespace"] = ns;
  subject.get_object()["resourceAttributes"] = std::move(attributes);
  const auto reviewed =
      kube::Client(transport_)
          .Within(kPatience)
          .Create(kAccessReviews, "", Review(kAccessReviews, std::move(subject.get_object())));
  if (!reviewed.ok()) {
    return Status(Code::kUnavailable, fmt::format("the cluster's API server cannot be asked what "
                                                  "you may see: {}",
                                                  reviewed.status().message()));
  }
  const Json* allowed = Find(*reviewed, "status", "allowed");
  return allowed != nullptr && *allowed == Json(true);
}

}  // namespace nos::cmd
