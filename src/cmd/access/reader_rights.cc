#include "cmd/access/reader_rights.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cmd/reviews/access_review.h"
#include "kube/client.h"

namespace nos::cmd {
namespace {

using telemetryserver::Reader;

constexpr Duration kKeep = std::chrono::minutes(1), kKeepUnfinished = std::chrono::seconds(10);
constexpr Duration kPatience = std::chrono::seconds(10), kMaxGo = std::chrono::seconds(5);
constexpr size_t kAtOnce = 50, kMaxKnown = 2000, kMaxLabel = 63;

// Key of a user's rights. It excludes the token's ID: a user who can create tokens would otherwise
// count as a new user with each token.
std::string KeyOf(const Json& subject) {
  constexpr std::string_view kTokenId = "authentication.kubernetes.io/credential-id";
  Json key = subject;
  Json* extra = key.is_object() ? key.get_object().if_contains("extra") : nullptr;
  if (extra != nullptr && extra->is_object()) extra->get_object().erase(kTokenId);
  return WriteJson(key);
}

Json ReviewOf(const Json& subject, std::string_view verb, const std::string& ns) {
  JsonObject spec = subject.is_object() ? subject.get_object() : JsonObject();
  JsonObject attributes{{"verb", verb}, {"resource", "pods"}};
  if (!ns.empty()) attributes["namespace"] = ns;
  spec["resourceAttributes"] = std::move(attributes);
  return AccessReview(std::move(spec));
}

// Namespace names are RFC 1123 labels.
bool IsNamespaceName(std::string_view name) {
  return !name.empty() && name.size() <= kMaxLabel && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  });
}

}  // namespace

Result<Reader> ReaderRights::Of(const Json& subject) {
  const std::string key = KeyOf(subject);
  auto known = FindCached(key);
  if (!known) {
    NOS_ASSIGN(known, readers_.Do(key, [&] { return Ask(key, subject); }));
  }
  known->subject = subject;
  return *std::move(known);
}

std::optional<Reader> ReaderRights::FindCached(const std::string& key) {
  const std::scoped_lock lock(mutex_);
  const auto known = known_.find(key);
  if (known == known_.end() || clock_.Now() >= known->second.until) return std::nullopt;
  return known->second.reader;
}

// `asked`: start of the round. Named namespaces added since then are kept too.
void ReaderRights::Keep(const std::string& key, Known known, Time asked) {
  const Time now = clock_.Now();
  const std::scoped_lock lock(mutex_);
  if (const auto before = known_.find(key); before != known_.end()) {
    known.named = std::move(before->second.named);
    for (const auto& [ns, named] : known.named) {
      const bool since = named.until >= asked + kKeep;
      if (since && named.sees == true && !known.reader.may_all) known.reader.namespaces.insert(ns);
    }
  }
  if (known_.size() >= kMaxKnown) {
    std::erase_if(known_, [&](const auto& entry) { return entry.second.until <= now; });
    if (known_.size() >= kMaxKnown) known_.clear();
  }
  known_.insert_or_assign(key, std::move(known));
}

Result<Reader> ReaderRights::Ask(const std::string& key, const Json& subject) {
  if (auto known = FindCached(key)) return *std::move(known);  // another caller just asked
  const Time begin = clock_.Now();
  Known known;
  {
    const std::scoped_lock lock(mutex_);
    if (const auto before = known_.find(key); before != known_.end()) known = before->second;
  }
  // One review is enough for a reader of all namespaces; only other readers need a round.
  known.reader.user = FindString(subject, "user");
  NOS_ASSIGN(const std::vector<bool> all, May(subject, "list", {""}));
  known.reader.may_all = all.front();
  known.reader.unasked = 0;
  if (known.reader.may_all) {
    known.reader.namespaces.clear();
  } else {
    NOS_RETURN_IF_ERROR(AskAboutSome(subject, known));
  }
  if (ask_create_) NOS_RETURN_IF_ERROR(AskToCreate(subject, known.reader));
  const bool goes_on = known.reader.unasked > 0 && known.reader.namespaces.size() < kMaxSeen;
  known.until = clock_.Now() + (goes_on ? kKeepUnfinished : kKeep);
  Reader reader = known.reader;
  Keep(key, std::move(known), begin);
  return reader;
}

// First the namespaces that the reader saw before, then the next ones in turn.
Status ReaderRights::AskAboutSome(const Json& subject, Known& known) {
  const auto turn = goes_.Begin();
  if (turn == nullptr) {
    return Status(Code::kUnavailable,
                  "too many reviews of permissions are under way: retry in some seconds");
  }
  const std::set<std::string> before = std::exchange(known.reader.namespaces, {});
  std::vector<std::string> asked(before.begin(), before.end());
  const std::string last = known.last;
  const size_t turned = known.turned;
  const std::vector<std::string> turns = TakeTurns(before, known);
  asked.insert(asked.end(), turns.begin(), turns.end());
  const Time end = clock_.Now() + kMaxGo;
  for (size_t i = 0; i < asked.size(); i += kAtOnce) {
    if (clock_.Now() >= end) {
      known.last = i < before.size() ? last : asked[i - 1];
      known.turned = turned + (i < before.size() ? 0 : i - before.size());
      known.reader.unasked += asked.size() - i;
      return Status::Ok();
    }
    const std::vector<std::string> some(
        asked.begin() + static_cast<std::ptrdiff_t>(i),
        asked.begin() + static_cast<std::ptrdiff_t>(std::min(asked.size(), i + kAtOnce)));
    NOS_ASSIGN(const std::vector<bool> sees, May(subject, "list", some));
    for (size_t k = 0; k < some.size(); ++k) {
      if (sees[k] && known.reader.namespaces.size() < kMaxSeen) {
        known.reader.namespaces.insert(some[k]);
      }
    }
  }
  return Status::Ok();
}

