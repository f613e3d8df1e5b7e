// Filters nodes by the pod's node selector and required node affinity, and scores them by the
// weights of its preferred terms. A profile may add affinity to all its pods (addedAffinity).
//
// Semantics: kube-scheduler's NodeAffinity.
#pragma once

#include "scheduling/plugin.h"

namespace nos::scheduling {

struct NodeAffinityOptions {
  cluster::NodeAffinity added;
};

// Codes: "NodeAffinityMismatch", and "AddedAffinityMismatch" for addedAffinity. The pre-filter
// restricts nodes by name only if every alternative term names nodes (matchFields metadata.name
// In).
class NodeAffinity final : public PreFilterPlugin, public FilterPlugin, public ScorePlugin {
 public:
  explicit NodeAffinity(NodeAffinityOptions options = {}) : added_(std::move(options.added)) {}

  std::string Name() const override { return "NodeAffinity"; }
  // Unlike kube-scheduler, also wakes pods when a node starts to match addedAffinity.
  bool MayHelp(const ClusterEvent& event, const cluster::Pod& pod) const override;
  DependsOn Dependence() const override { return DependsOn::kNodeObject; }
  bool Concerns(const cluster::Pod& pod) const override;
  Outcome PreFilter(const cluster::Pod& pod, const cluster::ClusterSnapshot& snapshot,
                    CycleState& state) const override;
  Verdict Filter(const CycleState& state, const cluster::Pod& pod,
                 const cluster::NodeInfo& node) const override;
  bool PreScore(const cluster::Pod& pod, const cluster::ClusterSnapshot& snapshot, Nodes feasible,
                CycleState& state) const override;
  int64_t Score(const CycleState& state, const cluster::Pod& pod,
                const cluster::NodeInfo& node) const override;
  DependsOn ScoreDependence() const override { return DependsOn::kNodeObject; }
  int64_t Normalized(int64_t score, int64_t, int64_t highest) const override {
    return ScaledToHighest(score, highest, false);
  }

 private:
  bool Adds(const cluster::Node& node) const;

  cluster::NodeAffinity added_;
};

}  // namespace nos::scheduling
