// The node annotations that the partitioner and the agent exchange, and the reading of GPUs from a
// node.
//
// Kept from the Go project (instance counts, compatible with additions):
//   nos.nebuly.com/spec-gpu-<i>-<profile>: "3"
//   nos.nebuly.com/status-gpu-<i>-<profile>-free|used: "3"
//   nos.nebuly.com/spec-partitioning-plan, nos.nebuly.com/status-partitioning-plan: plan id
// Added, with exact placements:
//   nos.nebuly.com/spec-layout-<i>:   "3g.20gb@4,1g.5gb@0"
//   nos.nebuly.com/status-layout-<i>: "3g.20gb@4:used,1g.5gb@0:free"
//   nos.nebuly.com/status-holders-<i>: "3g.20gb@4=ml/train", pods by used instance, where known
//   nos.nebuly.com/status-model-<i>:  catalogue model name, when the GPUs of a node differ or the
//   node has no GPU labels
//   nos.nebuly.com/status-other-model-<i>: the model that the GPU can switch to while it is unused;
//   on hybrid nodes only, "" if it cannot switch
// <profile> is the profile as spelt in its resource name: "1g.5gb", or "1g.5gb.me" for "1g.5gb+me",
// because an annotation key cannot contain '+'. Canonical names and aliases are accepted as well.
// Layouts use the canonical name. An empty layout is written as "", which distinguishes it from a
// layout that was never reported.
//
// The older prefix "n8s.nebuly.ai/" (and its label auto-mig-enabled: "true") is read as an alias.
// If a GPU has annotations under both prefixes, the newer ones take precedence.
//
//   const NodeGpus gpus = ReadNodeGpus(node, catalogue);
//   const auto patch = SpecPatch(node, targets, plan_id);          // partitioner: request layouts
//   for (const TargetLayout& target : ReadSpec(node, gpus)) ...    // agent: carry them out
//
// Pure functions of values; may be called from any thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "cluster/objects.h"
#include "gpu/catalogue.h"
#include "gpu/occupancy.h"

namespace nos::cluster {

inline constexpr std::string_view kPrefix = "nos.nebuly.com/";
inline constexpr std::string_view kOldPrefix = "n8s.nebuly.ai/";
inline constexpr std::string_view kPartitioningLabel = "nos.nebuly.com/gpu-partitioning";
inline constexpr std::string_view kSpecPlan = "nos.nebuly.com/spec-partitioning-plan";
inline constexpr std::string_view kStatusPlan = "nos.nebuly.com/status-partitioning-plan";
// Result of the acknowledged plan, written by the agent: reconcile/plan_result.h.
inline constexpr std::string_view kPlanResult = "nos.nebuly.com/partitioning-result";
inline constexpr std::string_view kProductLabel = "nvidia.com/gpu.product";
inline constexpr std::string_view kCountLabel = "nvidia.com/gpu.count";
inline constexpr std::string_view kMemoryLabel = "nvidia.com/gpu.memory";  // MiB

inline constexpr int kMaxGpusPerNode = 64;  // larger numbers are rejected
// Largest valid plan id. JSON readers that use doubles represent integers exactly up to here, and
// incrementing it does not overflow.
inline constexpr int64_t kMaxPlanId = int64_t{1} << 53;

// The partitioning mode of a node. The owner of the node selects it with kPartitioningLabel.
enum class SharingMode {
  kNone,  // nos does not partition the node
  kMig,
  // MPS: shares of GPU memory. "10gb@0" is the first share of a GPU, of 10 GiB (gpu/shares.h).
  // Applies once the node's agent reports MPS models, e.g. "MPS-39GB".
  kMps,
  // Each GPU has a sharing mode of its own: MIG, whole or time-slicing (gpu/modes.h), or MPS. A GPU
  // can change its mode while it is unused. Applies once the node's agent reports the modes that
  // its GPUs support.
  kHybrid,
};
SharingMode SharingModeOf(const Node& node);
// The mode that the owner selected, even if the agent does not support it: "mig", "mps", "hybrid";
// "" if none.
std::string_view RequestedSharingMode(const Node& node);
// True if the node opted in to partitioning and its agent supports the selected mode.
bool IsManaged(const Node& node);

struct Instance {
  gpu::Placement placement;
  bool used = false;
  std::string pod{};  // "namespace/name" when known
  // Used, and the holder that the agent reports is not a pod of the node any more. The kubelet may
  // still have the device: it is free when the agent says so.
  bool left = false;
  friend bool operator==(const Instance&, const Instance&) = default;
};

struct Gpu {
  int index = 0;
  const gpu::Model* model = nullptr;  // never null
  // The model that the GPU can switch to while it is unused; null if there is none. The two models
  // have no resource in common.
  const gpu::Model* alternative = nullptr;
  std::vector<Instance> instances{};  // sorted by placement
  // The starts of the instances are assumed, one legal arrangement of the known instances: the
  // status has only counts, or does not show the instance of a pod yet.
  bool assumed_starts = false;
  // The GPU must not be repartitioned now: a plan is in progress, the last attempt failed recently,
  // or a pod may hold the GPU whole. Its free instances may serve pods.
  bool fixed = false;
  // The node's status lists the instances of this GPU. Otherwise the GPU is known from the labels
  // only and counts as empty.
  bool reported = false;

