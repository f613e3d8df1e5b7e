// The pod's node selector and required node affinity decide where it may run; the weights of its
// preferred terms add up to where it would rather run.
#pragma once

#include "scheduling/framework.h"

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
  void Normalize(std::vector<int64_t>& scores) const override { NormalizeToHighest(scores, false); }
};

}  // namespace nos::scheduling
