// Invariant checker for the autoscaler's moves and node removals. Checks the objects in the API
// server, the autoscaler's requests, and the nodes that the infrastructure removes.
//
//   MoveChecker checker;
//   checker.See(before, after, now);            // for each change of a pod in the API server
//   checker.Asked("ml/train-0", uid, now);      // the autoscaler requests its eviction
//   checker.SeeScale({"a100", 1, 4}, 3, 2);     // the requested size of a pool has changed
//   checker.SeeRemoval("gpu-7", {"a100", 1, 4}, 2, now);
//   for (std::string& problem : checker.TakeProblems()) ...
//
// The invariants: an evicted pod is movable, and a running placeholder that requests at least as
// much holds a place for it on another node. All places of a relocation are held before its first
// eviction. No pool is scaled above its maximum or below its minimum. No node is removed while it
// has pods. The autoscaler may learn of changes late: earlier states count for kFaultsLinger.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "cluster/objects.h"

namespace nos::sim {

struct PoolBounds {
  std::string name;
  int min = 0, max = 0;
};

class MoveChecker {
 public:
  using Pod = std::shared_ptr<const cluster::Pod>;
  using Node = std::shared_ptr<const cluster::Node>;

  // Null `before`: the pod is new; null `after`: it was removed.
  void See(const Pod& before, const Pod& after, Time now);
  // `uid`: precondition of the eviction; "": any pod of this name.
  void Asked(const std::string& pod, std::string_view uid, Time now);
  void SeeScale(const PoolBounds& pool, int before, int after);
  // `left`: remaining nodes of the pool, including those that have not joined yet.
  void SeeRemoval(const std::string& node, const PoolBounds& pool, int left, Time now);
  std::vector<std::string> TakeProblems();
  // Number of distinct existing pods whose eviction was requested.
  int evictions() const { return static_cast<int>(evicted_.size()); }

  // Objects that must not exist when no move and no node removal is in progress: placeholders,
  // removal marks, and cordons (if only the autoscaler cordons).
  static std::vector<std::string> Leftovers(const std::vector<Node>& nodes,
                                            const std::vector<Pod>& pods);

 private:
  struct Known {
    Pod pod;
    Time bound{};
  };
  // A placeholder that is running, or was until a short time ago.
  struct Place {
    Pod pod;
    std::string relocation, pod_uid;
    int64_t of = 0;     // number of places of the relocation
    int64_t ended = 0;  // number of its places that are no longer needed
    Time until = Time::max();
  };

  void SeePlace(const Pod& before, const Pod& after, Time now);
  std::string WhyNot(const cluster::Pod& pod) const;

  std::map<std::string, Known, std::less<>> pods_;  // by key
  std::map<std::string, Place> places_;             // by uid of the placeholder
  std::set<std::string> begun_;                     // relocations whose evictions have begun
  std::set<std::string> evicted_;                   // uids
  std::vector<std::string> problems_;
};

}  // namespace nos::sim
