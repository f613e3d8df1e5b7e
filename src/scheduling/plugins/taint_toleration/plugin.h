// Taints that a pod does not tolerate: NoSchedule and NoExecute refuse the pod, PreferNoSchedule
// lowers the score of the node with each such taint.
//
// Semantics: kube-scheduler's TaintToleration.
#pragma once

#include "scheduling/plugin.h"

namespace nos::scheduling {

// Code: "Tainted".
class TaintToleration final : public FilterPlugin, public ScorePlugin {
 public:
  std::string Name() const override { return "TaintToleration"; }
  bool MayHelp(const ClusterEvent& event, const cluster::Pod& pod) const override;
  DependsOn Dependence() const override { return DependsOn::kNodeObject; }
  Verdict Filter(const CycleState& state, const cluster::Pod& pod,
                 const cluster::NodeInfo& node) const override;
  int64_t Score(const CycleState& state, const cluster::Pod& pod,
                const cluster::NodeInfo& node) const override;
  DependsOn ScoreDependence() const override { return DependsOn::kNodeObject; }
  int64_t Normalized(int64_t score, int64_t, int64_t highest) const override {
    return ScaledToHighest(score, highest, true);
  }
};

}  // namespace nos::scheduling
