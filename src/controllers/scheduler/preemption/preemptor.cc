#include "controllers/scheduler/preemption/preemptor.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <utility>

#include "controllers/pending/assumed.h"
#include "scheduling/cycle.h"
#include "scheduling/explain_promises.h"
#include "scheduling/framework.h"

namespace nos::controllers {
namespace {

// The node where no eviction is needed, because unused GPUs can be partitioned for the pod: by the
// partitioner, or after current plans are carried out and agents have reported ended pods. Empty:
// there is none.
std::string SparedByPartitioningOn(const SchedulerProfile& profile, scheduling::Reclaim& reclaim,
                                   cluster::ClusterSnapshot snapshot,
                                   const std::shared_ptr<const cluster::Pod>& pod,
                                   const std::string& preferred) {
  if (!AsksForSlices(*pod, GivesWhole(snapshot))) return "";
  FinishPlans(snapshot);
  auto other = reclaim.Find(profile.partitioning(), snapshot, pod, preferred);
  return other && other->victims.empty() ? std::move(other->node) : "";
}

// True if there is such a node for a pod that preempts by priority.
bool IsSparedByPartitioning(const SchedulerProfile& profile, cluster::ClusterSnapshot snapshot,
                            const cluster::Pod& pod, const scheduling::Promises& promises) {
  if (!AsksForSlices(pod, GivesWhole(snapshot))) return false;
  FinishPlans(snapshot);
  const scheduling::Framework& framework = profile.partitioning();
  const scheduling::Cycle cycle = framework.PreFilter(pod, snapshot);
  if (!cycle.verdict.fits()) return false;
  for (size_t i = 0; i < snapshot.size(); ++i) {
    const cluster::NodeInfo& node = snapshot.node(i);
    if (FilterBeside(framework, snapshot, cycle, pod, node, promises).fits()) return true;
  }
  return false;
}

}  // namespace

Preemptor::Preemptor(scheduling::Engine& engine, const Profiles& profiles, const Gangs& gangs,
                     BindingCycle& bindings, TerminatingPods& terminating,
                     const ForeignNominations& foreign, Nominations& nominations, AgentWaits& waits,
                     SchedulerMetrics& metrics, kube::Workers* workers, std::function<void()> wake)
    : engine_(engine),
      profiles_(profiles),
      gangs_(gangs),
      terminating_(terminating),
      foreign_(foreign),
      nominations_(nominations),
      waits_(waits),
      metrics_(metrics),
      policy_(engine),
      evictor_(engine, bindings, terminating, nominations, metrics, workers, std::move(wake)),
      victims_(engine, profiles, policy_, terminating, foreign, waits) {}

std::string Preemptor::Preempt(const SchedulerProfile& profile, const Pod& pod,
                               kube::Client& client, Time now) {
  const bool for_quota = HasQuota(pod);
  evictor_.Retry(pod, for_quota, client, now);
  return for_quota ? ReclaimQuota(profile, pod, client, now)
                   : PreemptByPriority(profile, pod, client, now);
}

std::string Preemptor::PreemptByPriority(const SchedulerProfile& profile, const Pod& pod,
                                         kube::Client& client, Time now) {
  if (profile.preemption) metrics_.LooksForVictims();
  std::string why = victims_.WhyWait(pod, now);
  if (!why.empty()) return why;
  const auto found = victims_.ByPriority(profile, *pod);
  if (!found) {
    nominations_.Withdraw({pod}, client, now);
    return profile.preemption ? WhyNeverPreempts(*pod) : "";
  }
  cluster::ClusterSnapshot snapshot = engine_.snapshot();
  waits_.LeaveOutSilentNodes(*pod, snapshot);
  const bool spared =
      IsSparedByPartitioning(profile, std::move(snapshot), *pod, engine_.PromisesFor(*pod));
  if (spared && waits_.MayWait(pod->Key(), now)) return std::string(kAwaitsPartitions);
  waits_.End(pod->Key());
  evictor_.Start({{pod, found->node}}, found->victims, false, client, now);
  nominations_.Withdraw(nominations_.CrowdedOutBy(*pod, found->node), client, now);
  return fmt::format("{} pods of lower priority are evicted from {}.", found->victims.size(),
                     found->node);
}

std::string Preemptor::ReclaimQuota(const SchedulerProfile& profile, const Pod& pod,
                                    kube::Client& client, Time now) {
  // 1. Wait if earlier evictions for the pod have yet to take effect: more would be useless.
  if (profile.reclaims) metrics_.LooksForVictims();
  const std::string key = pod->Key();
  std::vector<Pod> leaving = terminating_.All();
  const std::string nominee = engine_.NomineeNode(key);
  const auto held = held_.find(key);
  if (held == held_.end() || held->second != nominee) {
    std::string why = victims_.WhyWait(pod, leaving, now);
    if (!why.empty()) return why;
  }

  // 2. Stop if the pod may not evict, or if a pod like it found no victims since the last change.
  if (!policy_.MayPreempt(profile, *pod)) {
    if (!terminating_.AnyOn(leaving, nominee)) nominations_.Withdraw({pod}, client, now);
    return profile.reclaims ? WhyNeverPreempts(*pod) : "";
  }
  const bool alike = nominee.empty() && pod->nominated_node.empty();
  std::string kind = alike ? pod->meta.ns + " " + KindOfPreemptor(*pod) : "";
  if (alike && hopeless_.Contains(kind, engine_.changes())) return "";

  // 3. Search victims in a snapshot in which terminating pods and the rest of their gangs are gone.
  const std::vector<Pod> rest = terminating_.RestOfGangs(leaving);
  leaving.insert(leaving.end(), rest.begin(), rest.end());
  cluster::ClusterSnapshot snapshot = engine_.snapshot();
  terminating_.Vacate(leaving, snapshot);
  waits_.LeaveOutSilentNodes(*pod, snapshot);
  scheduling::Reclaim reclaim = victims_.MakeReclaim(*profile.framework, *pod, leaving, {}, now);
  auto [found, awaits_partitioning] = RunReclaim(profile, reclaim, snapshot, pod, nominee);

  // 4. Prefer partitioning to evictions, as long as partitioner and agents act in time. Nodes where
  //    they do not are left out of the next searches. A pod that min covers also waits where there
  //    is room only after a node's present plan.
  for (int i = 0; i < kMaxSilentAtOnce && awaits_partitioning && leaving.empty(); ++i) {
    if (!found || !found->victims.empty()) break;
    if (AwaitsPartitions(pod, found->node, client, now)) return std::string(kAwaitsPartitions);
    waits_.MarkSilent(found->node, *pod);
    snapshot.RemoveNode(found->node);
    ReclaimResult next = RunReclaim(profile, reclaim, snapshot, pod, nominee);
    found = std::move(next.found);
    awaits_partitioning = next.awaits_partitioning;
  }
  if (found ? !found->victims.empty() : engine_.IsGuaranteed(*pod, "")) {
    const std::string spared =
        SparedByPartitioningOn(profile, reclaim, std::move(snapshot), pod, nominee);
    if (!spared.empty() && AwaitsPartitions(pod, spared, client, now)) {
      return std::string(kAwaitsPartitions);
    }
  }

  // 5. Give up, or nominate the node and evict.
  if (!found) {
    if (victims_.IsAgentBehind(nominee) && waits_.MayWait(key, now)) {
      return std::string(scheduling::kAwaitsAgent);
    }
    nominations_.Withdraw({pod}, client, now);
    if (alike) hopeless_.Add(std::move(kind));
    return "";
  }
  // Something other than capacity keeps the pod pending.
  if (found->victims.empty() && leaving.empty()) {
    nominations_.MarkEvicting(key);
    return "";
  }
  found->victims.insert(found->victims.end(), rest.begin(), rest.end());
  held_.erase(key);
  evictor_.Start({{pod, found->node}}, found->victims, true, client, now);
  nominations_.Withdraw(nominations_.CrowdedOutBy(*pod, found->node), client, now);
  waits_.Restart(key);
  if (found->victims.empty()) return "the pods in its way are being evicted.";
  return fmt::format("Evicting {} Pods that borrow what its elastic quota guarantees.",
                     found->victims.size());
}

bool Preemptor::AwaitsPartitions(const Pod& pod, const std::string& node, kube::Client& client,
                                 Time now) {
  const std::string key = pod->Key();
  if (!waits_.MayWait(key, now)) return false;
  if (engine_.NomineeNode(key) == node || !engine_.IsGuaranteed(*pod, node)) return true;
  const std::optional<Time> until = waits_.Until(key);
  nominations_.Set(pod, node, now);  // ends the wait
  waits_.Resume(key, until);
  held_[key] = node;
  nominations_.MarkEvicting(key);
  nominations_.Write(pod, node, client);
  return true;
}

std::string Preemptor::PreemptForGang(const PendingGang& gang, kube::Client& client, Time now) {
  for (const Pod& member : gang.waiting) evictor_.Retry(member, HasQuota(member), client, now);
  const GangPlan plan = PlanFor(gang, now);
  if (!plan.why_not.empty()) return plan.why_not;
  const Pod& first = gang.waiting.front();
  const bool waits = plan.victims.empty() && plan.waits;
  if ((plan.victims.empty() && !waits) || gang.placed + plan.places.size() < gang.least) {
    const bool unseen = std::ranges::any_of(gang.waiting, [&](const Pod& member) {
      return victims_.IsAgentBehind(engine_.NomineeNode(member->Key()));
    });
    if (unseen && waits_.MayWait(first->Key(), now)) return std::string(scheduling::kAwaitsAgent);
    nominations_.Withdraw(gang.waiting, client, now);
    return WhyNeverPreempts(*first);
  }
  for (const auto& [member, node] : plan.places) waits_.End(member->Key());
  evictor_.Start(plan.places, plan.victims, HasQuota(plan.places.front().first), client, now);
  std::set<std::string> nodes;
  for (const auto& [member, node] : plan.places) nodes.insert(node);
  for (const std::string& node : nodes) {
    nominations_.Withdraw(nominations_.CrowdedOutBy(*first, node), client, now);
  }
  if (waits) return "the pods in its way are being evicted.";
  return fmt::format("{} pods of lower priority are evicted.", plan.victims.size());
}

// Prefers partitioning to evictions, as ReclaimQuota does.
GangPlan Preemptor::PlanFor(const PendingGang& gang, Time now) {
  GangPlan plan = Search(gang, false, now);
  const Pod& first = gang.waiting.front();
  if (!HasQuota(first) || !AskForSlices(gang.waiting, engine_.snapshot())) return plan;
  const auto is_enough = [&](const GangPlan& found) {
    return gang.placed + found.places.size() >= gang.least;
  };
  const auto awaits_partitioning = [&] {
    const bool others_go = !plan.victims.empty() || plan.waits;
    return !others_go && !plan.awaits_partitioning.empty() && is_enough(plan);
  };
  GangPlan wait;
  wait.why_not = kAwaitsPartitions;
  for (int i = 0; i < kMaxSilentAtOnce && awaits_partitioning(); ++i) {
    if (waits_.MayWait(first->Key(), now)) return wait;
    for (const std::string& node : plan.awaits_partitioning) waits_.MarkSilent(node, *first);
    plan = Search(gang, false, now);
  }
  if (plan.victims.empty()) return plan;
  const bool spared = is_enough(Search(gang, true, now));
  return spared && waits_.MayWait(first->Key(), now) ? std::move(wait) : std::move(plan);
}

GangPlan Preemptor::Search(const PendingGang& gang, bool partitioned, Time now) {
  std::set<std::string> members;
  for (const Pod& member : gangs_.Of(gang.name)) members.insert(member->Key());
  GangVictimSearch search(engine_, profiles_, policy_, terminating_, foreign_, waits_, victims_,
                          {gang, std::move(members), now, partitioned});
  GangPlan plan = search.Run();
  if (plan.searched && !partitioned) metrics_.LooksForVictims();
  return plan;
}

bool Preemptor::HasQuota(const Pod& pod) const {
  return policy_.HasQuota(*profiles_.Of(*pod).framework, *pod);
}

}  // namespace nos::controllers
