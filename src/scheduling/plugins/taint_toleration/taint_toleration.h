// Taints keep pods away that do not tolerate them: NoSchedule and NoExecute strictly,
// PreferNoSchedule by a worse score the more such taints a node has.
#pragma once

#include "scheduling/framework.h"

namespace nos::scheduling {

// Code: "Tainted".
class TaintToleration final : public FilterPlugin, public ScorePlugin {
 public:
  std::string Name() const override { return "TaintToleration"; }
  DependsOn Dependence() const override { return DependsOn::kNodeObject; }
  Verdict Filter(const CycleState& state, const cluster::Pod& pod,
                 const cluster::NodeInfo& node) const override;
  int64_t Score(const CycleState& state, const cluster::Pod& pod,
                const cluster::NodeInfo& node) const override;
  void Normalize(std::vector<int64_t>& scores) const override { NormalizeToHighest(scores, true); }
};

}  // namespace nos::scheduling
