// Whether the autoscaler moves pods and removes nodes only as it promises, judged by what the API
// server holds, by what the autoscaler asks it for, and by whom the infrastructure loses.
//
//   MoveJudge judge;
//   judge.See(before, after, now);            // as the API server has pods
//   judge.Asked("ml/train-0", uid, now);      // the autoscaler asks for its eviction
//   judge.SeeScale({"a100", 1, 4}, 3, 2);     // what is wanted of a pool has changed
//   judge.SeeRemoval("gpu-7", {"a100", 1, 4}, 2, now);
//   for (std::string& problem : judge.TakeProblems()) ...
//
// Its promises: who is evicted may be moved, and has a place held for it on another node by a pod
// that runs there and asks for as much; all places of a relocation are held before its first
// eviction; no pool is asked for more than its maximum, or for less than its minimum; no node goes
// with pods on it. What the autoscaler may know late counts for kFaultsLinger.
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

class MoveJudge {
 public:
  using Pod = std::shared_ptr<const cluster::Pod>;
  using Node = std::shared_ptr<const cluster::Node>;

  // Null: it was not there before, or is gone.
  void See(const Pod& before, const Pod& after, Time now);
  // `uid`: of the one it means; "": of whichever there is.
  void Asked(const std::string& pod, std::string_view uid, Time now);
  void SeeScale(const PoolBounds& pool, int before, int after);
  // `left`: nodes of the pool without it, with those that are coming.
  void SeeRemoval(const std::string& node, const PoolBounds& pool, int left, Time now);
  std::vector<std::string> TakeProblems();
  // Pods whose eviction was asked for and that were there, each once.
  int evictions() const { return static_cast<int>(evicted_.size()); }

  // What must be gone when nothing moves and no node is on its way out: placeholders, marks, and
  // cordons where nobody else cordons.
  static std::vector<std::string> Leftovers(const std::vector<Node>& nodes,
                                            const std::vector<Pod>& pods);

 private:
  struct Known {
    Pod pod;
    Time bound{};
  };
  // A placeholder that runs, or did so until a short time ago.
  struct Place {
    Pod pod;
    std::string relocation, pod_uid;
    int64_t of = 0;     // places of the relocation
    int64_t ended = 0;  // of those, that are not needed any more
    Time until = Time::max();
  };

  void SeePlace(const Pod& before, const Pod& after, Time now);
  std::string WhyNot(const cluster::Pod& pod) const;

  std::map<std::string, Known, std::less<>> pods_;  // by key
  std::map<std::string, Place> places_;             // by the uids of placeholders
  std::set<std::string> begun_;                     // relocations
  std::set<std::string> evicted_;                   // uids
  std::vector<std::string> problems_;
};

}  // namespace nos::sim
