#include "cmd/query/quota_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/multiprecision/cpp_int.hpp>
#include <map>
#include <optional>
#include <set>

#include "base/text.h"
#include "controllers/quota_rules.h"
#include "controllers/quota_status.h"
#include "scheduling/claim_charges.h"
#include "scheduling/reclaim.h"

namespace nos::cmd {
namespace {

using cluster::ResourceId;
using quota::Amount;
using quota::Balance;

constexpr size_t kVictimsShown = 3;

// a * b / c, rounded down, without overflow.
Amount MultiplyDivide(Amount a, Amount b, Amount c) {
  using Wide = boost::multiprecision::int512_t;
  return static_cast<Amount>(Wide(Wide(a) * Wide(b) / Wide(c)));
}

struct Part {
  size_t account;
  Amount amount;
};

// Amounts of a resource that accounts lend each other. On each level of the tree the lenders are
// the members, the part of the parent's entitlement beyond theirs that its own namespaces may use,
// and the level above, from which the parent borrows. The borrowers are the members, the parent's
// own namespaces, and the level above, to which the parent lends. Each lender's part in each
// borrower's amount is proportional to what it lends.
class Loans {
 public:
  Loans(const Balance& balance, ResourceId resource) : balance_(balance), resource_(resource) {}

  std::vector<Part> BorrowedFrom(size_t account) {
    return Parts(account, &Level::lenders, balance_.BorrowedBy(account, resource_),
                 BelowOf(account).own_borrowed);
  }
  std::vector<Part> LentTo(size_t account) {
    return Parts(account, &Level::borrowers, balance_.LentBy(account, resource_),
                 BelowOf(account).own_lent);
  }

 private:
  struct Party {
    size_t account;
    Amount amount;
    bool above = false;  // lent by, or to, the level above this account
  };
  struct Level {
    std::vector<Party> lenders, borrowers;
    Amount own_lent = 0, own_borrowed = 0;  // the parent's own part
    Amount whole = 0;                       // the greater of the sums lent and borrowed
  };
  using Side = std::vector<Party> Level::*;

  const Level& BelowOf(std::optional<size_t> parent) {
    const auto [known, fresh] = levels_.try_emplace(parent);
    Level& level = known->second;
    if (!fresh) return level;
    Amount used = 0, lent = 0, borrowed = 0;  // by members
    for (size_t i = 0; i < balance_.size(); ++i) {
      const quota::Terms& terms = balance_.terms(i);
      if (terms.parent != parent || !terms.min.Named(resource_)) continue;
      level.lenders.push_back({i, balance_.LentBy(i, resource_)});
      level.borrowers.push_back({i, balance_.BorrowedBy(i, resource_)});
      used += balance_.used(i).Get(resource_);
      lent += level.lenders.back().amount;
      borrowed += level.borrowers.back().amount;
    }
    if (parent) AddParent(*parent, used, lent, borrowed, level);
    const auto sum = [](const std::vector<Party>& parties) {
      Amount all = 0;
      for (const Party& party : parties) all += party.amount;
      return all;
    };
    level.whole = std::max(sum(level.lenders), sum(level.borrowers));
    return level;
  }

  void AddParent(size_t parent, Amount used, Amount lent, Amount borrowed, Level& level) const {
    const quota::Terms& terms = balance_.terms(parent);
    if (!terms.min.Named(resource_)) return;
    const Amount from_above = balance_.BorrowedBy(parent, resource_);
    const Amount to_above = balance_.LentBy(parent, resource_);
    const Amount idle =
        terms.own_min.Get(resource_) - (balance_.used(parent).Get(resource_) - used);
    level.own_borrowed = std::max<Amount>(-idle, 0);
    const Amount inside = std::max<Amount>(borrowed + level.own_borrowed - from_above, 0);
    level.own_lent = std::clamp<Amount>(inside + to_above - lent, 0, std::max<Amount>(idle, 0));
    level.lenders.push_back({parent, level.own_lent});
    level.lenders.push_back({parent, from_above, true});
    level.borrowers.push_back({parent, level.own_borrowed});
    level.borrowers.push_back({parent, to_above, true});
  }

  // Parts beside the account, and parts of its own share below it.
  std::vector<Part> Parts(size_t account, Side side, Amount beside, Amount below) {
    std::vector<Part> parts;
    Divide(balance_.terms(account).parent, side, beside, true, parts);
    Divide(account, side, below, false, parts);
    return parts;
  }

  // Omits parties that get nothing.
  void Divide(std::optional<size_t> parent, Side side, Amount amount, bool up,
              std::vector<Part>& to) {
    const Level& level = BelowOf(parent);
    if (amount == 0 || level.whole == 0) return;
    Amount before = 0, given = 0;
    for (const Party& party : level.*side) {
      before += party.amount;
      const Amount part = MultiplyDivide(amount, before, level.whole) - given;
      given += part;
      if (part == 0) continue;
      if (!party.above) {
        to.push_back({party.account, part});
      } else if (up) {
        Divide(balance_.terms(party.account).parent, side, part, true, to);
      }
    }
  }

