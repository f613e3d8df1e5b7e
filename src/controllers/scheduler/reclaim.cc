// How the scheduler has others go for what quotas guarantee (scheduling/reclaim.h).
#include <fmt/core.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "cluster/annotations.h"
#include "controllers/pending/assumed.h"
#include "reconcile/condition.h"
#include "controllers/scheduler/internal.h"
#include "scheduling/explain_promises.h"

namespace nos::controllers {

namespace {

// Whether they are one, or something above both has limits.
bool SharesLimits(const quota::Balance& balance, size_t a, size_t b) {
  if (a == b) return true;
  const std::vector<quota::Member> others = balance.PathOf(b);
  return std::ranges::any_of(balance.PathOf(a), [&](const quota::Member& member) {
    const quota::Terms& terms = balance.terms(member.account);
    return (!terms.max.empty() || !terms.borrowing_limit.empty()) &&
           std::ranges::find(others, member.account, &quota::Member::account) != others.end();
  });
}

// Whose instance it is, as the node's agent tells; "": it does not.
std::string_view HolderOf(const cluster::NodeGpus& told, int gpu, const gpu::Placement& placement) {
  const auto there = std::ranges::find(told.gpus, gpu, &cluster::Gpu::index);
  if (there == told.gpus.end()) return "";
  const auto& instances = there->instances;
  const auto held = std::ranges::find(instances, placement, &cluster::Instance::placement);
  return held == instances.end() ? std::string_view() : held->pod;
}

// What the agent of node(i) says to be held by pods that are there no more.
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
  (void)snapshot.SetGpus(node.meta.name, std::move(gpus));  // the node is there
}

}  // namespace

bool Scheduler::HasQuota(const Framework& framework, const cluster::Pod& pod) const {
  return framework.quotas() != nullptr &&
         engine_.ledger().balance().AccountOf(pod.meta.ns).has_value();
}

// Not those on nodes that answer no more: nobody knows when these will end.
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

// What they have of their quotas counts to others as theirs no more than elsewhere; to their own
// and to what limits both it does until they are gone, which may be never.
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

// Its gang: what is left of one that lost a pod is of no use.
scheduling::EvictionUnit Scheduler::UnitOf(const Pod& pod) const {
  const std::string gang = GangOf(*pod);
  const auto around = engine_.snapshot().ShareAround();
  if (gang.empty() || around == nullptr || SizeOfGang(*pod, *around).least <= 1) return {pod};
  scheduling::EvictionUnit unit{pod};
  for (const Pod& member : gangs_.Of(gang)) {
    const auto* placed = engine_.FindPlaced(member->Key());
    if (placed != nullptr && member->Key() != pod->Key()) unit.push_back(placed->pod);
  }
  return unit;
}

// What is left of gangs of which others were evicted for a quota, if it is too little: whoever
// evicted them had no time to go on.
std::vector<Scheduler::Pod> Scheduler::RestOfGangs(const std::vector<Pod>& leaving) const {
  std::vector<Pod> rest;
  std::set<std::string> known;
  for (const Pod& pod : leaving) known.insert(pod->Key());
  const auto around = engine_.snapshot().ShareAround();
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

// Whoever promised the pod its node has yet to have others go for it.
bool Scheduler::SeesToIt(const std::string& pod_key) const {
  const auto foreign = foreign_.find(pod_key);
  return foreign == foreign_.end() ? !saw_to_it_.contains(pod_key) : !GoneFor(foreign->second.pod);
}

// Beside which there has to be room when others have gone for the pod: not of those for whom others
// are still to go.
scheduling::Promises Scheduler::PromisesToHeed(const cluster::Pod& pod,
                                               const std::set<std::string>& gang) const {
  std::set<std::string> left_out = gang;
  for (const auto& [key, promise] : foreign_) {
    if (!GoneFor(promise.pod)) left_out.insert(key);
  }
  return engine_.PromisesFor(pod, left_out);
}

// When the last has to be gone that its scheduler, another one, has leave for the pod; none: nobody
// does.
std::optional<Time> Scheduler::GoneFor(const Pod& promised) const {
  std::optional<Time> last;
  for (const std::string& key : ending_) {
    const auto* placed = engine_.FindPlaced(key);
    if (placed == nullptr || IsOnLostNode(*placed)) continue;
    const std::string by = reconcile::EvictedBy(*placed->pod);
    if (!by.empty() && by != promised->scheduler_name) continue;
    if (placed->node != promised->nominated_node && reconcile::WhyReclaimed(*placed->pod) == nullptr) continue;
    last = std::max(last, placed->pod->meta.deleted);
  }
  return last;
}

// Of what the other's quota has too much of since that one is bound, perhaps by others of it.
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

// Whether one of them is on the node.
bool Scheduler::Leaves(const std::vector<Pod>& leaving, const std::string& node) const {
  return std::ranges::any_of(
      leaving, [&](const Pod& other) { return engine_.FindPlaced(other->Key())->node == node; });
}

// As GPUs are cut, else as they will be for it by the partitioner once there is room.
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
  if (profile.reclaims) measures_.LooksForVictims();
  std::vector<Pod> leaving = Leaving();
  if (std::string why = WhatItAwaits(pod, leaving, now); !why.empty()) return why;
  const std::string nominee = engine_.NomineeNode(pod->Key());
  if (!MayMakeRoom(profile, *pod)) {
    if (!Leaves(leaving, nominee)) TakeBackPromises({pod}, client, now);
    return profile.reclaims ? WhyNeverTakes(*pod) : "";
  }
  const bool alike = nominee.empty() && pod->nominated_node.empty();
  std::string kind = alike ? pod->meta.ns + " " + KindOfPreemptor(*pod) : "";
  if (alike && hopeless_claims_.Contains(kind, engine_.changes())) return "";
  const std::vector<Pod> rest = RestOfGangs(leaving);
  leaving.insert(leaving.end(), rest.begin(), rest.end());
  cluster::ClusterSnapshot snapshot = engine_.snapshot();
  for (const Pod& other : leaving) {
    (void)snapshot.Vacate(*other, engine_.FindPlaced(other->Key())->node);  // if it is there
  }
  LeaveOutSilentNodes(*pod, snapshot);
  scheduling::Reclaim reclaim = MakeReclaim(*profile.framework, *pod, leaving, {});
  std::optional<scheduling::Preemption> found;
  bool awaits_cut = false;
  std::tie(found, awaits_cut) = FindBy(profile, reclaim, snapshot, pod, nominee);
  for (int i = 0; i < kMostSilentAtOnce && awaits_cut && leaving.empty(); ++i) {
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
  if (!found) {
    if (MayNotBeSeenYet(nominee) && HasPatience(pod->Key(), now)) {
      return std::string(scheduling::kAwaitsAgent);
    }
    TakeBackPromises({pod}, client, now);
    if (alike) hopeless_claims_.Add(std::move(kind));
    return "";
  }
  if (found->victims.empty() && leaving.empty()) {  // something else keeps it waiting
    saw_to_it_.insert(pod->Key());
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

// What was set free there so far, for a claim of which the rest is still to go.
bool Scheduler::MayNotBeSeenYet(const std::string& node) const {
  const cluster::NodeInfo* info = engine_.snapshot().Find(node);
  return info != nullptr && scheduling::IsBehind(*info);
}

// Nobody has to go if GPUs are cut that nobody uses: by the partitioner, or when what they are cut
// for now is done, or their agents have told that pods have ended.
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
