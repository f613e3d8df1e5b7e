// Filters whose verdict depends on other pods (topology spread, inter-pod affinity and others). The
// search only knows fixed verdicts, so it starts with the verdicts on the current cluster. Then the
// plan is replayed; if a filter rejects a pod on its node, the search is repeated without this
// pair.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "planning/optimize/stages.h"
#include "planning/translation/translate.h"
#include "scheduling/framework_choice.h"
#include "scheduling/plugins/inter_pod_affinity/repellers.h"

namespace nos::planning {

// True if a filter depends on more than the node object. Resources do not count, because the search
// handles them.
bool IsLive(const scheduling::FilterPlugin& filter);

// The pods to which live filters apply: pods with such constraints, and pods that running or
// planned pods want to keep away.
//
//   const LivePods live(snapshot, pending, frameworks);
//   if (live.Has(pod)) ...
class LivePods {
 public:
  // The snapshot and the frameworks must outlive it.
  LivePods(const cluster::ClusterSnapshot& snapshot, Pods pending,
           const scheduling::FrameworkChoice& frameworks);
  bool Has(const cluster::Pod& pod) const;

 private:
  const cluster::ClusterSnapshot& snapshot_;
  scheduling::FrameworkChoice frameworks_;
  std::vector<std::vector<const scheduling::FilterPlugin*>> filters_;  // by framework
  scheduling::Repellers repellers_;
};

struct Objection {
  int cls = 0, node = 0;
  scheduling::Verdict verdict;
};

// Replays plans on one cluster. The result of the pre-filters is computed once per kind of pod,
// because its cost grows with the number of running pods.
class PlanChecker {
 public:
  class Play;

  // The snapshot must outlive this object.
  PlanChecker(const cluster::ClusterSnapshot& snapshot, scheduling::FrameworkChoice frameworks)
      : snapshot_(snapshot), frameworks_(std::move(frameworks)) {}

  // Binds the planned pods one after the other in the order of their levels, and asks the live
  // filters before each. A rejected gang member is tried again after other members are bound.
  std::vector<Objection> FindObjections(const Translation& translation, const StagedResult& result);

 private:
  using KindKey = std::pair<size_t, std::string>;  // framework, kind of pod
  // The result of the pre-filters before any pod is bound.
  const scheduling::Cycle& BeginningOf(const cluster::Pod& pod, KindKey key);

  const cluster::ClusterSnapshot& snapshot_;
  const scheduling::FrameworkChoice frameworks_;
  std::map<KindKey, scheduling::Cycle> beginnings_;
};

// The cluster while planned pods are bound one after the other. Pods of one kind share the result
// of the pre-filters, which is updated with the bound pods. Copies are independent.
class PlanChecker::Play {
 public:
  // The checker must outlive this object.
  explicit Play(PlanChecker& checker) : checker_(checker), snapshot_(checker.snapshot_) {}

  // The node's name and the pod must outlive this object.
  void Bind(const std::shared_ptr<const cluster::Pod>& pod, const std::string& node);
  // The first objection of a live filter; nullopt if the pod fits.
  std::optional<scheduling::Verdict> Objects(const cluster::Pod& pod, const std::string& node);
  // The result of the pre-filters for the pod, valid until the next Bind; pass it to VerdictNow.
  const scheduling::Cycle& CycleOf(const cluster::Pod& pod);
  // The current state of the node. REQUIRES: the node exists.
  const cluster::NodeInfo& At(const std::string& node) const { return *snapshot_.Find(node); }

 private:
  struct Bound {
    const cluster::Pod* pod;
    const std::string* node;
  };
  struct Kind {
    scheduling::Cycle cycle;
    size_t at = 0;  // index into bound_: earlier pods are included in `cycle`
  };

  bool CatchUp(const scheduling::Framework& framework, const cluster::Pod& pod, Kind& kind) const;

  PlanChecker& checker_;
  cluster::ClusterSnapshot snapshot_;
  std::vector<Bound> bound_;
  std::map<KindKey, Kind> kinds_;
};

// Marks the rejected pairs: the class may not use the node any more. After several rounds its pods
// are left for the next plan, so that the repetition ends.
void ApplyObjections(const std::vector<Objection>& objections, int round, Translation& translation);

}  // namespace nos::planning
