// Limits how long pending pods wait for a partitioner to create instances, or for a node's agent to
// report that the instances of evicted pods are free, before pods are evicted instead.
//
//   AgentWaits waits(engine, std::chrono::seconds(30));
//   if (waits.MayWait(pod_key, now)) return;      // begins the wait, if it has not begun
//   waits.MarkSilent(node, pod);                  // the agent exceeded the limit
//   for (const std::string& key : waits.TakeExpired(now)) ...;   // schedule these again
//
// A silent node is left out of searches for GPU capacity until its agent reports something. A pod
// that borrows, or has no quota, may wait in vain because the partitioner serves others first, so
// what it finds silent is not silent for a pod that min of its quota covers. Owned by one thread.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "scheduling/engine.h"

namespace nos::controllers {

// Limit of nodes that one attempt for one pod or gang may mark as silent.
inline constexpr int kMaxSilentAtOnce = 100;

class AgentWaits {
 public:
  // The engine must outlive this object.
  AgentWaits(const scheduling::Engine& engine, Duration limit) : engine_(engine), limit_(limit) {}

  // True while the pod should wait instead of evicting pods. The first call begins the wait.
  bool MayWait(const std::string& pod_key, Time now);
  // The pod waits no longer.
  void End(const std::string& pod_key) { until_.erase(pod_key); }
  // The next MayWait begins a new wait.
  void Restart(const std::string& pod_key) { until_[pod_key] = std::nullopt; }
  // When the pod's wait ends. Absent: it has not begun.
  std::optional<Time> Until(const std::string& pod_key) const;
  // Continues a wait that ended too early.
  void Resume(const std::string& pod_key, std::optional<Time> until) { until_[pod_key] = until; }
  // Pods whose wait has ended since the last call. No event announces this.
  std::vector<std::string> TakeExpired(Time now);
  std::optional<Time> NextDue() const;

  // `pod`: the pod that waited.
  void MarkSilent(const std::string& node, const cluster::Pod& pod);
  // The nodes that are silent for this pod.
  std::vector<std::string> SilentNodes(const cluster::Pod& pod);
  // Removes silent nodes from the snapshot if the pod requests slices of GPUs.
  void LeaveOutSilentNodes(const cluster::Pod& pod, cluster::ClusterSnapshot& snapshot);

 private:
  const scheduling::Engine& engine_;
  const Duration limit_;
  // By pod key. Absent: the wait has not begun, victims still run.
  std::map<std::string, std::optional<Time>> until_;
  // May hold entries that were erased from until_.
  std::set<std::pair<Time, std::string>> ends_;
  struct Silence {
    std::shared_ptr<const cluster::Node> node;  // as it was when it was marked
    bool for_all = false;  // false: not for pods that min of their quota covers
  };
  std::map<std::string, Silence> silent_;  // by node
};

}  // namespace nos::controllers
