#include "controllers/quota_status.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "cluster/resources.h"

namespace nos::controllers {
namespace {

using cluster::Condition;
using cluster::QuotaStatus;
using cluster::ResourceId;
using cluster::ResourceList;
using quota::Amount;

void Put(ResourceList& list, ResourceId id, Amount amount) {
  list[cluster::ResourceName(id)] = quota::QuantityOf(id, amount);
}

Condition InForce(const quota::Terms& terms, const std::vector<std::string>& problems) {
  if (problems.empty()) return {kInForceCondition, "True", "InForce", "", {}};
  constexpr size_t kMaxSaid = 5;
  std::string message;
  for (size_t i = 0; i < std::min(problems.size(), kMaxSaid); ++i) {
    message += (i == 0 ? "" : "; ") + problems[i];
  }
  if (problems.size() > kMaxSaid) {
    message += fmt::format("; and {} more", problems.size() - kMaxSaid);
  }
  const char* reason = terms.namespaces.empty() ? "NotInForce" : "PartlyInForce";
  return {kInForceCondition, "False", reason, std::move(message), {}};
}

void PutCondition(std::vector<Condition>& conditions, Condition condition, Time now) {
  const auto known = std::ranges::find(conditions, condition.type, &Condition::type);
  if (known == conditions.end()) {
    condition.last_transition = now;
    return conditions.push_back(std::move(condition));
  }
  condition.last_transition = known->status == condition.status ? known->last_transition : now;
  *known = std::move(condition);
}

bool SayTheSame(const std::vector<Condition>& a, const std::vector<Condition>& b) {
  return std::ranges::equal(a, b, [](const Condition& one, const Condition& other) {
    const auto said = [](const Condition& c) {
      return std::tie(c.type, c.status, c.reason, c.message);
    };
    return said(one) == said(other);
  });
}

void PatchList(const char* key, const ResourceList& known, const ResourceList& wanted,
               JsonObject& to) {
  JsonObject changed;
  for (const auto& [resource, quantity] : wanted) {
    const auto found = known.find(resource);
    if (found != known.end() && found->second == quantity) continue;
    changed[resource] = TextOf(resource, quantity);
  }
  for (const auto& [resource, quantity] : known) {
    if (!wanted.contains(resource)) changed[resource] = nullptr;
  }
  if (!changed.empty()) to[key] = std::move(changed);
}

JsonArray ListOf(const std::vector<Condition>& conditions) {
  JsonArray list;
  for (const Condition& condition : conditions) {
    list.emplace_back(JsonObject{{"type", condition.type},
                                 {"status", condition.status},
                                 {"reason", condition.reason},
                                 {"message", condition.message},
                                 {"lastTransitionTime", FormatTime(condition.last_transition)}});
  }
  return list;
}

}  // namespace

Amount GuaranteedOf(const quota::Balance& balance, size_t account, ResourceId resource) {
  const quota::Terms& terms = balance.terms(account);
  if (!terms.in_force) return 0;
  const Amount min = terms.min.Get(resource);
  Amount beyond = balance.ShareOf(account, resource);
  if (const auto limit = terms.borrowing_limit.Named(resource)) beyond = std::min(beyond, *limit);
  if (const auto max = terms.max.Named(resource)) beyond = std::min(beyond, *max - min);
  return min + std::max<Amount>(beyond, 0);
}

QuotaStatus StatusOf(quota::Ledger& ledger, size_t account,
                     const std::vector<std::string>& problems, const QuotaStatus& known, Time now) {
  const quota::Balance& balance = ledger.balance();
  const quota::Terms& terms = balance.terms(account);
  QuotaStatus status;
  for (const auto* limits : {&terms.min, &terms.max}) {
    for (const auto& [id, amount] : limits->entries()) {
      Put(status.used, id, balance.used(account).Get(id));
    }
  }
  for (const auto& [id, min] : terms.min.entries()) {
    Put(status.guaranteed, id, GuaranteedOf(balance, account, id));
    if (const Amount borrowed = balance.BorrowedBy(account, id); borrowed > 0) {
      Put(status.borrowed, id, borrowed);
    }
    if (const Amount lent = balance.LentBy(account, id); lent > 0) Put(status.lent, id, lent);
  }
  const quota::Ledger::Standing& standing = ledger.StandingOf(account);
  status.pods_over_quota = static_cast<int64_t>(standing.pods.size() - standing.in_quota);
  status.conditions = known.conditions;
  PutCondition(status.conditions, InForce(terms, problems), now);
  return status;
}

QuotaStatus UnreadableStatus(const std::string& why, const QuotaStatus& known, Time now) {
  QuotaStatus status = known;
  PutCondition(status.conditions,
               {kInForceCondition, "False", "Unreadable", "Ignoring invalid quota: " + why, {}},
               now);
  return status;
}

bool ChangesSharesOnly(const Json& patch) {
  return std::ranges::all_of(patch.at("status").get_object(), [](const auto& member) {
    return member.key() == "guaranteed" || member.key() == "lent";
  });
}

Json StatusPatch(const QuotaStatus& known, const QuotaStatus& wanted) {
  JsonObject status;
  PatchList("used", known.used, wanted.used, status);
  PatchList("guaranteed", known.guaranteed, wanted.guaranteed, status);
  PatchList("borrowed", known.borrowed, wanted.borrowed, status);
  PatchList("lent", known.lent, wanted.lent, status);
  const bool is_first = known.conditions.empty();  // 0 must be visible, too
  if (is_first || known.pods_over_quota != wanted.pods_over_quota) {
    status["podsOverQuota"] = wanted.pods_over_quota;
  }
  if (!SayTheSame(known.conditions, wanted.conditions)) {
    status["conditions"] = ListOf(wanted.conditions);
  }
  return status.empty() ? Json() : Json{{"status", std::move(status)}};
}

std::string TextOf(std::string_view resource, const Quantity& amount) {
  const bool bytes = resource == "memory" || resource == "ephemeral-storage";
  return bytes ? amount.ToBinaryString() : amount.ToString();
}

std::string TextOf(const ResourceList& amounts) {
  std::string text;
  for (const auto& [resource, quantity] : amounts) {
    text +=
        fmt::format("{}{} of {}", text.empty() ? "" : ", ", TextOf(resource, quantity), resource);
  }
  return text;
}

}  // namespace nos::controllers
