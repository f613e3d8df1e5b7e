// Chooses the slice for a pod with GPU requirements: the cheapest that meets them, over all sharing
// modes and models.
//
//   const NeedAnswer answer = AnswerNeed(pod, snapshot, frameworks, options);
//   if (answer.choice) pod = WithSlice(pod, answer);
//
// The cost of a slice is the share of the GPU that other pods cannot use, in GiB of that GPU's
// memory: the larger of its share of memory and, for MIG, its share of compute slices. MPS shares
// do not reserve compute. Pure functions.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cluster/gpu_requirements.h"
#include "cluster/snapshot.h"
#include "planning/plan.h"
#include "scheduling/framework_choice.h"

namespace nos::planning {

struct SliceKind {
  std::string resource;  // "nvidia.com/mig-2g.10gb"
  double cost = 0;       // GiB
  std::string model;     // the model with that cost
};

// Slices of partitionable GPUs on nodes that the pod's own selectors allow, cheapest first. Each
// resource is listed once. A resource is left out if some of these GPUs offer less than required
// under the same name, because the pod could be scheduled there. MPS shares are listed only for
// pods with hostIPC, unless `shares_need_host_ipc` is false: agents then share memory with pods by
// a folder of the node.
std::vector<SliceKind> SlicesFor(const cluster::GpuRequirements& need, const cluster::Pod& pod,
                                 const cluster::ClusterSnapshot& snapshot,
                                 bool shares_need_host_ipc = true);

struct SliceChoice {
  std::string resource;
  std::string node;                                  // has capacity for it now; empty: no node has
  std::vector<cluster::PromisedInstance> instances;  // it would get on that node
  std::vector<std::string> passed_over;              // cheaper resources without capacity now

  std::string Reason() const;  // one sentence
};

// The result for a pod with GPU requirements.
struct NeedAnswer {
  std::string refusal;   // why the requirements cannot be met
  bool unknown = false;  // time ran out
  std::string warning;   // why the requirements are ignored
  size_t container = 0;
  // The first kind with capacity now, also by repartitioning; else the cheapest.
  std::optional<SliceChoice> choice;
};
// `full`: kinds of pods (scheduling::KindOf, including the slice) for which there was no capacity.
// Keep it only while capacity in the snapshot decreases. Null: nothing is remembered.
// `shares_need_host_ipc`: see SlicesFor.
NeedAnswer AnswerNeed(const cluster::Pod& pod, const cluster::ClusterSnapshot& snapshot,
                      const scheduling::FrameworkChoice& frameworks, const PlanOptions& options,
                      std::set<std::string>* full = nullptr, bool shares_need_host_ipc = true);

// The pod as if it requested the chosen resource by name and, if there is capacity, with the
// instances nominated for it. Returns the pod unchanged if nothing was chosen.
cluster::Pod WithSlice(cluster::Pod pod, const NeedAnswer& answer);

}  // namespace nos::planning
