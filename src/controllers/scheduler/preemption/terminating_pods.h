// Knows which pods are being evicted or terminate after an eviction, and whose capacity is
// therefore about to become free.
//
//   TerminatingPods terminating(engine, gangs);
//   terminating.OnPod(key, pod_after, successor, now);       // for each pod event of the watch
//   if (terminating.MarkEvicted(pod, for_quota, now)) ...;   // an eviction is about to be sent
//   for (const auto& pod : terminating.All()) snapshot.Vacate(...);
//   for (const auto& pod : terminating.TakeOverdue(now)) ...;   // count no more
//
// A pod is evicted from MarkEvicted until the watch shows the deletion or the pod is gone, or until
// EvictionFailed. It is terminating while the watch shows that it still runs.
//
// A terminating pod counts only if it ends within the maximum grace period, and until kOverdue
// after its end was due: its owner chose the grace period, and a node may fail to end it. The end
// is due at the deletionTimestamp, but no earlier than the grace period after the deletion is first
// seen, because the API server's clock may differ. One that
// ends later may be evicted like a running pod, which shortens its grace period. The engine is kept
// informed of those that count (Engine::SetLeaving).
//
// Owned by one thread.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "controllers/gangs.h"
#include "scheduling/engine.h"
#include "scheduling/preemption.h"
#include "scheduling/quota_plugin.h"

namespace nos::controllers {

// How long after its grace period a pod may end: the kubelet hears of the deletion, kills the
// containers and cleans up.
inline constexpr Duration kOverdue = std::chrono::seconds(60);

class TerminatingPods {
 public:
  using Pod = std::shared_ptr<const cluster::Pod>;

  // Both must outlive this object.
  TerminatingPods(scheduling::Engine& engine, const Gangs& gangs)
      : engine_(engine), gangs_(gangs) {}

  // Longest grace period of a pod that is evicted for a quota. Default: see QuotaOptions.
  void SetMaxGrace(Duration max_grace) { max_grace_ = max_grace; }
  Duration max_grace() const { return max_grace_; }
  // Pods whose deletion ends later count as running.
  Time LatestEnd(Time now) const { return now + max_grace_ + kOverdue; }

  // `after` is null for a deleted pod. `successor`: another pod of the same name has replaced it.
  // `at_least`: the pod may end this late, whatever its deletionTimestamp.
  void OnPod(const std::string& key, const Pod& after, bool successor, Time now,
             std::optional<Time> at_least = std::nullopt);
  // Pods that count no more since the last call, because they have not ended in time.
  std::vector<Pod> TakeOverdue(Time now);
  std::optional<Time> NextDue() const;

  // False: an eviction was sent already. `for_quota`: the pod is evicted to reclaim a quota.
  bool MarkEvicted(const Pod& pod, bool for_quota, Time now);
  void EvictionFailed(const std::string& key);
  bool IsEvicted(const std::string& key) const { return evicted_.contains(key); }
  // The watch has yet to show the effect of an eviction.
  bool HasEvicted() const { return !evicted_.empty(); }

  // Evicted and terminating pods that count. Leaves out pods on lost nodes: it is unknown when they
  // will end.
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
  // When the last pod that counts and that another scheduler evicted for `nominated` has to be
  // gone. Absent: no pod is terminating for it.
  std::optional<Time> GoneFor(const cluster::Pod& nominated) const;
  // One of the pods is on the node.
  bool AnyOn(const std::vector<Pod>& leaving, const std::string& node) const;
  // Removes the pods from the snapshot.
  void Vacate(const std::vector<Pod>& leaving, cluster::ClusterSnapshot& snapshot) const;

 private:
  // The watch does not show the effect of the eviction yet.
  struct Eviction {
    bool for_quota;
    std::optional<Time> shortens;  // deletionTimestamp that the eviction brings forward
    std::optional<Time> at_least;  // see Terminating
  };
  // A terminating pod that still runs.
  struct Terminating {
    Time at_least;  // the pod may end this late, whatever its deletionTimestamp
    Time due;       // when the pod has to be gone
    bool counts;
  };

  bool IsOnLostNode(const scheduling::Engine::Placed& placed) const;
  bool Counts(const std::string& key) const;

  scheduling::Engine& engine_;
  const Gangs& gangs_;
  Duration max_grace_ = scheduling::QuotaOptions().max_grace;
  std::map<std::string, Eviction> evicted_;
  std::map<std::string, Terminating> terminating_;
};

}  // namespace nos::controllers
