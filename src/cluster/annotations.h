// The node annotations through which partitioner and agent talk, and how GPUs are read off a node.
//
// Kept from the Go project (counts, additive compatibility):
//   nos.nebuly.com/spec-gpu-<i>-<profile>: "3"
//   nos.nebuly.com/status-gpu-<i>-<profile>-free|used: "3"
//   nos.nebuly.com/spec-partitioning-plan, nos.nebuly.com/status-partitioning-plan: plan id
// Beside them, exact:
//   nos.nebuly.com/spec-layout-<i>:   "3g.20gb@4,1g.5gb@0"
//   nos.nebuly.com/status-layout-<i>: "3g.20gb@4:used,1g.5gb@0:free"
//   nos.nebuly.com/status-holders-<i>: "3g.20gb@4=ml/train", pods by used instance, where known
//   nos.nebuly.com/status-model-<i>:  catalogue model name, when a node's GPUs differ or lack
//   labels
//   nos.nebuly.com/status-other-model-<i>: what else it may be while nothing is used; on hybrid
//   nodes alone, "" for nothing
// <profile> is the profile as its resource name has it: "1g.5gb", "1g.5gb.me" for "1g.5gb+me",
// since
// '+' may not stand in an annotation key. Canonical names and aliases are read too. Layouts use the
// canonical name. An empty layout is written as "", so that it differs from one never reported.
//
// The older prefix "n8s.nebuly.ai/" (and its label auto-mig-enabled: "true") is read as an alias;
// for a GPU that has annotations under both, the newer ones count.
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
// What became of the acknowledged plan, written by the agent: reconcile/plan_result.h.
inline constexpr std::string_view kPlanResult = "nos.nebuly.com/partitioning-result";
inline constexpr std::string_view kProductLabel = "nvidia.com/gpu.product";
inline constexpr std::string_view kCountLabel = "nvidia.com/gpu.count";
inline constexpr std::string_view kMemoryLabel = "nvidia.com/gpu.memory";  // MiB

inline constexpr int kMaxGpusPerNode = 64;  // more are not believed
// Greater plan ids are none: every JSON reader knows integers up to here, and one more fits still.
inline constexpr int64_t kMaxPlanId = int64_t{1} << 53;

// How nos divides the GPUs of a node, which its owner chooses by kPartitioningLabel.
enum class Partitioning {
  kNone,  // not at all
  kMig,
  // Shares of memory: "10gb@0" is the first share of a GPU, of 10 GiB (gpu/shares.h). As soon as
  // the node's agent tells that it does so: the model of a GPU is "MPS-39GB" then.
  kMps,
  // Each GPU its own way: cut by MIG, given whole or in time slices (gpu/modes.h), or shared by
  // memory, and another one while nothing is used on it. As soon as the node's agent tells what its
  // GPUs may be.
  kHybrid,
};
Partitioning PartitioningOf(const Node& node);
// What the owner has chosen, whatever the agent can do: "mig", "mps", "hybrid"; "": nothing.
std::string_view ChosenPartitioning(const Node& node);
// Whether it has opted in to any.
bool IsManaged(const Node& node);

struct Instance {
  gpu::Placement placement;
  bool used = false;
  std::string pod;  // "namespace/name" when known
  friend bool operator==(const Instance&, const Instance&) = default;
};

struct Gpu {
  int index = 0;
  const gpu::Model* model = nullptr;  // never null
  // What it may be instead while nothing is used on it; null: nothing. No resource is of both.
  const gpu::Model* other = nullptr;
  std::vector<Instance> instances{};  // sorted by placement
  // Starts were not reported (counts only, or a pod's instance that the status does not show yet)
  // and have been assumed: some legal arrangement of what is known.
  bool assumed_starts = false;
  // Must not be re-cut now (a plan is under way there, cutting it failed lately, or a pod may hold
  // it whole); its free instances may serve pods.
  bool fixed = false;
  // The node's status tells this GPU's instances. Otherwise it is known from the labels alone,
  // taken as empty.
  bool reported = false;

  // What lies on it: all instances, used ones only. None: they contradict each other.
  std::optional<gpu::Occupancy> All() const;
  std::optional<gpu::Occupancy> Used() const;
  // The used ones of a GPU whose model has layouts; kIllegal: they contradict each other.
  gpu::LayoutId UsedLayout() const;
  // Whether it may be the other model, and it becomes that: its free instances are gone.
  bool MaySwitch() const;
  void Switch();
  friend bool operator==(const Gpu&, const Gpu&) = default;
};

// The GPUs of a node that nos divides as its labels and status annotations tell: GPUs 0 to count-1
// of the labels and any other that the status mentions. `problems` says, in words, what could not
// be used and why (unknown model, malformed annotation...): the node goes on without it. A GPU
// whose instances cannot be told is left out, so that nobody plans over them: impossible counts, an
// unknown profile, an annotation of it that cannot be read, an instance of an exact layout without
// a state, counts that contradict the exact layout. An annotation that could be about any GPU
// leaves out all that have no exact layout. Where there is one, starts are as it says. Instances of
// state "unknown" count as used. A holder that cannot be read, or of an instance that is not in
// use, is left out.
struct NodeGpus {
  bool managed = false;   // opted in to partitioning; otherwise the rest is empty
  bool whole = false;     // whole GPUs are instances, too, and none is given whole otherwise
  std::vector<Gpu> gpus;  // by index
  std::vector<std::string> problems;
};
NodeGpus ReadNodeGpus(const Node& node, const gpu::Catalogue& catalogue);

// A layout asked for (spec) of one GPU.
struct TargetLayout {
  int index = 0;
  const gpu::Model* model = nullptr;
  std::vector<gpu::Placement> placements;
};
// What the partitioner last asked for (spec annotations), by GPU index; only GPUs in `gpus` that
// have a spec that can be acted on: an exact layout that is legal, or counts that have one, and no
// contradiction between the two. Where the spec has counts alone, starts are chosen to keep what is
// there.
std::vector<TargetLayout> ReadSpec(const Node& node, const NodeGpus& gpus);
// The plan last asked for, and the one last applied: a number from 0 to kMaxPlanId in its shortest
// form; "" when there is none, or something else.
std::string SpecPlan(const Node& node);
std::string StatusPlan(const Node& node);

// Annotation changes as key -> value; an absent value removes the key.
using AnnotationPatch = std::map<std::string, std::optional<std::string>>;
// Replaces the spec annotations of the GPUs named in `targets`, and the plan id. Other GPUs keep
// theirs. Only differences are returned.
AnnotationPatch SpecPatch(const Node& node, const std::vector<TargetLayout>& targets,
                          std::string_view plan_id);
// Removes the spec annotations that nobody can act on: malformed ones (the plan id too), those of a
// GPU that the node does not have, those of a GPU of `gpus` whose spec ReadSpec cannot read.
// Nothing for an unmanaged node.
struct SpecRepair {
  AnnotationPatch patch;
  std::vector<std::string> problems;  // "spec-layout-99=7g.40gb@0: there is no GPU 99"
};
SpecRepair RepairSpec(const Node& node, const NodeGpus& gpus);
// Replaces all status annotations of the node by these. Only differences are returned. `hybrid`: as
// of such a node.
AnnotationPatch StatusPatch(const Node& node, const std::vector<Gpu>& gpus,
                            std::string_view plan_id, bool hybrid = false);
// The node's annotations with the patch applied.
void Apply(const AnnotationPatch& patch, StringMap& annotations);

}  // namespace nos::cluster
