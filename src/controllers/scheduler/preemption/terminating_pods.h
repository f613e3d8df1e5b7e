// Knows which pods are being evicted or terminate after an eviction, and whose capacity is
// therefore about to become free.
//
//   TerminatingPods terminating(engine, gangs);
//   terminating.OnPod(key, pod_after, now_gone);           // for each pod event of the watch
//   if (terminating.MarkEvicted(key, for_quota)) ...;      // an eviction is about to be sent
//   for (const auto& pod : terminating.All()) snapshot.Vacate(...);
//
// A pod is evicted from MarkEvicted until the watch shows it terminating or gone, or until
// EvictionFailed. It is terminating while the watch shows that it still runs. The engine is kept
// informed (Engine::SetLeaving).
//
// Owned by one thread.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "controllers/gangs.h"
#include "scheduling/engine.h"
#include "scheduling/preemption.h"

namespace nos::controllers {

class TerminatingPods {
 public:
  using Pod = std::shared_ptr<const cluster::Pod>;

  // Both must outlive this object.
  TerminatingPods(scheduling::Engine& engine, const Gangs& gangs)
      : engine_(engine), gangs_(gangs) {}

  // `after` is null for a deleted pod. `successor`: another pod of the same name has replaced it.
  void OnPod(const std::string& key, const Pod& after, bool successor);

  // False: an eviction was sent already. `for_quota`: the pod is evicted to reclaim a quota.
  bool MarkEvicted(const std::string& key, bool for_quota);
  void EvictionFailed(const std::string& key);
  bool IsEvicted(const std::string& key) const { return evicted_.contains(key); }
  // The watch has yet to show the effect of an eviction.
  bool HasEvicted() const { return !evicted_.empty(); }

  // Evicted and terminating pods. Leaves out pods on lost nodes: it is unknown when they will end.
  std::vector<Pod> All() const;
  // Terminating pods on lost nodes whose quotas share no limit with the quota of `seen_by`. Their
  // charges count as released for it. For other quotas they count until the pods are gone, which
  // may never happen.
  std::vector<Pod> OnLostNodes(const cluster::Pod& seen_by) const;
  // Remaining members of gangs that lost members to a quota and are now too small. A scheduler that
  // was stopped meanwhile may have left them.
  std::vector<Pod> RestOfGangs(const std::vector<Pod>& leaving) const;
  // The pod with its whole gang: the rest of a gang is useless without one of its members.
  scheduling::EvictionUnit UnitOf(const Pod& pod) const;
  // When the last pod that another scheduler evicted for `nominated` has to be gone. Absent: no pod
  // is terminating for it.
  std::optional<Time> GoneFor(const cluster::Pod& nominated) const;
  // One of the pods is on the node.
  bool AnyOn(const std::vector<Pod>& leaving, const std::string& node) const;
  // Removes the pods from the snapshot.
  void Vacate(const std::vector<Pod>& leaving, cluster::ClusterSnapshot& snapshot) const;

 private:
  bool IsOnLostNode(const scheduling::Engine::Placed& placed) const;

  scheduling::Engine& engine_;
  const Gangs& gangs_;
  // Evicted pods that the watch does not yet show as terminating; true: evicted for a quota.
  std::map<std::string, bool> evicted_;
  std::set<std::string> terminating_;  // terminating pods that still run
};

}  // namespace nos::controllers
