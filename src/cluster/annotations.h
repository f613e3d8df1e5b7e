// The node annotations through which partitioner and agent talk, and how GPUs are read off a node.
//
// Kept from the Go project (counts, additive compatibility):
//   nos.nebuly.com/spec-gpu-<i>-<profile>: "3"
//   nos.nebuly.com/status-gpu-<i>-<profile>-free|used: "3"
//   nos.nebuly.com/spec-partitioning-plan, nos.nebuly.com/status-partitioning-plan: plan id
// Beside them, exact:
//   nos.nebuly.com/spec-layout-<i>:   "3g.20gb@4,1g.5gb@0"
//   nos.nebuly.com/status-layout-<i>: "3g.20gb@4:used,1g.5gb@0:free"
//   nos.nebuly.com/status-model-<i>:  catalogue model name, when a node's GPUs differ or lack
//   labels
// The older prefix "n8s.nebuly.ai/" is read as an alias.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "cluster/objects.h"
#include "gpu/catalogue.h"

namespace nos::cluster {

inline constexpr std::string_view kPrefix = "nos.nebuly.com/";
inline constexpr std::string_view kPartitioningLabel = "nos.nebuly.com/gpu-partitioning";
inline constexpr std::string_view kSpecPlan = "nos.nebuly.com/spec-partitioning-plan";
inline constexpr std::string_view kStatusPlan = "nos.nebuly.com/status-partitioning-plan";
// What became of the acknowledged plan, written by the agent: controllers/plan_result.h.
inline constexpr std::string_view kPlanResult = "nos.nebuly.com/partitioning-result";
inline constexpr std::string_view kProductLabel = "nvidia.com/gpu.product";
inline constexpr std::string_view kCountLabel = "nvidia.com/gpu.count";

struct Instance {
  gpu::Placement placement;
  bool used = false;
  std::string pod;  // "namespace/name" when known
};

struct Gpu {
  int index = 0;
  const gpu::Model* model = nullptr;  // never null
  std::vector<Instance> instances;    // sorted by placement
  // Starts were not reported (counts only) and have been assumed.
  bool assumed_starts = false;
  // Must not be re-cut now (a plan is under way there, or cutting it failed lately); its free
  // instances may serve pods.
  bool fixed = false;

  gpu::LayoutId Layout() const;      // all instances
  gpu::LayoutId UsedLayout() const;  // used ones only
};

// The MIG GPUs of a node as its labels and status annotations tell. `problems` says, in words, what
// could not be used and why (unknown model, malformed annotation...): the node goes on without it.
struct NodeGpus {
  bool managed = false;  // opted in to MIG partitioning
  std::vector<Gpu> gpus;
  std::vector<std::string> problems;
};
NodeGpus ReadNodeGpus(const Node& node, const gpu::Catalogue& catalogue);

// A layout asked for (spec) of one GPU.
struct TargetLayout {
  int index = 0;
  const gpu::Model* model = nullptr;
  std::vector<gpu::Placement> placements;
};
// What the partitioner last asked for (spec annotations), by GPU index.
std::vector<TargetLayout> ReadSpec(const Node& node, const NodeGpus& gpus);

// Annotation changes as key -> value; an absent value removes the key.
using AnnotationPatch = std::map<std::string, std::optional<std::string>>;
// Replaces the node's spec (status) annotations by these. Only differences are returned.
AnnotationPatch SpecPatch(const Node& node, const std::vector<TargetLayout>& targets,
                          std::string_view plan_id);
AnnotationPatch StatusPatch(const Node& node, const std::vector<Gpu>& gpus,
                            std::string_view plan_id);

}  // namespace nos::cluster