  // Occupancy by all instances, and by used ones only. nullopt if they overlap.
  std::optional<gpu::Occupancy> All() const;
  std::optional<gpu::Occupancy> Used() const;
  // Layout of the used instances, for a GPU whose model has layouts; kIllegal if they overlap.
  gpu::LayoutId UsedLayout() const;
  // MaySwitch: the GPU can switch to the other model now. Switch does so and removes its free
  // instances.
  bool MaySwitch() const;
  void Switch();
  friend bool operator==(const Gpu&, const Gpu&) = default;
};

// The GPUs of a node as its labels and status annotations describe them: GPUs 0 to count-1 of the
// labels, and any other GPU that the status mentions. `problems` explains each input that cannot be
// used (unknown model, malformed annotation...); the rest of the node is still read.
//
// A GPU whose instances cannot be determined is left out, so that no plan overwrites them:
// impossible counts, an unknown profile, an unreadable annotation of the GPU, an exact layout with
// an instance that has no state, counts that contradict the exact layout. An annotation that may
// belong to any GPU leaves out all GPUs without an exact layout. An exact layout determines the
// starts. Instances in state "unknown" count as used. A holder is ignored if it cannot be read or
// if its instance is not in use.
struct NodeGpus {
  bool managed = false;   // opted in to partitioning; otherwise the other members are empty
  bool whole = false;     // whole GPUs are instances too; no GPU is allocated whole in another way
  std::vector<Gpu> gpus;  // sorted by index
  std::vector<std::string> problems;
};
NodeGpus ReadNodeGpus(const Node& node, const gpu::Catalogue& catalogue);

// The layout that a spec requests for one GPU.
struct TargetLayout {
  int index = 0;
  const gpu::Model* model = nullptr;
  std::vector<gpu::Placement> placements;
};
// The layouts that the partitioner requested last (spec annotations), by GPU index. Includes only
// GPUs in `gpus` with a usable spec: an exact layout that is legal, or counts that some legal
// layout has, and no contradiction between the two. If the spec has only counts, starts are chosen
// to keep existing instances.
std::vector<TargetLayout> ReadSpec(const Node& node, const NodeGpus& gpus);
// The plan requested last and the plan applied last: a number from 0 to kMaxPlanId, returned
// without leading zeros; "" if the annotation is missing or is not such a number.
std::string SpecPlan(const Node& node);
std::string StatusPlan(const Node& node);

// True if the agents of both report the same status.
bool ReportTheSame(const Node& a, const Node& b);

// Annotation changes by key; an absent value removes the key.
using AnnotationPatch = std::map<std::string, std::optional<std::string>>;
// Replaces the spec annotations of the GPUs in `targets` and the plan id. Other GPUs keep their
// annotations. Returns only differences.
AnnotationPatch SpecPatch(const Node& node, const std::vector<TargetLayout>& targets,
                          std::string_view plan_id);
// Removes unusable spec annotations: malformed ones (including the plan id), annotations of GPUs
// that the node does not have, and annotations of a GPU in `gpus` whose spec ReadSpec cannot read.
// Does nothing for an unmanaged node.
struct SpecRepair {
  AnnotationPatch patch;
  std::vector<std::string> problems;  // "spec-layout-99=7g.40gb@0: there is no GPU 99"
};
SpecRepair RepairSpec(const Node& node, const NodeGpus& gpus);
// Replaces all status annotations of the node. Returns only differences. `hybrid`: writes the
// annotations of a hybrid node.
AnnotationPatch StatusPatch(const Node& node, const std::vector<Gpu>& gpus,
                            std::string_view plan_id, bool hybrid = false);
// Applies the patch to a node's annotations.
void Apply(const AnnotationPatch& patch, StringMap& annotations);

}  // namespace nos::cluster
