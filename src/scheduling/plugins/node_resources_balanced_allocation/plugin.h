// Prefers nodes on which, with the pod, equal fractions of all resources are used: the rest of one
// resource is of little use without the others.
//
// Semantics: kube-scheduler's NodeResourcesBalancedAllocation.
#pragma once

#include <vector>

#include "scheduling/plugin.h"
#include "scheduling/plugins/node_resources_fit/scored_resources.h"

namespace nos::scheduling {

struct BalanceOptions {
  std::vector<WeightedResource> resources = {{"cpu", 1}, {"memory", 1}};  // weights must be 1
  bool leaves_gpus = false;                                               // as in FitOptions
};

// Does not score pods that request none of the resources.
class NodeResourcesBalancedAllocation final : public ScorePlugin {
 public:
  explicit NodeResourcesBalancedAllocation(const BalanceOptions& options = {});
  std::string Name() const override { return "NodeResourcesBalancedAllocation"; }
  bool PreScore(const cluster::Pod& pod, const cluster::ClusterSnapshot& snapshot, Nodes feasible,
                CycleState& state) const override;
  int64_t Score(const CycleState& state, const cluster::Pod& pod,
                const cluster::NodeInfo& node) const override;
  bool IsAbsolute() const override { return true; }

 private:
  int64_t Scored(const std::vector<int64_t>& asked, const cluster::NodeInfo& node) const;

  ScoredResources scored_;
  bool leaves_gpus_;
};

}  // namespace nos::scheduling
