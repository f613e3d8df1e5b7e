// Holds the GPUs of pods whose objects vanished before the kubelet reported that they ended: pods
// that were deleted by force or with a grace period of 0, and pods of lost nodes. Their containers
// may still run, and the kubelet refuses a pod that is bound to their devices for good
// (UnexpectedAdmissionError).
//
//   DepartedPods departed(engine, terminating, agent_timeout);
//   departed.Add(pod, gone, now);                        // the pod has left the engine
//   for (const Pod& pod : departed.OnNode(before, after, now)) Wake(pod);
//   for (const Pod& pod : departed.TakeExpired(now)) Wake(pod);
//
// A slice that the node's agent reports as used by the pod needs no help: it stays used until the
// agent reports that it is free (ClusterSnapshot). For every other GPU resource a stand-in remains
// on the node and counts as terminating. It ends
// - with the next report of the agent, if the agent reports such resources. An agent writes changes
//   only, but sees them within seconds: after `agent_timeout` without a report nothing has
//   changed, and the device was not in use;
// - when the pod's own grace period is over: after the deletion of an object the kubelet gives the
//   containers that long (kubernetes pkg/kubelet/pod_workers.go, calculateEffectiveGracePeriod).
// While the node is lost or absent neither time runs, because its kubelet does not know of the
// deletion. A stand-in on an absent node uses no quota; it counts again if the node returns.
//
// Devices that a pod claims stay in use until its ResourceClaims are released, even if it ended;
// the claims show it. A stand-in remains until then, so that pods for which others were evicted
// wait for the devices instead of evicting more.
//
// Owned by one thread.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "controllers/scheduler/preemption/terminating_pods.h"
#include "scheduling/engine.h"

namespace nos::controllers {

class DepartedPods {
 public:
  using Pod = std::shared_ptr<const cluster::Pod>;
  using Node = std::shared_ptr<const cluster::Node>;

  // Both must outlive this object.
  DepartedPods(scheduling::Engine& engine, TerminatingPods& terminating, Duration agent_timeout)
      : engine_(engine), terminating_(terminating), agent_timeout_(agent_timeout) {}

  // `gone`: its object vanished; otherwise the kubelet reported that it ended. REQUIRES: the pod
  // had a node and is no longer in the engine.
  void Add(const cluster::Pod& pod, bool gone, Time now);
  // They change the engine and return the stand-ins that they removed from it. The engine has
  // `after` already. A null `before`: the node is new.
  std::vector<Pod> OnNode(const Node& before, const Node& after, Time now);
  // The engine has removed the node. Returns the stand-ins that no longer use their quota.
  std::vector<Pod> OnNodeRemoved(const std::string& node);
  // ResourceClaims have changed.
  std::vector<Pod> OnClaims();
  std::vector<Pod> TakeExpired(Time now);
  std::optional<Time> NextDue() const;
  size_t size() const { return stand_ins_.size(); }

 private:
  struct StandIn {
    Pod pod;
    Duration grace;
    Time since, until;
  };

  void Count(const StandIn& stand_in, Time now);
  void Uncount(const std::string& key);
  bool AgentReports(const StandIn& stand_in) const;
  // A claim of the pod is still reserved for it.
  bool HoldsClaims(const cluster::Pod& pod) const;
  Duration Longest(const StandIn& stand_in) const;

  std::vector<Pod> Remove(const std::vector<std::string>& keys);

  scheduling::Engine& engine_;
  TerminatingPods& terminating_;
  Duration agent_timeout_;
  std::map<std::string, StandIn> stand_ins_;  // by the stand-in's key
};

}  // namespace nos::controllers
