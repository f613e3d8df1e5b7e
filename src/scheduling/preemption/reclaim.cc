#include "scheduling/reclaim.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "scheduling/engine/promises.h"
#include "scheduling/framework.h"

namespace nos::scheduling {
namespace {

using cluster::ClusterSnapshot;

constexpr size_t kMaxScored = 100;  // limit on feasible nodes that are scored
// A small part of all nodes: Order() puts the most promising nodes first.
constexpr PreemptionOptions kLooksAt{.min_candidate_percentage = 0, .min_candidates = 100};
constexpr int32_t kSystemPriority = 2'000'000'000;  // priority of class system-cluster-critical

// Assumes that the pod without a quota is on a node where a quota guarantees the claimant.
bool MayGoWithoutQuota(const cluster::Pod& pod, const cluster::Pod& claimant,
                       const QuotaOptions& options) {
  const bool may = options.reclaim.from_pods_without_quota || pod.priority < claimant.priority;
  return may && !IsExempt(pod, false, options);
}

}  // namespace

bool IsLessImportant(const cluster::Pod& a, const cluster::Pod& b) {
  if (a.priority != b.priority) return a.priority < b.priority;
  if (a.meta.created != b.meta.created) return a.meta.created > b.meta.created;
  return a.Key() > b.Key();
}

bool IsExempt(const cluster::Pod& pod, bool has_quota, const QuotaOptions& options) {
  if (options.exempt_namespaces.contains(pod.meta.ns)) return true;
  if (has_quota) return false;
  const auto comes_back = [](const cluster::OwnerReference& owner) {
    return owner.kind == "DaemonSet" || owner.kind == "Node";
  };
  return pod.priority >= kSystemPriority || std::ranges::any_of(pod.meta.owners, comes_back);
}

Reclaim::Reclaim(quota::Ledger& ledger, BalanceOn balance_on, const QuotaOptions& options,
                 UnitOfPod unit_of)
    : ledger_(ledger),
      balance_on_(std::move(balance_on)),
      balance_(balance_on_("")),
      settled_(ledger.balance()),
      options_(options),
      unit_of_(std::move(unit_of)) {}

void Reclaim::CountGone(const std::vector<Pod>& pods) {
  for (const Pod& pod : pods) {
    const std::string key = pod->Key();
    const auto account = balance_.AccountOf(pod->meta.ns);
    if (ledger_.ChargeOf(key) == nullptr || gone_.contains(key)) continue;
    if (account) CountAll(*account, FreedBy(EvictionUnit{pod}), -1);
    gone_.emplace(key, pod);
  }
}

quota::Amounts Reclaim::ChargeOn(const cluster::Node* node) const {
  std::set<std::string> counted = carried_;
  return ledger_.WithoutOthers(quota::ChargePartsOf(*pod_, node, options_.charges), pod_->Key())
      .TakeNew(counted);
}

quota::Amounts Reclaim::FreedBy(const EvictionUnit& unit) const {
  quota::Amounts freed;
  for (size_t i = 0; i < unit.size(); ++i) {
    const auto has_left = [&](const std::string& other) {
      const auto member = std::ranges::find(unit, other, [](const Pod& pod) { return pod->Key(); });
      return member == unit.end() ? gone_.contains(other)
                                  : member < unit.begin() + static_cast<ptrdiff_t>(i);
    };
    freed.Add(ledger_.FreedBy(unit[i]->Key(), has_left));
  }
  return freed;
}

EvictionUnit Reclaim::WithSharers(const Pod& pod) const {
  EvictionUnit unit = unit_of_(pod);
  if (pod_ == nullptr || claim_ == nullptr) return unit;
  std::set<std::string> seen;
  for (const Pod& member : unit) seen.insert(member->Key());
  for (size_t i = 0; i < unit.size(); ++i) {  // the unit grows
    if (unit[i]->claims.empty()) continue;
    for (const Pod& sharer : ledger_.SharersOf(unit[i]->Key(), claim_->charge())) {
      for (const Pod& member : unit_of_(sharer)) {
        // One that has left needs no eviction, and does not spare the others.
        if (gone_.contains(member->Key())) continue;
        if (seen.insert(member->Key()).second) unit.push_back(member);
      }
    }
  }
  return unit;
}

void Reclaim::CountAll(size_t account, const quota::Amounts& charge, int sign) {
  balance_.Add(account, charge, sign);
  settled_.Add(account, charge, sign);
  counted_[account].Add(charge, sign);
}

quota::Entitlement Reclaim::ClaimIn(const quota::Balance& balance) const {
  quota::Holding claimant{balance.AccountOf(pod_->meta.ns), ChargeOn(nullptr), pod_->priority};
  return {balance, settled_, std::move(claimant), options_.reclaim};
}

void Reclaim::Carry(const Preemption& found, const ClusterSnapshot& snapshot, const Pod& pod) {
  CountGone(found.victims);
  const cluster::NodeInfo* node = snapshot.Find(found.node);
  if (const auto account = balance_.AccountOf(pod->meta.ns)) {
    const auto charge =
        quota::ChargePartsOf(*pod, node == nullptr ? nullptr : node->node.get(), options_.charges);
    CountAll(*account, ledger_.WithoutOthers(charge, pod->Key()).TakeNew(carried_), 1);
  }
}

std::vector<const cluster::NodeInfo*> Reclaim::NodesThatFit(const Framework& framework,
                                                            const ClusterSnapshot& snapshot,
                                                            std::string_view preferred) const {
  const Cycle cycle = framework.PreFilter(*pod_, snapshot);
  if (!cycle.verdict.fits()) return {};
  const auto fits = [&](const cluster::NodeInfo& node) {
    return FilterBeside(framework, snapshot, cycle, *pod_, node, promises_).fits();
  };
  const bool depends = quota::DependsOnNode(*pod_);
  const auto kind_of = [&](const cluster::NodeInfo& node) {
    return depends ? quota::GpuWorthOf(node.node.get(), options_.charges) : quota::GpuWorth{};
  };
  std::map<quota::GpuWorth, std::vector<const cluster::NodeInfo*>> by_kind;
  std::optional<quota::GpuWorth> settled;
  const cluster::NodeInfo* first = snapshot.Find(preferred);
  if (first != nullptr && fits(*first)) by_kind[*(settled = kind_of(*first))] = {first};
  for (size_t i = 0; i < snapshot.size() && (depends || !settled); ++i) {
    const cluster::NodeInfo& node = snapshot.node(i);
    const quota::GpuWorth kind = kind_of(node);
    std::vector<const cluster::NodeInfo*>& nodes = by_kind[kind];
    if (kind == settled) continue;
    if (nodes.size() < kMaxScored && fits(node)) nodes.push_back(&node);
    if (!depends && nodes.size() == kMaxScored) break;
  }
  std::vector<const cluster::NodeInfo*> best;
  for (const auto& [kind, nodes] : by_kind) {
    if (nodes.empty()) continue;
    const std::vector<int64_t> scores = framework.Score(cycle, *pod_, snapshot, nodes);
    best.push_back(nodes[static_cast<size_t>(std::ranges::max_element(scores) - scores.begin())]);
  }
  return best;
}

std::optional<Preemption> Reclaim::Find(const Framework& framework, const ClusterSnapshot& snapshot,
                                        const Pod& pod, std::string_view preferred) {
  pod_ = pod;
  groups_.clear();
  by_worth_.clear();
  clearing_ = {};
  claim_ = &on_any_.emplace(ClaimIn(balance_));
  // 1. Prefer a node where the pod fits and is admitted: nothing is evicted.
  const auto fitting = NodesThatFit(framework, snapshot, preferred);
  for (const cluster::NodeInfo* node : fitting) {
    LookAt(*node);
    if (LetsIn()) return Preemption{node->node->meta.name, {}, 0};
  }
  // 2. Otherwise collect plans: for feasible nodes, evict only for the quota; for others, evict for
  //    capacity and the quota. If the charge depends on the node, either may be better.
  const Budgets budgets(snapshot.context());
  Collect(budgets);
  std::optional<Preemption> best;
  const auto consider = [&](std::optional<Preemption> found) {
    if (found && (!best || IsSmaller(*found, *best))) best = std::move(found);
  };
  for (const cluster::NodeInfo* node : fitting) consider(WithRoom(*node, budgets));
  if (fitting.empty() || quota::DependsOnNode(*pod_)) {
    consider(WithoutRoom(framework, snapshot, budgets));
    // 3. Otherwise also evict pods to which their quotas guarantee nothing.
    clearing_.allowed = !best && (quota::DependsOnNode(*pod_) || on_any_->IsGuaranteed());
    if (clearing_.allowed) consider(WithoutRoom(framework, snapshot, budgets));
    clearing_ = {};
  }
  // 4. If there is no plan, evict less important pods of the pod's own quota, so that min covers
  //    it.
  return best || !fitting.empty() ? best : InPlaceOfItsOwn(framework, snapshot, budgets);
}

// The node has capacity: victims are evicted only for the quota.
std::optional<Preemption> Reclaim::WithRoom(const cluster::NodeInfo& node, Budgets budgets) {
  LookAt(node);
  const auto units = More(budgets);
  if (!units) return std::nullopt;
  Preemption found{node.node->meta.name, {}, 0};
  for (const EvictionUnit& unit : *units) {
    for (const Pod& victim : unit) {
      found.violations += budgets.Take(*victim) ? 1 : 0;
      found.victims.push_back(victim);
    }
  }
  return found;
}

std::optional<Preemption> Reclaim::WithoutRoom(const Framework& framework,
                                               const ClusterSnapshot& snapshot,
                                               const Budgets& budgets) {
  if (!quota::DependsOnNode(*pod_) && !LetsIn()) {
    // No node can help if evicting all possible victims does not satisfy the quota.
    const auto taken = TakeUntilLetIn(budgets);
    if (!taken) return std::nullopt;
    for (const Taken& one : *taken) Count(one.unit, false);
  }
  return FindPreemption(framework, snapshot, *pod_, kLooksAt, this, promises_);
}

// Removes units from `own` (all counted as evicted) without which the other victims are still
// allowed.
void Reclaim::SpareOwn(const Preemption& found, std::vector<EvictionUnit>& own) {
  std::vector<Taken> order;
  for (const EvictionUnit& unit : own) order.push_back({unit, false});
  std::set<std::string> seen;
  for (const Pod& victim : found.victims) {
    if (seen.contains(victim->Key())) continue;
    order.push_back({WithSharers(victim), false});
    for (const Pod& pod : order.back().unit) seen.insert(pod->Key());
    Count(order.back().unit, true);
  }
  std::erase_if(own, [&](const EvictionUnit& unit) {
    const bool on_node =
        std::ranges::any_of(unit, [&](const Pod& pod) { return pod->node_name == found.node; });
    if (on_node) return false;
    Count(unit, false);
    if (LetsIn() && MayGoInTurn(order)) return true;
    Count(unit, true);
    return false;
  });
  for (const Taken& one : order) {
    if (seen.contains(one.unit.front()->Key())) Count(one.unit, false);
  }
}

// Less important pods of the pod's own quota use the min that would cover it. Evicts as few of them
// as that requires, on any nodes. The pod is then covered by min and may evict pods of other quotas
// for capacity.
std::optional<Preemption> Reclaim::InPlaceOfItsOwn(const Framework& framework,
                                                   const ClusterSnapshot& snapshot,
                                                   Budgets budgets) {
  const auto own = balance_.AccountOf(pod_->meta.ns);
  if (!on_any_) return std::nullopt;
  claim_ = &*on_any_;
  if (claim_->IsGuaranteed() || quota::DependsOnNode(*pod_)) return std::nullopt;
  // 1. Evict all units of the own quota that may be evicted. The pod must be covered by min then.
  std::vector<EvictionUnit> units;
  for (const Group& group : groups_) {
    if (group.account != own) continue;
    for (const Pod& pod : group.pods) units.push_back(WithSharers(pod));
  }
  const auto goes_first = [](const EvictionUnit& a, const EvictionUnit& b) {
    return IsLessImportant(*a.front(), *b.front());
  };
  std::ranges::sort(units, goes_first);
  std::erase_if(units, [&](const EvictionUnit& unit) {
    if (!MayGo(unit) || WorthOf(unit) == 0) return true;
    Count(unit, true);
    return false;
  });
  std::optional<Preemption> found;
  if (claim_->IsGuaranteed()) {
    // 2. Add back as many as possible, most important first.
    for (auto unit = units.rbegin(); unit != units.rend(); ++unit) {
      Count(*unit, false);
      if (!claim_->IsGuaranteed()) Count(*unit, true);
    }
    std::erase_if(units, [&](const EvictionUnit& unit) { return !IsGone(unit); });
    // 3. Find capacity without the remaining units. The pod is covered by min now, so pods of other
    //    quotas may be evicted for it.
    ClusterSnapshot without = snapshot;
    for (const EvictionUnit& unit : units) {
      // Fails if the node does not exist.
      for (const Pod& pod : unit) (void)without.Vacate(*pod, pod->node_name);
    }
    found = FindPreemption(framework, without, *pod_, kLooksAt, this, promises_);
    clearing_.allowed = !found;
    if (!found) found = FindPreemption(framework, without, *pod_, kLooksAt, this, promises_);
    // 4. Drop units that the plan turned out not to need.
    if (found) {
      LookAt(*without.Find(found->node));
      SpareOwn(*found, units);
    }
    clearing_ = {};
  }
  for (const EvictionUnit& unit : units) {
    Count(unit, false);
    if (!found) continue;
    for (const Pod& pod : unit) {
      found->violations += budgets.Take(*pod) ? 1 : 0;
      found->victims.push_back(pod);
    }
  }
  return found;
}

void Reclaim::LookAt(const cluster::NodeInfo& node) {
  lacks_ = ResourceShortfall(cluster::RequestsOf(*pod_), node);
  clearing_.here.clear();
  if (clearing_.allowed) {
    for (const Pod& pod : node.pods) clearing_.here.insert(pod->Key());
  }
  if (!quota::DependsOnNode(*pod_)) return;
  const quota::GpuWorth worth = quota::GpuWorthOf(node.node.get(), options_.charges);
  auto known = by_worth_.find(worth);
  if (known == by_worth_.end()) {
    quota::Balance balance = balance_on_(node.node->meta.name);
    for (const auto& [account, charge] : counted_) balance.Add(account, charge);
    known = by_worth_.emplace(worth, ClaimIn(balance)).first;
  }
  claim_ = &known->second;
  claim_->SetCharge(ChargeOn(node.node.get()));
}

quota::Holding Reclaim::HoldingOf(const EvictionUnit& unit) const {
  quota::Holding holding;
  holding.account = balance_.AccountOf(unit.front()->meta.ns);
  holding.priority = unit.front()->priority;
  holding.charge = FreedBy(unit);
  for (const Pod& pod : unit) {
    const std::string key = pod->Key();
    holding.priority = std::max(holding.priority, pod->priority);
    holding.over_quota = holding.over_quota || ledger_.IsOverQuota(key);
    holding.is_exempt = holding.is_exempt || IsExempt(*pod, holding.account.has_value(), options_);
  }
  return holding;
}

bool Reclaim::IsGone(const EvictionUnit& unit) const {
  const bool is_out = std::ranges::any_of(unit, [&](const Pod& pod) {
    const std::string key = pod->Key();
    return gone_.contains(key) || spared_.contains(key) || key == pod_->Key();
  });
  // A member that ends leaves the devices to the others, so all have to end.
  return is_out || std::ranges::all_of(unit, [&](const Pod& pod) {
           return pod->meta.deleted && *pod->meta.deleted <= latest_end_;
         });
}

bool Reclaim::MayGo(const EvictionUnit& unit) const {
  if (IsGone(unit)) return false;
  const quota::Holding holding = HoldingOf(unit);
  if (claim_->MayTake(holding)) return true;
  const auto is_here = [&](const Pod& pod) { return clearing_.here.contains(pod->Key()); };
  return std::ranges::any_of(unit, is_here) && claim_->MayClear(holding);
}

void Reclaim::Count(const EvictionUnit& unit, bool gone) {
  gone ? claim_->Take(HoldingOf(unit)) : claim_->GiveBack(HoldingOf(unit));
  for (const Pod& pod : unit)
    gone ? void(gone_.emplace(pod->Key(), pod)) : void(gone_.erase(pod->Key()));
}

bool Reclaim::MayBeEnough(const EvictionUnit& unit) const {
  return lacks_.UseOf(HoldingOf(unit).charge) == ResourceShortfall::Use::kAll;
}

double Reclaim::WorthOf(const EvictionUnit& unit) const {
  const quota::Amounts has = HoldingOf(unit).charge;
  double worth = 0;
  for (const auto& [resource, asked] : claim_->charge().entries()) {
    if (resource == cluster::kPods) continue;  // every pod has one
    worth = std::max(worth, static_cast<double>(std::min(has.Get(resource), asked)) /
                                static_cast<double>(asked));
  }
  return worth;
}

// Nodes that may have capacity after evicting all allowed pods. Nodes where one pod alone may be
// enough come first.
std::optional<std::vector<size_t>> Reclaim::Order(const ClusterSnapshot& snapshot) {
  Charges may_go = ChargesOfThoseThatMayGo();
  if (clearing_.allowed) AddThoseToClear(snapshot, may_go);
  const cluster::ResourceVector asked = cluster::RequestsOf(*pod_);
  places_.clear();
  for (size_t i = 0; i < snapshot.size(); ++i) {
    const auto place = PlaceOn(snapshot.node(i), asked, may_go);
    if (place) places_.push_back({i, place->alone, place->least});
  }
  std::ranges::sort(places_, [](const Place& a, const Place& b) {
    if ((a.alone == nullptr) != (b.alone == nullptr)) return a.alone != nullptr;
    return a.alone != nullptr ? IsLessImportant(*a.alone, *b.alone)
                              : IsLessImportant(*a.least, *b.least);
  });
  std::vector<size_t> order;
  order.reserve(places_.size());
  for (const Place& place : places_) order.push_back(place.node);
  return order;
}

std::optional<Reclaim::Place> Reclaim::PlaceOn(const cluster::NodeInfo& node,
                                               const cluster::ResourceVector& asked,
                                               const Charges& may_go) const {
  const ResourceShortfall lacks(asked, node);
  ResourceShortfall left = lacks;
  Place place{0, nullptr, nullptr};
  for (const Pod& pod : node.pods) {
    const auto found = may_go.find(pod.get());
    if (found == may_go.end()) continue;
    const quota::Amounts* charge = found->second;
    const ResourceShortfall::Use use = lacks.UseOf(*charge);
    if (use == ResourceShortfall::Use::kNone) continue;
    const auto note = [&](const cluster::Pod*& least) {
      if (least == nullptr || IsLessImportant(*pod, *least)) least = pod.get();
    };
    left.Lessen(*charge);
    note(place.least);
    if (use == ResourceShortfall::Use::kAll) note(place.alone);
  }
  if (place.least == nullptr || left.any()) return std::nullopt;
  return place;
}

// Charges of the pods that may be evicted, including other members of their gangs.
Reclaim::Charges Reclaim::ChargesOfThoseThatMayGo() const {
  size_t count = 0;
  for (const Group& group : groups_) count += group.pods.size();
  Charges may_go(count);
  ledger_.EachWithoutQuota([&](const Pod& pod, const quota::Amounts& charge) {
    if (MayGoWithoutQuota(*pod, *pod_, options_)) may_go[pod.get()] = &charge;
  });
  for (const Group& group : groups_) {
    for (size_t i = 0; i < group.pods.size(); ++i) {
      const Pod& pod = group.pods[i];
      may_go[pod.get()] = group.charges[i];
      const EvictionUnit unit = WithSharers(pod);
      if (unit.size() == 1) continue;
      for (const Pod& member : unit) may_go[member.get()] = ledger_.ChargeOf(member->Key());
    }
  }
  return may_go;
}

void Reclaim::AddThoseToClear(const ClusterSnapshot& snapshot, Charges& may_go) {
  for (size_t i = 0; i < snapshot.size(); ++i) {
    for (const Pod& pod : snapshot.node(i).pods) {
      const quota::Amounts* charge = ledger_.ChargeOf(pod->Key());
      if (charge == nullptr || may_go.contains(pod.get())) continue;
      if (claim_->IsUnprotected(HoldingOf({pod}))) may_go[pod.get()] = charge;
    }
  }
}

bool Reclaim::IsGood(const Preemption& found, size_t place) const {
  if (found.violations > 0 || found.victims.size() > 1) return false;
  const cluster::Pod* next = places_[place].alone;
  return found.victims.empty() || next == nullptr ||
         !IsLessImportant(*next, *found.victims.front());
}

}  // namespace nos::scheduling
