// Finds pods to evict for one pod, and reasons to wait instead of evicting.
//
//   VictimSearch search(engine, profiles, policy, terminating, foreign, waits);
//   std::string why = search.WhyWait(pod, now);
//   if (why.empty()) found = search.ByPriority(profile, *pod);
//
// For pods with a quota, the caller runs the Reclaim that MakeReclaim returns. Owned by one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "controllers/scheduler/preemption/agent_waits.h"
#include "controllers/scheduler/preemption/eviction_policy.h"
#include "controllers/scheduler/preemption/foreign_nominations.h"
#include "controllers/scheduler/preemption/terminating_pods.h"
#include "controllers/scheduler/profile.h"
#include "scheduling/engine.h"
#include "scheduling/preemption.h"
#include "scheduling/reclaim.h"

namespace nos::controllers {

// The reason why no pod is evicted for now.
inline constexpr std::string_view kAwaitsPartitions =
    "its GPUs can be partitioned without an eviction.";

// Pods with the same value have the same victims, except for their own nominations.
std::string KindOfPreemptor(const cluster::Pod& pod);

// Empty if the pod's preemption policy allows evictions.
std::string WhyNeverPreempts(const cluster::Pod& pod);

// Kinds of pods for which no victims were found. The set is emptied when `count` changes, which
// grows with each cluster event that could help.
class HopelessKinds {
 public:
  bool Contains(const std::string& kind, uint64_t count) {
    if (std::exchange(count_, count) != count) kinds_.clear();
    return kinds_.contains(kind);
  }
  void Add(std::string kind) { kinds_.insert(std::move(kind)); }

 private:
  std::set<std::string> kinds_;
  uint64_t count_ = 0;
};

class VictimSearch {
 public:
  using Pod = std::shared_ptr<const cluster::Pod>;

  // All must outlive this object.
  VictimSearch(scheduling::Engine& engine, const Profiles& profiles, const EvictionPolicy& policy,
               const TerminatingPods& terminating, const ForeignNominations& foreign,
               AgentWaits& waits);

  // Why a pod without a quota keeps waiting for its nominated node, e.g. for terminating victims.
  // Empty: it does not.
  std::string WhyWait(const Pod& pod, Time now);
  // The same for a pod with a quota. `leaving`: terminating pods that count as gone.
  std::string WhyWait(const Pod& pod, const std::vector<Pod>& leaving, Time now);
  // The agent has yet to report instances freed by evictions for part of the request.
  bool IsAgentBehind(const std::string& node) const;

  // Victims of lower priority. Absent: no eviction helps, or the pod may not preempt.
  std::optional<scheduling::Preemption> ByPriority(const SchedulerProfile& profile,
                                                   const cluster::Pod& pod);
  // Searches victims for the pod's quota. `gang`: keys of the other pods that are placed with it.
  // The result must not outlive the pod or this object.
  scheduling::Reclaim MakeReclaim(const scheduling::Framework& framework, const cluster::Pod& pod,
                                  const std::vector<Pod>& leaving,
                                  const std::set<std::string>& gang, Time now) const;

 private:
  bool AwaitsAgent(const Pod& pod, const cluster::NodeInfo& nominee,
                   const std::vector<Pod>& leaving, Time now);

  scheduling::Engine& engine_;
  const Profiles& profiles_;
  const EvictionPolicy& policy_;
  const TerminatingPods& terminating_;
  const ForeignNominations& foreign_;
  AgentWaits& waits_;
  HopelessKinds hopeless_;  // valid for one value of Engine::openings
};

struct ReclaimResult {
  std::optional<scheduling::Preemption> found;
  bool awaits_partitioning = false;  // the partitioner has to create instances for it
};
// Searches with GPUs as partitioned now, then as the partitioner would partition them for the pod.
ReclaimResult RunReclaim(const SchedulerProfile& profile, scheduling::Reclaim& reclaim,
                         const cluster::ClusterSnapshot& snapshot,
                         const std::shared_ptr<const cluster::Pod>& pod,
                         const std::string& preferred);

// Sets nodes to the state after their agents have carried out and reported all plans.
void FinishPlans(cluster::ClusterSnapshot& snapshot);

}  // namespace nos::controllers
