// Evicts pods to reclaim what quotas guarantee (scheduling/reclaim.h).
#include <fmt/core.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "cluster/annotations.h"
#include "controllers/pending/assumed.h"
#include "controllers/scheduler/internal.h"
#include "reconcile/condition.h"
#include "scheduling/explain_promises.h"

namespace nos::controllers {

namespace {

// True if both are the same quota or have a common ancestor with limits.
bool SharesLimits(const quota::Balance& balance, size_t a, size_t b) {
  if (a == b) return true;
  const std::vector<quota::Member> others = balance.PathOf(b);
  return std::ranges::any_of(balance.PathOf(a), [&](const quota::Member& member) {
    const quota::Terms& terms = balance.terms(member.account);
    return (!terms.max.empty() || !terms.borrowing_limit.empty()) &&
           std::ranges::find(others, member.account, &quota::Member::account) != others.end();
  });
}

// The pod that holds the instance according to the node's agent. Empty: none is reported.
std::string_view HolderOf(const cluster::NodeGpus& told, int gpu, const gpu::Placement& placement) {
  const auto there = std::ranges::find(told.gpus, gpu, &cluster::Gpu::index);
  if (there == told.gpus.end()) return "";
  const auto& instances = there->instances;
  const auto held = std::ranges::find(instances, placement, &cluster::Instance::placement);
  return held == instances.end() ? std::string_view() : held->pod;
}

// Frees instances of node(i) that its agent still reports as held by pods that no longer exist.
void FreeWhatIsLeft(cluster::ClusterSnapshot& snapshot, size_t i) {
  if (!scheduling::IsBehind(snapshot.node(i))) return;
  const cluster::Node& node = *snapshot.node(i).node;
  const cluster::NodeGpus told = cluster::ReadNodeGpus(node, snapshot.catalogue());
  cluster::NodeGpus gpus = snapshot.node(i).gpus;
  for (cluster::Gpu& gpu : gpus.gpus) {
    for (cluster::Instance& instance : gpu.instances) {
      const bool left =
          instance.pod.empty() && !HolderOf(told, gpu.index, instance.placement).empty();
      instance.used = instance.used && !left;
    }
  }
  (void)snapshot.SetGpus(node.meta.name, std::move(gpus));  // cannot fail: the node exists
}

}  // namespace

bool Scheduler::HasQuota(const Framework& framework, const cluster::Pod& pod) const {
  return framework.quotas() != nullptr &&
         engine_.ledger().balance().AccountOf(pod.meta.ns).has_value();
}

// Leaves out pods on lost nodes: it is unknown when they will end.
std::vector<Scheduler::Pod> Scheduler::Leaving() const {
  std::vector<Pod> leaving;
  const auto add = [&](const std::string& key) {
    const auto* placed = engine_.FindPlaced(key);
    if (placed != nullptr && !IsOnLostNode(*placed)) leaving.push_back(placed->pod);
  };
  for (const auto& [key, for_quota] : going_) add(key);
  for (const std::string& key : ending_) {
    if (!going_.contains(key)) add(key);
  }
  return leaving;
}

// Terminating pods on lost nodes. For unrelated quotas their charges count as released. For their
// own quota and for quotas that share a limit with it they count until the pods are gone, which may
// never happen.
std::vector<Scheduler::Pod> Scheduler::LeavingLostNodes(const cluster::Pod& seen_by) const {
  const quota::Balance& balance = engine_.ledger().balance();
  const auto own = balance.AccountOf(seen_by.meta.ns);
  std::vector<Pod> leaving;
  for (const std::string& key : ending_) {
    const auto* placed = engine_.FindPlaced(key);
    if (placed == nullptr || !IsOnLostNode(*placed)) continue;
    const auto theirs = balance.AccountOf(placed->pod->meta.ns);
    if (!own || !theirs || !SharesLimits(balance, *own, *theirs)) leaving.push_back(placed->pod);
  }
  return leaving;
}

bool Scheduler::IsOnLostNode(const scheduling::Engine::Placed& placed) const {
  const cluster::NodeInfo* info = engine_.snapshot().Find(placed.node);
  return info == nullptr || scheduling::IsLost(*info->node);
}

// The pod with its whole gang: the rest of a gang is useless without one of its members.
scheduling::EvictionUnit Scheduler::UnitOf(const Pod& pod) const {
  const std::string gang = GangOf(*pod);
  const auto around = engine_.snapshot().ShareContext();
  if (gang.empty() || around == nullptr || SizeOfGang(*pod, *around).least <= 1) return {pod};
  scheduling::EvictionUnit unit{pod};
  for (const Pod& member : gangs_.Of(gang)) {
    const auto* placed = engine_.FindPlaced(member->Key());
    if (placed != nullptr && member->Key() != pod->Key()) unit.push_back(placed->pod);
  }
  return unit;
}

// Remaining members of gangs that lost members to a quota and are now too small. A scheduler that
// was stopped meanwhile may have left them.
std::vector<Scheduler::Pod> Scheduler::RestOfGangs(const std::vector<Pod>& leaving) const {
  std::vector<Pod> rest;
  std::set<std::string> known;
  for (const Pod& pod : leaving) known.insert(pod->Key());
  const auto around = engine_.snapshot().ShareContext();
  for (const Pod& pod : leaving) {
    const auto going = going_.find(pod->Key());
    if (going != going_.end() ? !going->second : reconcile::WhyReclaimed(*pod) == nullptr) continue;
    const scheduling::EvictionUnit unit = UnitOf(pod);
    const auto stay = std::ranges::count_if(
        unit, [&](const Pod& member) { return !known.contains(member->Key()); });
    if (unit.size() == 1 || stay >= SizeOfGang(*pod, *around).least) continue;
    for (const Pod& member : unit) {
      if (known.insert(member->Key()).second) rest.push_back(member);
    }
  }
  return rest;
}

scheduling::Reclaim Scheduler::MakeReclaim(const Framework& framework, const cluster::Pod& pod,
                                           const std::vector<Pod>& leaving,
                                           const std::set<std::string>& gang) {
  const auto sees_to_it = [this](const std::string& key) { return SeesToIt(key); };
  const auto balance = [this, &pod, gang, sees_to_it](std::string_view node) {
    return engine_.BalanceToReclaim(pod, gang, sees_to_it, node);
  };
  scheduling::Reclaim reclaim(engine_.ledger(), balance, framework.quotas()->options(),
                              [this](const Pod& victim) { return UnitOf(victim); });
  reclaim.Heed(PromisesToHeed(pod, gang));
  reclaim.CountGone(leaving);
  reclaim.CountGone(LeavingLostNodes(pod));
  return reclaim;
}

// True if the scheduler that nominated the pod still has to start evictions for it.
bool Scheduler::SeesToIt(const std::string& pod_key) const {
  const auto foreign = foreign_.find(pod_key);
  return foreign == foreign_.end() ? !has_preempted_for_.contains(pod_key)
                                   : !GoneFor(foreign->second.pod);
}

// Nominations that must stay possible after evictions for the pod. Nominations whose own evictions
// have not started are left out.
scheduling::Promises Scheduler::PromisesToHeed(const cluster::Pod& pod,
                                               const std::set<std::string>& gang) const {
  std::set<std::string> left_out = gang;
  for (const auto& [key, promise] : foreign_) {
    if (!GoneFor(promise.pod)) left_out.insert(key);
  }
  return engine_.PromisesFor(pod, left_out);
}

// The time by which the last pod evicted for `promised` by its own, other scheduler has to be gone.
// Absent: no pod is terminating for it.
std::optional<Time> Scheduler::GoneFor(const Pod& promised) const {
  std::optional<Time> last;
  for (const std::string& key : ending_) {
    const auto* placed = engine_.FindPlaced(key);
    if (placed == nullptr || IsOnLostNode(*placed)) continue;
    const std::string by = reconcile::EvictedBy(*placed->pod);
    if (!by.empty() && by != promised->scheduler_name) continue;
    if (placed->node != promised->nominated_node &&
        reconcile::WhyReclaimed(*placed->pod) == nullptr)
      continue;
    last = std::max(last, placed->pod->meta.deleted);
  }
  return last;
}

// True if binding `bound` made its quota exceed what the pod's quota may reclaim. The victim may be
// another pod of the same quota.
bool Scheduler::MayTake(const cluster::Pod& pod, const cluster::Pod& bound) const {
  const quota::Balance& balance = engine_.ledger().balance();
  const auto own = balance.AccountOf(pod.meta.ns), theirs = balance.AccountOf(bound.meta.ns);
  const quota::Amounts* charge = engine_.ledger().ChargeOf(bound.Key());
  if (!own || !theirs || own == theirs || charge == nullptr) return false;
  const quota::Amounts asked = quota::ChargeOf(pod, nullptr, engine_.charge_rules());
  const bool guaranteed = balance.IsGuaranteed(*own, asked) || quota::DependsOnNode(pod);
  if (!guaranteed && !balance.WithinShare(balance.PathOf(*own).front(), asked)) return false;
  return std::ranges::any_of(charge->entries(), [&](const auto& entry) {
    const std::vector<quota::Member> path = balance.PathOf(*theirs, entry.first);
    if (path.empty()) return false;
    return guaranteed ? balance.IsBeyondMin(path.front(), entry.first)
                      : balance.IsBeyondShare(path.front(), entry.first);
  });
}

std::string Scheduler::WhatItAwaits(const Pod& pod, const std::vector<Pod>& leaving, Time now) {
  const cluster::NodeInfo* nominee = engine_.snapshot().Find(engine_.NomineeNode(pod->Key()));
  if (nominee == nullptr || !AwaitsAgent(pod, *nominee, leaving, now)) return "";
  return std::string(scheduling::kAwaitsAgent);
}

// True if one of them is on the node.
bool Scheduler::Leaves(const std::vector<Pod>& leaving, const std::string& node) const {
  return std::ranges::any_of(
      leaving, [&](const Pod& other) { return engine_.FindPlaced(other->Key())->node == node; });
}

// First with GPUs as partitioned now, then as the partitioner would partition them for the pod.
std::pair<std::optional<scheduling::Preemption>, bool> Scheduler::FindBy(
    const SchedulerProfile& profile, scheduling::Reclaim& reclaim,
    const cluster::ClusterSnapshot& snapshot, const Pod& pod, const std::string& preferred) {
  auto found = reclaim.Find(*profile.framework, snapshot, pod, preferred);
  if (found || profile.cutting == nullptr || profile.cutting == profile.framework) {
    return {std::move(found), false};
  }
  return {reclaim.Find(*profile.cutting, snapshot, pod, preferred), true};
}

std::string Scheduler::ReclaimFor(const SchedulerProfile& profile, const Pod& pod,
                                  kube::Client& client, Time now) {
  // 1. Wait if earlier evictions for the pod have yet to take effect: more would be useless.
  if (profile.reclaims) measures_.LooksForVictims();
  std::vector<Pod> leaving = Leaving();
  if (std::string why = WhatItAwaits(pod, leaving, now); !why.empty()) return why;

  // 2. Stop if the pod may not evict, or if a pod like it found no victims since the last change.
  const std::string nominee = engine_.NomineeNode(pod->Key());
  if (!MayMakeRoom(profile, *pod)) {
    if (!Leaves(leaving, nominee)) TakeBackPromises({pod}, client, now);
    return profile.reclaims ? WhyNeverTakes(*pod) : "";
  }
  const bool alike = nominee.empty() && pod->nominated_node.empty();
  std::string kind = alike ? pod->meta.ns + " " + KindOfPreemptor(*pod) : "";
  if (alike && hopeless_claims_.Contains(kind, engine_.changes())) return "";

  // 3. Search victims in a snapshot in which terminating pods and the rest of their gangs are gone.
  const std::vector<Pod> rest = RestOfGangs(leaving);
  leaving.insert(leaving.end(), rest.begin(), rest.end());
  cluster::ClusterSnapshot snapshot = engine_.snapshot();
  for (const Pod& other : leaving) {
    // Ignored: the snapshot may no longer have it.
    (void)snapshot.Vacate(*other, engine_.FindPlaced(other->Key())->node);
  }
  LeaveOutSilentNodes(*pod, snapshot);
  scheduling::Reclaim reclaim = MakeReclaim(*profile.framework, *pod, leaving, {});
  std::optional<scheduling::Preemption> found;
  bool awaits_cut = false;
  std::tie(found, awaits_cut) = FindBy(profile, reclaim, snapshot, pod, nominee);

  // 4. Prefer partitioning to evictions, as long as partitioner and agents act in time. Nodes where
  //    they do not are left out of the next searches.
  for (int i = 0; i < kMaxSilentAtOnce && awaits_cut && leaving.empty(); ++i) {
    if (!found || !found->victims.empty()) break;
    if (HasPatience(pod->Key(), now)) return std::string(kAwaitsCut);
    CountAsSilent(found->node);
    snapshot.RemoveNode(found->node);
    std::tie(found, awaits_cut) = FindBy(profile, reclaim, snapshot, pod, nominee);
  }
  if (found && !found->victims.empty()) {
    const bool spared = IsSparedByCuts(profile, reclaim, std::move(snapshot), pod);
    if (spared && HasPatience(pod->Key(), now)) return std::string(kAwaitsCut);
  }

  // 5. Give up, or nominate the node and evict.
  if (!found) {
    if (MayNotBeSeenYet(nominee) && HasPatience(pod->Key(), now)) {
      return std::string(scheduling::kAwaitsAgent);
    }
    TakeBackPromises({pod}, client, now);
    if (alike) hopeless_claims_.Add(std::move(kind));
    return "";
  }
  // Something other than capacity keeps the pod pending.
  if (found->victims.empty() && leaving.empty()) {
    has_preempted_for_.insert(pod->Key());
    return "";
  }
  found->victims.insert(found->victims.end(), rest.begin(), rest.end());
  MakeRoom({{pod, found->node}}, found->victims, client, now);
  TakeBackPromises(LesserNominated(*pod, found->node), client, now);
  patience_[pod->Key()] = std::nullopt;
  if (found->victims.empty()) return "the pods in its way are being evicted.";
  return fmt::format("{} pods are evicted for what its elastic quota has a right to.",
                     found->victims.size());
}

// True while the agent has yet to report instances freed by evictions for part of the request.
bool Scheduler::MayNotBeSeenYet(const std::string& node) const {
  const cluster::NodeInfo* info = engine_.snapshot().Find(node);
  return info != nullptr && scheduling::IsBehind(*info);
}

// True if no eviction is needed, because unused GPUs can be partitioned for the pod: by the
// partitioner, or after current plans are carried out and agents have reported ended pods.
bool Scheduler::IsSparedByCuts(const SchedulerProfile& profile, scheduling::Reclaim& reclaim,
                               cluster::ClusterSnapshot snapshot, const Pod& pod) {
  if (!AsksForSlices(*pod, GivesWhole(snapshot))) return false;
  FinishPlans(snapshot);
  const Framework& cutting = profile.cutting != nullptr ? *profile.cutting : *profile.framework;
  const auto other = reclaim.Find(cutting, snapshot, pod);
  return other && other->victims.empty();
}

void Scheduler::FinishPlans(cluster::ClusterSnapshot& snapshot) {
  for (size_t i = 0; i < snapshot.size(); ++i) {
    if (!snapshot.node(i).gpus.managed) continue;
    const cluster::Node& node = *snapshot.node(i).node;
    if (const std::string plan = cluster::SpecPlan(node); plan != cluster::StatusPlan(node)) {
      auto done = std::make_shared<cluster::Node>(node);
      done->meta.annotations[std::string(cluster::kStatusPlan)] = plan;
      snapshot.SetNode(std::move(done));
    }
    FreeWhatIsLeft(snapshot, i);
  }
}

}  // namespace nos::controllers
