// Chooses pods on any nodes to evict for the shortfall of a claim's quota (reclaim.h).
#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "scheduling/reclaim.h"

namespace nos::scheduling {
namespace {

using quota::Amount;

// Use of the account beyond its min, relative to min and weight.
double ExcessOf(const quota::Balance& balance, std::optional<size_t> account,
                cluster::ResourceId resource) {
  if (!account) return 0;
  const Amount min = balance.terms(*account).min.Get(resource);
  const Amount excess = balance.used(*account).Get(resource) - min;
  const auto weight = static_cast<double>(balance.terms(*account).quota->weight);
  return static_cast<double>(excess) / ((static_cast<double>(min) + 1) * weight);
}

// Missing amount of the resource that the refusal names, at least 1.
Amount LackOf(const quota::Refusal& refusal) { return std::max<Amount>(refusal.Lack(), 1); }

// Part of the missing amount that the charge covers.
Amount PartOf(const quota::Amounts& charge, const std::optional<quota::Refusal>& refusal) {
  return refusal ? std::min(charge.Get(refusal->resource), LackOf(*refusal)) : 0;
}

bool IsAsBad(const quota::Refusal& after, const quota::Refusal& before) {
  return after.kind == before.kind && after.quota == before.quota &&
         after.resource == before.resource && LackOf(after) >= LackOf(before);
}

// Requested resources that are limited by the account's quota or an ancestor.
std::vector<cluster::ResourceId> LimitedFor(const quota::Balance& balance, size_t account,
                                            const quota::Amounts& asked) {
  std::vector<cluster::ResourceId> limited;
  for (const auto& [resource, amount] : asked.entries()) {
    const auto limits = [&](const quota::Member& member) {
      const quota::Terms& terms = balance.terms(member.account);
      return terms.min.Named(resource) || terms.max.Named(resource) ||
             terms.borrowing_limit.Named(resource);
    };
    if (std::ranges::any_of(balance.PathOf(account), limits)) limited.push_back(resource);
  }
  return limited;
}

}  // namespace

bool Reclaim::HasExcess(size_t account) const {
  return std::ranges::any_of(settled_.used(account).entries(), [&](const auto& used) {
    const std::vector<quota::Member> path = settled_.PathOf(account, used.first);
    return !path.empty() && settled_.IsBeyondMin(path.front(), used.first);
  });
}

void Reclaim::Collect(const Budgets& budgets) {
  const auto own = balance_.AccountOf(pod_->meta.ns);
  if (!own) return;
  const auto limited = LimitedFor(balance_, *own, claim_->charge());
  for (size_t account = 0; account < balance_.size(); ++account) {
    if (account == own || HasExcess(account)) CollectOf(account, budgets, limited);
  }
}

void Reclaim::CollectOf(size_t account, const Budgets& budgets,
                        const std::vector<cluster::ResourceId>& limited) {
  const quota::Ledger::Standing& standing = ledger_.StandingOf(account);
  const bool own = account == balance_.AccountOf(pod_->meta.ns);
  using Key = std::tuple<int32_t, std::vector<size_t>, std::vector<Amount>>;
  std::map<Key, size_t> groups;
  auto group = groups.end();
  Key key;
  auto& [priority, guards, amounts] = key;
  for (size_t i = own ? 0 : standing.in_quota; i < standing.pods.size(); ++i) {
    const Pod& pod = standing.pods[i];
    if (own && pod->priority >= pod_->priority) continue;
    priority = pod->priority;
    guards = budgets.Of(*pod);
    amounts.clear();
    for (const auto resource : limited) amounts.push_back(standing.charges[i]->Get(resource));
    // Compared first because neighbours are mostly alike.
    if (group == groups.end() || group->first != key) {
      group = groups.try_emplace(key, groups_.size()).first;
      if (group->second == groups_.size()) groups_.push_back({account, {}, {}, guards});
    }
    groups_[group->second].pods.push_back(pod);
    groups_[group->second].charges.push_back(standing.charges[i]);
  }
}

// Advances to the next unit of the group that is not evicted. False: there is none.
bool Reclaim::Advance(Head& head) const {
  for (; head.left > 0; --head.left) {
    head.unit = WithSharers(head.group->pods[head.left - 1]);
    if (IsGone(head.unit)) continue;
    head.holding = HoldingOf(head.unit);
    return true;
  }
  return false;
}

std::vector<Reclaim::Head> Reclaim::Heads() const {
  std::vector<Head> heads;
  for (const Group& group : groups_) {
    Head head{&group, group.pods.size()};
    if (Advance(head)) heads.push_back(std::move(head));
  }
  return heads;
}

std::optional<std::vector<EvictionUnit>> Reclaim::More(Budgets& budgets) {
  const auto taken = TakeUntilLetIn(budgets);
  if (!taken) return std::nullopt;
  std::vector<Taken> sorted = *taken;
  std::ranges::sort(sorted, [](const Taken& a, const Taken& b) {
    if (a.violates != b.violates) return a.violates;
    return IsLessImportant(*b.unit.front(), *a.unit.front());
  });
  // In `sorted` order: units that should be kept come first.
  const auto take_back = [&](bool in_turn) {
    for (const Taken& one : sorted) {
      Count(one.unit, false);
      if (!LetsIn() || (in_turn && !MayGoInTurn(*taken))) Count(one.unit, true);
    }
  };
  take_back(false);
  if (!MayGoInTurn(*taken)) {
    for (const Taken& one : *taken) {
      if (!IsGone(one.unit)) Count(one.unit, true);
    }
    take_back(true);
  }
  std::vector<EvictionUnit> needed;
  for (const Taken& one : sorted) {
    if (IsGone(one.unit)) needed.push_back(one.unit);
  }
  for (const EvictionUnit& unit : needed) Count(unit, false);
  return needed;
}

// Like NodeSearch::MayGoInTurn, for pods on any nodes.
bool Reclaim::MayGoInTurn(const std::vector<Taken>& order) {
  std::vector<EvictionUnit> gone;
  for (const Taken& one : order) {
    if (IsGone(one.unit)) gone.push_back(one.unit);
  }
  for (const EvictionUnit& unit : gone) Count(unit, false);
  bool may = true;
  for (const EvictionUnit& unit : gone) {
    may = may && MayGo(unit);
    Count(unit, true);
  }
  return may;
}

// Evicts units until the quota admits the pod. The taken units stay counted. Absent: evicting all
// of them is not enough.
//
// Units are chosen in this order: without budget violation, then by their amount of the missing
// resource, then by the excess of their quota relative to its size.
//
// If no unit is left for some resource, the search restarts, unless that resource was short before.
// Units that also have much of that resource are then preferred over other units that cover the
// same amount of the first.
std::optional<std::vector<Reclaim::Taken>> Reclaim::TakeUntilLetIn(Budgets budgets) {
  const Budgets all_budgets = budgets;
  std::vector<Taken> taken;
  std::vector<Head> heads = Heads();
  std::set<const Group*> useless;        // groups that do not help against the current refusal
  std::optional<quota::Refusal> end;     // refusal at which the previous attempt ended
  std::set<cluster::ResourceId> lacked;  // resources of all refusals so far
  while (const auto refusal = claim_->WhyNot()) {
    const auto is_guarded = [&](const Head& head) {
      if (head.unit.size() == 1) return budgets.Guard(head.group->budgets);
      return std::ranges::any_of(head.unit, [&](const Pod& pod) { return budgets.Guards(*pod); });
    };
    const auto worth = [&](const Head& head) {
      return std::tuple(!is_guarded(head), PartOf(head.holding.charge, refusal),
                        PartOf(head.holding.charge, end),
                        ExcessOf(claim_->balance(), head.holding.account, refusal->resource));
    };
    const auto may_help = [&](const Head& head) {
      return !useless.contains(head.group) && head.holding.charge.Get(refusal->resource) > 0 &&
             claim_->MayTake(head.holding);
    };
    const auto is_better = [&](const Head& a, const Head& b) {
      const auto left = worth(a), right = worth(b);
      return left != right ? right < left : IsLessImportant(*a.unit.front(), *b.unit.front());
    };
    // 1. Choose the best unit against the current refusal.
    Head* best = nullptr;
    for (Head& head : heads) {
      if (may_help(head) && (best == nullptr || is_better(head, *best))) best = &head;
    }
    // 2. No unit is left: give up, or restart with the knowledge that this resource is short.
    if (best == nullptr) {
      for (const Taken& one : std::exchange(taken, {})) Count(one.unit, false);
      if (lacked.empty() || !lacked.insert(refusal->resource).second) return std::nullopt;
      end = refusal;
      budgets = all_budgets;
      heads = Heads();
      useless.clear();
      continue;
    }
    // 3. Keep the unit only if it reduces the shortfall.
    Count(best->unit, true);
    if (const auto still = claim_->WhyNot(); still && IsAsBad(*still, *refusal)) {
      Count(best->unit, false);
      useless.insert(best->group);
      continue;
    }
    // 4. Record it. Groups may help again, because the refusal may be a different one now.
    lacked.insert(refusal->resource);
    taken.push_back({best->unit, false});
    for (const Pod& pod : best->unit) taken.back().violates |= budgets.Take(*pod);
    std::erase_if(heads, [&](Head& head) { return IsGone(head.unit) && !Advance(head); });
    useless.clear();
  }
  return taken;
}

}  // namespace nos::scheduling
