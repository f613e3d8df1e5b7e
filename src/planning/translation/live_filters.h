// Filters whose verdict depends on what else runs (spreading, affinity between pods...). The search
// knows only verdicts that stand still, so it starts from what these filters say of the cluster as
// it is; then its plan is played through, and where a filter objects, the search runs again without
// that pair of pod and node.
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

// Whether a filter looks at more than the node object; resources aside, which the search counts.
bool IsLive(const scheduling::FilterPlugin& filter);

// Which pods live filters concern: those that ask for something, and those that others want to keep
// away, whether these run or are planned for, too.
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

// Plays plans through in one cluster. What the pre-filters say of each kind of pod is found out
// once, for it costs with the pods that run.
class PlanChecker {
 public:
  class Play;

  // The snapshot must outlive it.
  PlanChecker(const cluster::ClusterSnapshot& snapshot, scheduling::FrameworkChoice frameworks)
      : snapshot_(snapshot), frameworks_(std::move(frameworks)) {}

  // Binds the planned pods one after the other, in the order of their levels, and asks the live
  // filters before each. Whom of a gang they refuse is asked again when others of it are bound.
  std::vector<Objection> FindObjections(const Translation& translation, const StagedResult& result);

 private:
  using KindKey = std::pair<size_t, std::string>;  // framework, kind of pod
  // Before anything is bound.
  const scheduling::Cycle& BeginningOf(const cluster::Pod& pod, KindKey key);

  const cluster::ClusterSnapshot& snapshot_;
  const scheduling::FrameworkChoice frameworks_;
  std::map<KindKey, scheduling::Cycle> beginnings_;
};

// The cluster while planned pods are bound one after the other. Pods of one kind share what the
// pre-filters found out, which follows the pods bound since. Copies go on by themselves.
class PlanChecker::Play {
 public:
  // The checker must outlive it.
  explicit Play(PlanChecker& checker) : checker_(checker), snapshot_(checker.snapshot_) {}

  // The node's name and the pod must outlive it.
  void Bind(const std::shared_ptr<const cluster::Pod>& pod, const std::string& node);
  // What the live filters say, if it is not that it fits.
  std::optional<scheduling::Verdict> Objects(const cluster::Pod& pod, const std::string& node);
  // What the pre-filters say of the pod now, until the next is bound; VerdictNow asks the filters.
  const scheduling::Cycle& CycleOf(const cluster::Pod& pod);
  // The node as it is now. REQUIRES: it is there.
  const cluster::NodeInfo& At(const std::string& node) const { return *snapshot_.Find(node); }

 private:
  struct Bound {
    const cluster::Pod* pod;
    const std::string* node;
  };
  struct Kind {
    scheduling::Cycle cycle;
    size_t at = 0;  // of bound_: those before are in it
  };

  bool CatchUp(const scheduling::Framework& framework, const cluster::Pod& pod, Kind& kind) const;

  PlanChecker& checker_;
  cluster::ClusterSnapshot snapshot_;
  std::vector<Bound> bound_;
  std::map<KindKey, Kind> kinds_;
};

// Takes back what the filters object to: the class may not use the node any more. After several
// rounds its pods wait for the next plan instead, so that this ends.
void Heed(const std::vector<Objection>& objections, int round, Translation& translation);

}  // namespace nos::planning
