#include "scheduling/reclaim.h"

#include <algorithm>
#include <ranges>
#include <set>
#include <tuple>
#include <utility>

namespace nos::scheduling {
namespace {

using cluster::ClusterSnapshot;
using quota::Amount;

constexpr int32_t kSystemPriority = 2'000'000'000;  // of system-cluster-critical

// How far the account is beyond what its min covers, for its size.
double ExcessOf(const quota::Balance& balance, std::optional<size_t> account,
                cluster::ResourceId resource) {
  if (!account) return 0;
  const Amount min = balance.terms(*account).min.Get(resource);
  const Amount excess = balance.used(*account).Get(resource) - min;
  const auto weight = static_cast<double>(balance.terms(*account).quota->weight);
  return static_cast<double>(excess) / ((static_cast<double>(min) + 1) * weight);
}

// Of what the refusal is about.
Amount LackOf(const quota::Refusal& refusal) {
  return std::max<Amount>(refusal.Lack(), 1);
}

bool IsAsBad(const quota::Refusal& after, const quota::Refusal& before) {
  return after.kind == before.kind && after.quota == before.quota &&
         after.resource == before.resource && LackOf(after) >= LackOf(before);
}

bool LessImportant(const cluster::Pod& a, const cluster::Pod& b) {
  return std::tuple(a.priority, b.meta.created, b.Key()) <
         std::tuple(b.priority, a.meta.created, a.Key());
}

}  // namespace

bool IsSystemPod(const cluster::Pod& pod) {
  const auto comes_back = [](const cluster::OwnerReference& owner) {
    return owner.kind == "DaemonSet" || owner.kind == "Node";
  };
  return pod.meta.ns == "kube-system" || pod.priority >= kSystemPriority ||
         std::ranges::any_of(pod.meta.owners, comes_back);
}

Reclaim::Reclaim(quota::Ledger& ledger, quota::Balance balance, const QuotaOptions& options,
                 UnitOfPod unit_of)
    : ledger_(ledger),
      balance_(std::move(balance)),
      options_(options),
      unit_of_(std::move(unit_of)) {}

void Reclaim::CountGone(const std::vector<Pod>& pods) {
  for (const Pod& pod : pods) {
    const quota::Amounts* charge = ledger_.ChargeOf(pod->Key());
    const auto account = balance_.AccountOf(pod->meta.ns);
    if (charge == nullptr || !gone_.emplace(pod->Key(), pod).second || !account) continue;
    balance_.Add(*account, *charge, -1);
  }
}

void Reclaim::Carry(const Preemption& found, const ClusterSnapshot& snapshot, const Pod& pod) {
  CountGone(found.victims);
  const cluster::NodeInfo* node = snapshot.Find(found.node);
  if (const auto account = balance_.AccountOf(pod->meta.ns)) {
    balance_.Add(*account, quota::ChargeOf(*pod, node == nullptr ? nullptr : node->node.get(),
                                           options_.charges));
  }
}

const cluster::NodeInfo* Reclaim::NodeThatFits(const Framework& framework,
                                               const ClusterSnapshot& snapshot,
                                               std::string_view preferred) const {
  if (const cluster::NodeInfo* node = snapshot.Find(preferred); node != nullptr) {
    const Cycle cycle = framework.PreFilter(*pod_, snapshot);
    if (cycle.verdict.fits() && framework.Filter(cycle, *pod_, *node).fits()) return node;
  }
  return framework.Schedule(*pod_, snapshot, {}).node;
}

std::optional<Preemption> Reclaim::Find(const Framework& framework,
                                        const ClusterSnapshot& snapshot, const Pod& pod,
                                        std::string_view preferred) {
  pod_ = pod;
  quota::Holding claimant{balance_.AccountOf(pod->meta.ns),
                          quota::ChargeOf(*pod, nullptr, options_.charges), pod->priority};
  claim_.emplace(balance_, std::move(claimant), options_.reclaim);
  const cluster::NodeInfo* fits = NodeThatFits(framework, snapshot, preferred);
  if (fits == nullptr) {
    const PreemptionOptions everywhere{.min_candidate_percentage = 100};
    return FindPreemption(framework, snapshot, *pod, everywhere, this);
  }
  LookAt(*fits);
  Preemption found{fits->node->meta.name, {}, 0};
  if (LetsIn()) return found;
  Budgets budgets(snapshot.around());
  const auto units = More(budgets);
  if (!units) return std::nullopt;
  for (const EvictionUnit& unit : *units) {
    for (const Pod& victim : unit) {
      found.violations += budgets.Take(*victim) ? 1 : 0;
      found.victims.push_back(victim);
    }
  }
  return found;
}

void Reclaim::LookAt(const cluster::NodeInfo& node) {
  if (!quota::DependsOnNode(*pod_)) return;
  claim_->SetCharge(quota::ChargeOf(*pod_, node.node.get(), options_.charges));
}

quota::Holding Reclaim::HoldingOf(const EvictionUnit& unit) const {
  quota::Holding holding;
  holding.account = balance_.AccountOf(unit.front()->meta.ns);
  holding.priority = unit.front()->priority;
  for (const Pod& pod : unit) {
    const std::string key = pod->Key();
    if (const quota::Amounts* charge = ledger_.ChargeOf(key)) holding.charge.Add(*charge);
    holding.priority = std::max(holding.priority, pod->priority);
    holding.over_quota = holding.over_quota || ledger_.IsOverQuota(key);
    holding.is_system = holding.is_system || IsSystemPod(*pod);
  }
  return holding;
}

bool Reclaim::IsGone(const EvictionUnit& unit) const {
  return std::ranges::any_of(unit, [&](const Pod& pod) {
    return pod->meta.deleted || gone_.contains(pod->Key()) || pod->Key() == pod_->Key();
  });
}

bool Reclaim::MayGo(const EvictionUnit& unit) const {
  return !IsGone(unit) && claim_->MayTake(HoldingOf(unit));
}

void Reclaim::Count(const EvictionUnit& unit, bool gone) {
  gone ? claim_->Take(HoldingOf(unit)) : claim_->GiveBack(HoldingOf(unit));
  for (const Pod& pod : unit) gone ? void(gone_.emplace(pod->Key(), pod)) : void(gone_.erase(pod->Key()));
}

// Those that may go now or when others have gone, the least important first.
std::vector<Reclaim::Candidate> Reclaim::Borrowers(const Budgets& budgets) {
  std::vector<Candidate> candidates;
  std::set<std::string> seen;
  for (size_t account = 0; account < balance_.size(); ++account) {
    const quota::Ledger::Standing& standing = ledger_.StandingOf(account);
    const bool own = account == balance_.AccountOf(pod_->meta.ns);
    for (size_t i = own ? 0 : standing.in_quota; i < standing.pods.size(); ++i) {
      EvictionUnit unit = unit_of_(standing.pods[i]);
      if (unit.size() > 1 && !seen.insert(unit.front()->Key()).second) continue;
      if (IsGone(unit)) continue;
      Candidate candidate{std::move(unit), {}, false};
      candidate.holding = HoldingOf(candidate.unit);
      if (own && candidate.holding.priority >= pod_->priority) continue;
      candidate.guarded = std::ranges::any_of(
          candidate.unit, [&](const Pod& pod) { return budgets.Guards(*pod); });
      candidates.push_back(std::move(candidate));
    }
  }
  std::ranges::sort(candidates, [](const Candidate& a, const Candidate& b) {
    return LessImportant(*a.unit.front(), *b.unit.front());
  });
  return candidates;
}

std::optional<std::vector<EvictionUnit>> Reclaim::More(Budgets& budgets) {
  auto taken = TakeUntilLetIn(Borrowers(budgets));
  if (!taken) return std::nullopt;
  // The most important first.
  std::vector<EvictionUnit> needed;
  std::ranges::sort(*taken, [](const EvictionUnit& a, const EvictionUnit& b) {
    return LessImportant(*b.front(), *a.front());
  });
  for (EvictionUnit& unit : *taken) {
    Count(unit, false);
    if (LetsIn()) continue;
    Count(unit, true);
    needed.push_back(std::move(unit));
  }
  for (const EvictionUnit& unit : needed) Count(unit, false);
  return needed;
}

// Those that are taken stay counted; none if all of them are not enough.
std::optional<std::vector<EvictionUnit>> Reclaim::TakeUntilLetIn(
    std::vector<Candidate> candidates) {
  // Alike but for their age: the youngest of each is looked at.
  using Kind = std::tuple<std::optional<size_t>, bool, int32_t, std::vector<quota::Amounts::Entry>>;
  std::map<Kind, std::vector<const Candidate*>> kinds;
  for (const Candidate& one : candidates | std::views::reverse) {
    kinds[{one.holding.account, one.guarded, one.holding.priority, one.holding.charge.entries()}]
        .push_back(&one);
  }
  std::vector<EvictionUnit> taken;
  std::set<const std::vector<const Candidate*>*> useless;  // to what lacks now
  while (const auto refusal = claim_->WhyNot()) {
    const Amount lack = LackOf(*refusal);
    const auto worth = [&](const Candidate& one) {
      return std::tuple(!one.guarded, std::min(one.holding.charge.Get(refusal->resource), lack),
                        ExcessOf(claim_->balance(), one.holding.account, refusal->resource));
    };
    const auto is_better = [&](const Candidate& a, const Candidate& b) {
      const auto left = worth(a), right = worth(b);
      return left != right ? right < left : LessImportant(*a.unit.front(), *b.unit.front());
    };
    std::vector<const Candidate*>* best = nullptr;
    for (auto& [kind, ones] : kinds) {
      if (ones.empty() || useless.contains(&ones) ||
          ones.back()->holding.charge.Get(refusal->resource) <= 0 ||
          !claim_->MayTake(ones.back()->holding)) {
        continue;
      }
      if (best == nullptr || is_better(*ones.back(), *best->back())) best = &ones;
    }
    if (best == nullptr) {
      for (const EvictionUnit& unit : taken) Count(unit, false);
      return std::nullopt;
    }
    const EvictionUnit& unit = best->back()->unit;
    Count(unit, true);
    if (const auto still = claim_->WhyNot(); still && IsAsBad(*still, *refusal)) {
      Count(unit, false);
      useless.insert(best);
      continue;
    }
    taken.push_back(unit);
    best->pop_back();
    useless.clear();
  }
  return taken;
}

}  // namespace nos::scheduling
