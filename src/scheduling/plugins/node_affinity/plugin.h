// The pod's node selector and required node affinity decide where it may run; the weights of its
// preferred terms add up to where it would rather run. A profile may add affinity to all its pods.
//
// Semantics: kube-scheduler's NodeAffinity.
#pragma once

#include "scheduling/plugin.h"

namespace nos::scheduling {

struct NodeAffinityOptions {
  cluster::NodeAffinity added;
};

// Codes: "NodeAffinityMismatch", and "AddedAffinityMismatch" for what the profile adds. The
// pre-filter looks at named nodes only when every alternative names some (matchFields metadata.name
// In).
class NodeAffinity final : public PreFilterPlugin, public FilterPlugin, public ScorePlugin {
 public:
  explicit NodeAffinity(NodeAffinityOptions options = {}) : added_(std::move(options.added)) {}

  std::string Name() const override { return "NodeAffinity"; }
  // Unlike kube-scheduler it also heeds that a node has come to match what the profile adds.
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
