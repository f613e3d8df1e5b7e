// The pod's node selector and required node affinity decide where it may run; the weights of its
// preferred terms add up to where it would rather run.
#pragma once

#include "scheduling/plugin.h"

namespace nos::scheduling {

// Code: "NodeAffinityMismatch". The pre-filter looks at named nodes only when every alternative
// names them (matchFields metadata.name In).
class NodeAffinity final : public PreFilterPlugin, public FilterPlugin, public ScorePlugin {
 public:
  std::string Name() const override { return "NodeAffinity"; }
  DependsOn Dependence() const override { return DependsOn::kNodeObject; }
  bool Concerns(const cluster::Pod& pod) const override;
  Outcome PreFilter(const cluster::Pod& pod, const cluster::ClusterSnapshot& snapshot,
                    CycleState& state) const override;
  Verdict Filter(const CycleState& state, const cluster::Pod& pod,
                 const cluster::NodeInfo& node) const override;
  int64_t Score(const CycleState& state, const cluster::Pod& pod,
                const cluster::NodeInfo& node) const override;
  DependsOn ScoreDependence() const override { return DependsOn::kNodeObject; }
  int64_t Normalized(int64_t score, int64_t, int64_t highest) const override {
    return ScaledToHighest(score, highest, false);
  }
};

}  // namespace nos::scheduling