// Round robin, starting after the last namespace. Sets `reader.unasked` to namespaces without a
// turn yet.
std::vector<std::string> ReaderRights::TakeTurns(const std::set<std::string>& before,
                                                 Known& known) const {
  std::vector<std::string> turns;
  const std::set<std::string> names = namespaces_();
  const size_t left = names.size() - std::min(names.size(), known.turned);
  const size_t most = left > 0 ? kAskFirst : kAskAgain, longest = left > 0 ? left : names.size();
  auto next = names.upper_bound(known.last);
  for (size_t i = 0; i < longest && turns.size() < most; ++i, ++next) {
    if (next == names.end()) next = names.begin();
    known.last = *next;
    ++known.turned;
    if (!before.contains(*next)) turns.push_back(*next);
  }
  known.reader.unasked = names.size() - std::min(names.size(), known.turned);
  return turns;
}

// One namespace is enough here; the namespace of a pod is checked when the pod is created.
Status ReaderRights::AskToCreate(const Json& subject, Reader& reader) {
  NOS_ASSIGN(const std::vector<bool> all, May(subject, "create", {""}));
  reader.may_create = all.front();
  const std::set<std::string> seen = reader.may_all ? namespaces_() : reader.namespaces;
  std::vector<std::string> some;
  for (auto ns = seen.begin(); ns != seen.end() && some.size() < kAskAgain; ++ns) {
    some.push_back(*ns);
  }
  if (reader.may_create || some.empty()) return Status::Ok();
  NOS_ASSIGN(const std::vector<bool> may, May(subject, "create", some));
  reader.may_create = std::ranges::find(may, true) != may.end();
  return Status::Ok();
}

Result<bool> ReaderRights::Sees(const Json& subject, const std::string& ns) {
  if (!IsNamespaceName(ns)) return false;
  const std::string key = KeyOf(subject);
  return named_.Do(key + " " + ns, [&] { return AskAboutNamed(key, subject, ns); });
}

Result<bool> ReaderRights::AskAboutNamed(const std::string& key, const Json& subject,
                                         const std::string& ns) {
  const Time now = clock_.Now();
  {
    const std::scoped_lock lock(mutex_);
    const auto known = known_.find(key);
    if (known == known_.end()) {
      return Status(Code::kUnavailable,
                    "the permissions of this user are read again: retry in some seconds");
    }
    auto& named = known->second.named;
    std::erase_if(named, [&](const auto& entry) { return entry.second.until <= now; });
    const auto found = named.find(ns);
    const std::optional<bool> cached = found == named.end() ? std::nullopt : found->second.sees;
    if (cached) return *cached;
    if (found == named.end() && named.size() >= kMaxNamed) {
      return Status(Code::kExhausted,
                    "too many requests for namespaces that you may not see: retry in a minute");
    }
    named.emplace(ns, Named{{}, now + kKeep});  // it counts even if the review fails
  }
  NOS_ASSIGN(const std::vector<bool> sees, May(subject, "list", {ns}));
  const std::scoped_lock lock(mutex_);
  const auto known = known_.find(key);
  if (known == known_.end()) return static_cast<bool>(sees.front());
  known->second.named[ns] = {sees.front(), now + kKeep};
  std::set<std::string>& seen = known->second.reader.namespaces;
  if (sees.front() && !known->second.reader.may_all && seen.size() < kMaxSeen) seen.insert(ns);
  return static_cast<bool>(sees.front());
}

Result<bool> ReaderRights::MayCreate(const Json& subject, const std::string& ns) {
  NOS_ASSIGN(const std::vector<bool> may, May(subject, "create", {ns}));
  return static_cast<bool>(may.front());
}

Result<std::vector<bool>> ReaderRights::May(const Json& subject, std::string_view verb,
                                            const std::vector<std::string>& namespaces) {
  std::vector<Json> reviews;
  reviews.reserve(namespaces.size());
  for (const std::string& ns : namespaces) reviews.push_back(ReviewOf(subject, verb, ns));
  std::vector<bool> may;
  may.reserve(namespaces.size());
  kube::Client client = kube::Client(transport_).Within(kPatience);
  for (const auto& reviewed : client.CreateAll(kAccessReviews, reviews)) {
    if (!reviewed.ok()) {
      return Status(Code::kUnavailable, fmt::format("the cluster's API server cannot be asked what "
                                                    "you may see: {}",
                                                    reviewed.status().message()));
    }
    may.push_back(IsAllowed(*reviewed));
  }
  return may;
}

}  // namespace nos::cmd
