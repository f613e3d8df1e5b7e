#include "controllers/scheduler/preemption/victim_search.h"

#include <fmt/core.h>

#include <algorithm>

#include "cluster/instance_search.h"
#include "controllers/gangs.h"
#include "controllers/scheduler/pods.h"
#include "scheduling/explain_promises.h"
#include "scheduling/framework.h"
#include "scheduling/pod_kind.h"

namespace nos::controllers {
namespace {

// Frees instances of node(i) that its agent still reports as held by pods that no longer exist.
void FreeOrphanedInstances(cluster::ClusterSnapshot& snapshot, size_t i) {
  if (!scheduling::IsBehind(snapshot.node(i))) return;
  cluster::NodeGpus gpus = snapshot.node(i).gpus;
  for (cluster::Gpu& gpu : gpus.gpus) {
    for (cluster::Instance& instance : gpu.instances) {
      if (instance.left) instance = {instance.placement};
    }
  }
  (void)snapshot.SetGpus(snapshot.node(i).node->meta.name,
                         std::move(gpus));  // cannot fail: the node exists
}

}  // namespace

std::string KindOfPreemptor(const cluster::Pod& pod) {
  return fmt::format("{}{} {}/{}/{}", scheduling::KindOf(pod), pod.preemption_policy, pod.priority,
                     pod.scheduler_name, GangOf(pod));
}

std::string WhyNeverPreempts(const cluster::Pod& pod) {
  return pod.preemption_policy == "Never" ? "not eligible due to preemptionPolicy=Never." : "";
}

VictimSearch::VictimSearch(scheduling::Engine& engine, const Profiles& profiles,
                           const EvictionPolicy& policy, const TerminatingPods& terminating,
                           const ForeignNominations& foreign, AgentWaits& waits)
    : engine_(engine),
      profiles_(profiles),
      policy_(policy),
      terminating_(terminating),
      foreign_(foreign),
      waits_(waits) {}

std::string VictimSearch::WhyWait(const Pod& pod, Time now) {
  // The watch may show an older value.
  cluster::Pod self = *pod;
  self.nominated_node = engine_.NomineeNode(pod->Key());
  self.preemption_policy.clear();  // a policy of Never does not exclude an existing nomination
  const cluster::NodeInfo* nominee = engine_.snapshot().Find(self.nominated_node);
  if (nominee == nullptr) return "";
  const bool waits = std::ranges::any_of(nominee->pods, [&](const Pod& p) {
    return p->priority < pod->priority && terminating_.IsEvicted(p->Key());
  });
  if (waits) return "the pods in its way on the nominated node are being evicted.";
  const scheduling::Framework& framework = *profiles_.Of(*pod).framework;
  std::string why = scheduling::WhyNotPreempt(framework, engine_.snapshot(), self);
  if (!why.empty() || !AwaitsAgent(pod, *nominee, {}, now)) return why;
  return std::string(scheduling::kAwaitsAgent);
}

std::string VictimSearch::WhyWait(const Pod& pod, const std::vector<Pod>& leaving, Time now) {
  const cluster::NodeInfo* nominee = engine_.snapshot().Find(engine_.NomineeNode(pod->Key()));
  if (nominee == nullptr || !AwaitsAgent(pod, *nominee, leaving, now)) return "";
  return std::string(scheduling::kAwaitsAgent);
}

bool VictimSearch::IsAgentBehind(const std::string& node) const {
  const cluster::NodeInfo* info = engine_.snapshot().Find(node);
  return info != nullptr && scheduling::IsBehind(*info);
}

std::optional<scheduling::Preemption> VictimSearch::ByPriority(const SchedulerProfile& profile,
                                                               const cluster::Pod& pod) {
  if (!profile.preemption || !policy_.MayPreempt(profile, pod)) return std::nullopt;
  const bool alike =
      HasNoPositiveInterPodConstraints(pod) && engine_.NomineeNode(pod.Key()).empty();
  std::string kind = alike ? KindOfPreemptor(pod) : "";
  if (alike && hopeless_.Contains(kind, engine_.openings())) return std::nullopt;
  const auto may_go = [&](const cluster::Pod& other) {
    return policy_.MayEvict(profile, pod, other);
  };
  scheduling::EachThat rule(may_go);
  cluster::ClusterSnapshot snapshot = engine_.snapshot();
  waits_.LeaveOutSilentNodes(pod, snapshot);
  auto found = scheduling::FindPreemption(*profile.framework, snapshot, pod, *profile.preemption,
                                          &rule, engine_.PromisesFor(pod));
  if (!found && alike) hopeless_.Add(std::move(kind));
  return found;
}

scheduling::Reclaim VictimSearch::MakeReclaim(const scheduling::Framework& framework,
                                              const cluster::Pod& pod,
                                              const std::vector<Pod>& leaving,
                                              const std::set<std::string>& gang, Time now) const {
  const auto evicts_itself = [this](const std::string& key) {
    return foreign_.HasEvictionsAhead(key);
  };
  const auto balance = [this, &pod, gang, evicts_itself](std::string_view node) {
    return engine_.BalanceToReclaim(pod, gang, evicts_itself, node);
  };
  scheduling::QuotaOptions options = framework.quotas()->options();
  options.charges = engine_.charge_rules();
  scheduling::Reclaim reclaim(engine_.ledger(), balance, options, [this](const Pod& victim) {
    // A pod that is being deleted counts no more in its gang.
    return victim->meta.deleted ? scheduling::EvictionUnit{victim} : terminating_.UnitOf(victim);
  });
  reclaim.SetLatestEnd(terminating_.LatestEnd(now));
  reclaim.SetPromises(foreign_.ToRespect(pod, gang));
  reclaim.CountGone(leaving);
  reclaim.CountGone(terminating_.OnLostNodes(pod));
  return reclaim;
}

// True while the agent of the nominated node has yet to report freed instances: evicting other pods
// meanwhile would be useless. When the wait is over, the node counts as silent.
bool VictimSearch::AwaitsAgent(const Pod& pod, const cluster::NodeInfo& nominee,
                               const std::vector<Pod>& leaving, Time now) {
  cluster::Pod self = *pod;
  self.nominated_node = nominee.node->meta.name;
  const SchedulerProfile& profile = profiles_.Of(*pod);
  const scheduling::Framework& framework =
      profile.reclaims ? profile.partitioning() : *profile.framework;
  cluster::ClusterSnapshot without = engine_.WithPromises(*pod);
  bool any_leaves = false;
  for (const Pod& other : leaving) {
    any_leaves |= without.Vacate(*other, self.nominated_node).ok();
  }
  if (!scheduling::AwaitsAgent(framework, self, without)) return false;
  if (any_leaves) return true;
  if (waits_.MayWait(pod->Key(), now)) return true;
  waits_.MarkSilent(nominee.node->meta.name, *pod);
  return false;
}

ReclaimResult RunReclaim(const SchedulerProfile& profile, scheduling::Reclaim& reclaim,
                         const cluster::ClusterSnapshot& snapshot,
                         const std::shared_ptr<const cluster::Pod>& pod,
                         const std::string& preferred) {
  auto found = reclaim.Find(*profile.framework, snapshot, pod, preferred);
  if (found || profile.with_partitioning == nullptr ||
      profile.with_partitioning == profile.framework) {
    return {std::move(found), false};
  }
  return {reclaim.Find(*profile.with_partitioning, snapshot, pod, preferred), true};
}

void FinishPlans(cluster::ClusterSnapshot& snapshot) {
  for (size_t i = 0; i < snapshot.size(); ++i) {
    if (!snapshot.node(i).gpus.managed) continue;
    const auto& node = snapshot.node(i).node;
    if (auto done = cluster::WithoutPlan(node); done != node) snapshot.SetNode(std::move(done));
    FreeOrphanedInstances(snapshot, i);
  }
}

}  // namespace nos::controllers
