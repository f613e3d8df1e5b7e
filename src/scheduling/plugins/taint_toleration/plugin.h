// Taints keep pods away that do not tolerate them: NoSchedule and NoExecute strictly,
// PreferNoSchedule by a worse score the more such taints a node has.
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
