// Filters nodes by the pod's requests: cpu, memory, ephemeral storage, number of pods, extended
// resources. Prefers the emptiest or the fullest nodes, or scores utilization by a given shape.
//
// Semantics: kube-scheduler's NodeResourcesFit, with two exceptions. A shortfall of MIG instances
// is never unresolvable, because GPUs can be repartitioned. GPUs that may be partitioned do not
// count as whole GPUs (cluster/snapshot.h).
#pragma once

#include <set>
#include <string>
#include <vector>

#include "scheduling/plugin.h"
#include "scheduling/plugins/node_resources_fit/scored_resources.h"

namespace nos::scheduling {

// Score at a utilization, both in per cent; linear between points, constant beyond them.
struct ShapePoint {
  int64_t utilization = 0, score = 0;
  friend bool operator==(const ShapePoint&, const ShapePoint&) = default;
};

struct FitOptions {
  enum class Strategy { kLeastAllocated, kMaxAllocated, kRequestedToCapacityRatio };
  Strategy strategy = Strategy::kLeastAllocated;
  std::vector<WeightedResource> resources = {{"cpu", 1}, {"memory", 1}};
  // For kRequestedToCapacityRatio: at least one point, sorted by utilization.
  std::vector<ShapePoint> shape = {};
  // Extended resources that the filter ignores, by name or by the prefix before the slash.
  std::set<std::string, std::less<>> ignored_resources = {}, ignored_groups = {};
  // Gives all nodes with GPUs the score 0: spreading pods over them would strand GPUs, and
  // GpuPacking or DynamicResources ranks them. For profiles in which GpuPacking scores.
  bool leaves_gpus = false;
  // Leaves slices on nodes managed by nos to GpuPartitioning.
  bool leaves_slices = false;
};

// Codes: "InsufficientResource", "TooManyPods". Unresolvable if even the empty node is short of a
// resource other than MIG instances.
class NodeResourcesFit final : public PreFilterPlugin, public FilterPlugin, public ScorePlugin {
 public:
  explicit NodeResourcesFit(const FitOptions& options = {});

  std::string Name() const override { return "NodeResourcesFit"; }
  bool MayHelp(const ClusterEvent& event, const cluster::Pod& pod) const override;
  DependsOn Dependence() const override { return DependsOn::kNodeUsage; }
  Outcome PreFilter(const cluster::Pod& pod, const cluster::ClusterSnapshot& snapshot,
                    CycleState& state) const override;
  Verdict Filter(const CycleState& state, const cluster::Pod& pod,
                 const cluster::NodeInfo& node) const override;
  bool PreScore(const cluster::Pod& pod, const cluster::ClusterSnapshot& snapshot, Nodes feasible,
                CycleState& state) const override;
  int64_t Score(const CycleState& state, const cluster::Pod& pod,
                const cluster::NodeInfo& node) const override;
  bool IsAbsolute() const override { return true; }

 private:
  cluster::ResourceVector RequestsThatCount(const cluster::Pod& pod) const;
  bool IsIgnored(const std::string& name) const;
  // Requested resources that no node has and that are not ignored.
  std::vector<std::string> UnknownThatCount(const cluster::Pod& pod) const;
  int64_t Scored(const std::vector<int64_t>& asked, const cluster::NodeInfo& node) const;
  int64_t ScoreOf(__int128 taken, int64_t allocatable) const;
  int64_t AtUtilization(int64_t utilization) const;

  FitOptions options_;
  ScoredResources scored_;
};

}  // namespace nos::scheduling
