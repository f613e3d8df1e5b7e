// Makes pods run that find no node, by evicting others: pods of lower priority, or pods that borrow
// what a quota guarantees to the preemptor.
//
//   Preemptor preemptor(engine, profiles, gangs, ...);
//   std::string done = preemptor.Preempt(profile, pod, client, now);        // for one pod
//   std::string done = preemptor.PreemptForGang(gang, client, now);         // for all or none
//
// The result says what was done, or why nothing was, for the pod's condition. In order of
// preference a pod waits for evictions that have begun, waits for GPUs to be partitioned, evicts,
// or loses its nomination.
//
// Owned by one thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "controllers/gangs.h"
#include "controllers/scheduler/preemption/evictor.h"
#include "controllers/scheduler/preemption/gang_victim_search.h"
#include "controllers/scheduler/preemption/pending_gang.h"
#include "controllers/scheduler/preemption/victim_search.h"

namespace nos::controllers {

class Preemptor {
 public:
  using Pod = std::shared_ptr<const cluster::Pod>;

  // All must outlive this object; workers may be null. `wake` is called from any thread when there
  // are results to collect.
  Preemptor(scheduling::Engine& engine, const Profiles& profiles, const Gangs& gangs,
            BindingCycle& bindings, TerminatingPods& terminating, const ForeignNominations& foreign,
            Nominations& nominations, AgentWaits& waits, SchedulerMetrics& metrics,
            kube::Workers* workers, std::function<void()> wake);

  std::string Preempt(const SchedulerProfile& profile, const Pod& pod, kube::Client& client,
                      Time now);
  // Evicts for all required members or for none. In the second case nominations are removed, too.
  std::string PreemptForGang(const PendingGang& gang, kube::Client& client, Time now);
  // Applies the results of API calls (evictor.h).
  Evictor::Outcome CollectResults() { return evictor_.CollectResults(); }
  // The pod is no longer pending.
  void Forget(const std::string& pod_key) {
    evictor_.Forget(pod_key);
    held_.erase(pod_key);
  }
  // See EvictionPolicy.
  const scheduling::Plugin& quota_terms() const { return policy_.quota_terms(); }

 private:
  std::string PreemptByPriority(const SchedulerProfile& profile, const Pod& pod,
                                kube::Client& client, Time now);
  std::string ReclaimQuota(const SchedulerProfile& profile, const Pod& pod, kube::Client& client,
                           Time now);
  // True while the pod should wait for the partitioner to create instances on the node. Until then
  // the node is nominated, if min of the pod's quota covers the pod: pods that borrow would take
  // the room, and would have to be evicted for it.
  bool AwaitsPartitions(const Pod& pod, const std::string& node, kube::Client& client, Time now);
  GangPlan PlanFor(const PendingGang& gang, Time now);
  GangPlan Search(const PendingGang& gang, bool partitioned, Time now);
  bool HasQuota(const Pod& pod) const;

  scheduling::Engine& engine_;
  const Profiles& profiles_;
  const Gangs& gangs_;
  const TerminatingPods& terminating_;
  const ForeignNominations& foreign_;
  Nominations& nominations_;
  AgentWaits& waits_;
  SchedulerMetrics& metrics_;
  const EvictionPolicy policy_;
  Evictor evictor_;
  VictimSearch victims_;
  // Nodes nominated by AwaitsPartitions, by pod key: no pod was evicted for these nominations.
  std::map<std::string, std::string> held_;
  HopelessKinds hopeless_;  // pods with a quota; valid for one value of Engine::changes
};

}  // namespace nos::controllers
