// The node must have what the pod requests: cpu, memory, ephemeral storage, a place for one more
// pod, extended resources. Among nodes that do, it prefers the emptiest, the fullest, or what a
// given shape says.
//
// Semantics: kube-scheduler's NodeResourcesFit, except that a node which lacks MIG instances is
// never beyond hope, for its GPUs can be cut anew, and that GPUs which may be cut do not count as
// whole ones (cluster/snapshot.h).
#pragma once

#include <set>
#include <string>
#include <vector>

#include "scheduling/plugin.h"
#include "scheduling/plugins/node_resources_fit/scored_resources.h"

namespace nos::scheduling {

// The score at a utilization, both in per cent; linear between points, level beyond them.
struct ShapePoint {
  int64_t utilization = 0, score = 0;
  friend bool operator==(const ShapePoint&, const ShapePoint&) = default;
};

struct FitOptions {
  enum class Strategy { kLeastAllocated, kMostAllocated, kRequestedToCapacityRatio };
  Strategy strategy = Strategy::kLeastAllocated;
  std::vector<WeightedResource> resources = {{"cpu", 1}, {"memory", 1}};
  std::vector<ShapePoint> shape = {};  // of kRequestedToCapacityRatio: by utilization, at least one
  // Extended resources that the filter leaves out: by name, or by what is before the slash.
  std::set<std::string, std::less<>> ignored_resources = {}, ignored_groups = {};
  // Nodes with GPUs come last and are all the same: to spread pods over them would strand GPUs, and
  // GpuPacking decides there. For profiles in which it scores.
  bool leaves_gpus = false;
  // Whether a node that nos cuts has MIG instances is for GpuCutting to say.
  bool leaves_slices = false;
};

// Codes: "InsufficientResource", "TooManyPods". Unresolvable when even the empty node would lack
// something other than MIG instances.
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
  // What it asks for that no node can offer, and that is not ignored.
  std::vector<std::string> UnknownThatCount(const cluster::Pod& pod) const;
  int64_t Scored(const std::vector<int64_t>& asked, const cluster::NodeInfo& node) const;
  int64_t ScoreOf(__int128 taken, int64_t allocatable) const;
  int64_t AtUtilization(int64_t utilization) const;

  FitOptions options_;
  ScoredResources scored_;
};

}  // namespace nos::scheduling
