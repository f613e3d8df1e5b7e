// Nominates nodes for pending pods (status.nominatedNodeName), so that no other pod gets the
// capacity that becomes free for them.
//
//   Nominations nominations(engine, queue, bindings, terminating, waits, profiles, workers);
//   nominations.Set(pod, "node-1", now);                   // in the engine only
//   nominations.Write(pod, "node-1", client);              // in the API server only
//   nominations.Withdraw({pod}, client, now);              // in both
//   nominations.Withdraw(nominations.CrowdedOutBy(*pod, "node-1"), client, now);
//
// A nomination counts in the engine as soon as it is set, whether or not it could be written. When
// it ends, pods that may fit now are scheduled again. Owned by one thread.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "controllers/scheduler/binding_cycle.h"
#include "controllers/scheduler/preemption/agent_waits.h"
#include "controllers/scheduler/preemption/terminating_pods.h"
#include "controllers/scheduler/profile.h"
#include "scheduling/engine.h"
#include "scheduling/queue.h"

namespace nos::controllers {

// Writes the pod's nominated node. Empty: removes it.
Status PatchNominatedNode(const cluster::Pod& pod, const std::string& node, kube::Client& client);

class Nominations {
 public:
  using Pod = std::shared_ptr<const cluster::Pod>;

  // All must outlive this object; workers may be null.
  Nominations(scheduling::Engine& engine, scheduling::SchedulingQueue& queue,
              const BindingCycle& bindings, const TerminatingPods& terminating, AgentWaits& waits,
              const Profiles& profiles, kube::Workers* workers);

  // An empty node removes the nomination. `by_others`: another scheduler serves the pod.
  void Set(const Pod& pod, const std::string& node, Time now, bool by_others = false);
  void Write(const Pod& pod, const std::string& node, kube::Client& client) const;
  // Also removes nominations that only the API server has: an earlier removal may have been lost.
  void Withdraw(const std::vector<Pod>& pods, kube::Client& client, Time now);
  // Removes the pod's nomination from the API server at the next WriteRemovals.
  void RemoveLater(const Pod& pod) { to_remove_.push_back(pod); }
  void WriteRemovals(kube::Client& client);

  // Pods of lower priority nominated to the node that no longer fit there beside `pod`.
  std::vector<Pod> CrowdedOutBy(const cluster::Pod& pod, const std::string& node) const;

  // All evictions for a nominated pod have been started, or have failed. The mark ends with the
  // nomination.
  void MarkEvicting(const std::string& pod_key) { evicting_.insert(pod_key); }
  void UnmarkEvicting(const std::string& pod_key) { evicting_.erase(pod_key); }
  bool IsEvicting(const std::string& pod_key) const { return evicting_.contains(pod_key); }
  const std::set<std::string>& evicting() const { return evicting_; }  // pod keys

 private:
  scheduling::Engine& engine_;
  scheduling::SchedulingQueue& queue_;
  const BindingCycle& bindings_;
  const TerminatingPods& terminating_;
  AgentWaits& waits_;
  const Profiles& profiles_;
  kube::Workers* workers_;
  std::set<std::string> evicting_;
  std::vector<Pod> to_remove_;
};

}  // namespace nos::controllers