  const Balance& balance_;
  const ResourceId resource_;
  std::map<std::optional<size_t>, Level> levels_;
};

std::string NameOf(const Balance& balance, size_t account) {
  const cluster::ElasticQuota& quota = *balance.terms(account).quota;
  std::string name = quota.Key();
  for (size_t i = 0; quota.composite && i < balance.size(); ++i) {
    if (i != account && balance.terms(i).quota->Key() == name) return name + " (composite)";
  }
  return name;
}

// "6 (b/eq 4, c/eq 2)"
std::string PartsText(const Balance& balance, ResourceId resource, const std::vector<Part>& parts) {
  if (parts.empty()) return "-";
  Amount sum = 0;
  std::string who;
  for (const Part& part : parts) {
    sum += part.amount;
    who += fmt::format("{}{} {}", who.empty() ? "" : ", ", NameOf(balance, part.account),
                       quota::TextOf(resource, part.amount));
  }
  return fmt::format("{} ({})", quota::TextOf(resource, sum), who);
}

Json PartsJson(const Balance& balance, ResourceId resource, const std::vector<Part>& parts) {
  JsonObject json;
  for (const Part& part : parts) {
    json[NameOf(balance, part.account)] = quota::QuantityOf(resource, part.amount).ToString();
  }
  return json;
}

// The unit of amounts in the table. "": that of Kubernetes' notation ("16Gi" of memory), or
// unknown.
std::string_view UnitOf(const std::string& resource) {
  if (resource == quota::kGpuMemory) return "GB";
  if (resource == "cpu") return "cores";
  if (resource == cluster::kWholeGpuResource) return "GPUs";
  return cluster::IsSliceResource(resource) ? "slices" : "";
}

std::string NameWithUnit(const std::string& resource) {
  const std::string_view unit = UnitOf(resource);
  return unit.empty() ? resource : fmt::format("{} ({})", resource, unit);
}

bool IsBelow(const Balance& balance, size_t account, const std::set<size_t>& any) {
  for (auto above = balance.terms(account).parent; above; above = balance.terms(*above).parent) {
    if (any.contains(*above)) return true;
  }
  return false;
}

// "2 quotas: 60 GB of nos.nebuly.com/gpu-memory used, min 80, borrowed 20": sums over the shown
// quotas, without those below another one, whose amounts include theirs.
std::string TotalText(const Balance& balance, const std::set<size_t>& shown) {
  struct Sum {
    Amount used = 0, min = 0, borrowed = 0;
  };
  std::map<std::string, std::pair<ResourceId, Sum>> sums;  // by resource name
  for (const size_t account : shown) {
    if (IsBelow(balance, account, shown)) continue;
    for (const auto& [id, min] : balance.terms(account).min.entries()) {
      Sum& sum = sums.try_emplace(cluster::ResourceName(id), id, Sum()).first->second.second;
      sum.used += balance.used(account).Get(id);
      sum.min += min;
      sum.borrowed += balance.BorrowedBy(account, id);
    }
  }
  std::vector<std::string> parts;
  for (const auto& [resource, entry] : sums) {
    const auto& [id, sum] = entry;
    const std::string_view unit = UnitOf(resource);
    parts.push_back(fmt::format("{}{}{} of {} used, min {}, borrowed {}",
                                quota::TextOf(id, sum.used), unit.empty() ? "" : " ", unit,
                                resource, quota::TextOf(id, sum.min),
                                quota::TextOf(id, sum.borrowed)));
  }
  return fmt::format("{} {}{}{}", shown.size(), shown.size() == 1 ? "quota" : "quotas",
                     parts.empty() ? "" : ": ", Join(parts, "; "));
}

std::vector<ResourceId> NamedBy(const quota::Terms& terms) {
  std::vector<ResourceId> named;
  for (const auto* amounts : {&terms.min, &terms.max}) {
    for (const auto& [id, amount] : amounts->entries()) named.push_back(id);
  }
  std::ranges::sort(named, {}, [](ResourceId id) { return cluster::ResourceName(id); });
  const auto same = std::ranges::unique(named);
  named.erase(same.begin(), same.end());
  return named;
}

// In order of eviction, first victim first, with the scheduler's defaults.
std::vector<std::string> VictimsOf(quota::Ledger& ledger, size_t account) {
  const quota::Ledger::Standing& standing = ledger.StandingOf(account);
  std::vector<quota::Ledger::Pod> pods(
      standing.pods.begin() + static_cast<ptrdiff_t>(standing.in_quota), standing.pods.end());
  std::erase_if(pods, [](const auto& pod) {
    return pod->meta.deleted.has_value() || scheduling::IsExempt(*pod, true, {});
  });
  std::ranges::sort(
      pods, [](const auto& a, const auto& b) { return scheduling::IsLessImportant(*a, *b); });
  std::vector<std::string> victims;
  for (const auto& pod : pods) victims.push_back(pod->Key());
  return victims;
}

std::string VictimsText(const std::vector<std::string>& victims) {
  if (victims.empty()) return "-";
  std::string text;
  for (size_t i = 0; i < std::min(victims.size(), kVictimsShown); ++i) {
    text += (i > 0 ? ", " : "") + victims[i];
  }
  if (victims.size() <= kVictimsShown) return text;
  return fmt::format("{} and {} more", text, victims.size() - kVictimsShown);
}

using AllLoans = std::map<ResourceId, Loans>;

void AddQuota(quota::Ledger& ledger, size_t account, const std::vector<std::string>& broken,
              AllLoans& all_loans, Printout& out) {
  const Balance& balance = ledger.balance();
  const quota::Terms& terms = balance.terms(account);
  const std::string name = NameOf(balance, account);
  const std::vector<std::string> victims = VictimsOf(ledger, account);
  JsonObject resources;
  std::vector<std::vector<std::string>> lines;
  for (const ResourceId id : NamedBy(terms)) {
    const auto text = [&](Amount amount) { return quota::TextOf(id, amount); };
    const auto named = [&](const quota::Amounts& amounts) {
      const auto amount = amounts.Named(id);
      return amount ? text(*amount) : "-";
    };
    Loans& loans = all_loans.try_emplace(id, balance, id).first->second;
    const auto from = loans.BorrowedFrom(account), to = loans.LentTo(account);
    const Amount guaranteed = controllers::GuaranteedOf(balance, account, id);
    lines.push_back({name, NameWithUnit(cluster::ResourceName(id)), named(terms.min),
                     named(terms.max), text(balance.used(account).Get(id)), text(guaranteed),
                     PartsText(balance, id, from), PartsText(balance, id, to),
                     VictimsText(victims)});
    const auto quantity = [&](Amount amount) {
      return Json(quota::QuantityOf(id, amount).ToString());
    };
    const auto limit = [&](const quota::Amounts& amounts) {
      const auto amount = amounts.Named(id);
      return amount ? quantity(*amount) : Json();
    };
    resources[cluster::ResourceName(id)] =
        JsonObject{{"min", limit(terms.min)},
                   {"max", limit(terms.max)},
                   {"used", quantity(balance.used(account).Get(id))},
                   {"guaranteed", quantity(guaranteed)},
                   {"borrowedFrom", PartsJson(balance, id, from)},
                   {"lentTo", PartsJson(balance, id, to)}};
  }
  JsonArray namespaces, next, problems;
  for (const std::string& ns : terms.namespaces) namespaces.emplace_back(ns);
  for (const std::string& victim : victims) next.emplace_back(victim);
  for (const std::string& problem : broken) {
    problems.emplace_back(problem);
    out.warnings.push_back(fmt::format("{}: {}", name, problem));
  }
  const cluster::ElasticQuota& quota = *terms.quota;
  const std::string_view kind = quota.composite ? cluster::kCompositeQuota : cluster::kElasticQuota;
  out.Add({ToLower(std::string(kind)) + "/" + quota.Key(), std::move(lines),
           JsonObject{{"kind", kind},
                      {"namespace", quota.meta.ns},
                      {"name", quota.meta.name},
                      {"namespaces", std::move(namespaces)},
                      {"resources", std::move(resources)},
                      {"overQuota", std::move(next)},
                      {"problems", std::move(problems)}},
           CreatedOf(quota.meta)});
}

}  // namespace

quota::Ledger LedgerIn(const LiveCluster& live) {
  cluster::ClusterContext context;
  for (const auto& claim : live.claims) context.device_claims.Set(claim->Key(), claim);
  return quota::LedgerOf(live.quotas, live.snapshot, live.pods,
                         scheduling::WithClaims(live.charges, context));
}

Printout ReportQuotas(const LiveCluster& live, Time) {
  Printout out({{"QUOTA"},
                {"RESOURCE (UNIT)"},
                {"MIN"},
                {"MAX"},
                {"USED"},
                {"GUARANTEED"},
                {"BORROWED FROM"},
                {"LENT TO"},
                {"FIRST TO BE EVICTED"}});
  quota::Ledger ledger = LedgerIn(live);
  const auto problems = controllers::ProblemsInForce(ledger.balance());
  AllLoans loans;
  std::set<size_t> shown;
  for (size_t account = 0; account < ledger.balance().size(); ++account) {
    if (!live.selection.Takes(ledger.balance().terms(account).quota->meta)) continue;
    AddQuota(ledger, account, problems[account], loans, out);
    shown.insert(account);
  }
  out.total = TotalText(ledger.balance(), shown);
  return out;
}

}  // namespace nos::cmd
