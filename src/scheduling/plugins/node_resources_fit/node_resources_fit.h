// The node must have what the pod requests: cpu, memory, ephemeral storage, a place for one more
// pod, extended resources. Among nodes that do, it prefers the emptiest (or, by option, the
// fullest); nodes with GPUs come last and are all the same to it: spreading pods over them would
// strand GPUs, so gpu_packing decides there.
//
// Semantics otherwise: kube-scheduler's NodeResourcesFit with its defaults, except that pods which
// request nothing count as nothing in the score (kube-scheduler then assumes 100m cpu and 200 MB).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "scheduling/plugin.h"

namespace nos::scheduling {

struct FitOptions {
  enum class Strategy { kLeastAllocated, kMostAllocated } strategy = Strategy::kLeastAllocated;
  // What the score looks at, with weights. Resources that a node lacks do not count there.
  std::vector<std::pair<std::string, int>> resources = {{"cpu", 1}, {"memory", 1}};
};

// Codes: "InsufficientResource", "TooManyPods". Unresolvable when even the empty node would lack
// something other than MIG instances.
class NodeResourcesFit final : public PreFilterPlugin, public FilterPlugin, public ScorePlugin {
 public:
  explicit NodeResourcesFit(const FitOptions& options = {});

  std::string Name() const override { return "NodeResourcesFit"; }
  DependsOn Dependence() const override { return DependsOn::kNodeUsage; }
  Outcome PreFilter(const cluster::Pod& pod, const cluster::ClusterSnapshot& snapshot,
                    CycleState& state) const override;
  Verdict Filter(const CycleState& state, const cluster::Pod& pod,
                 const cluster::NodeInfo& node) const override;
  int64_t Score(const CycleState& state, const cluster::Pod& pod,
                const cluster::NodeInfo& node) const override;

 private:
  FitOptions::Strategy strategy_;
  std::vector<std::pair<cluster::ResourceId, int>> weights_;
};

}  // namespace nos::scheduling
