// The values that planning works with: gangs, options and the plan. How a plan is made is in
// planner.h.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cluster/snapshot.h"
#include "gpu/catalogue.h"
#include "scheduling/reasons.h"

namespace nos::planning {

enum class Objective { kPods, kCompute, kMemory };

// Pods that are useful only together.
struct Gang {
  std::string name;          // "pod group ml/train"
  int least = 1;             // pods that must run
  int placed = 0;            // pods that are placed already, not counting pending ones
  std::vector<int> members;  // pending pods: indices into `pending`
  std::string problem;       // why none may be placed, whatever the capacity

  int Lacking() const { return least - placed; }
};

struct PlanOptions {
  Objective objective = Objective::kPods;
  std::vector<Gang> gangs;  // gangs of pending pods; a pod belongs to at most one
  Time now{};               // for waiting times
  Duration hold_after = std::chrono::minutes(10);
  // Keys of pods that go before all others, whatever their priority: those that min of their quota
  // covers while others would borrow.
  std::set<std::string, std::less<>> first;
  // Polled during the search. True: return the best plan so far (Plan::complete is false then).
  std::function<bool()> out_of_time;
};

struct AssignedDevice {
  int gpu = 0;
  gpu::Placement placement;
  std::string profile;
  bool existing = false;  // a free instance that exists already
  // The model to which the plan switches the GPU (cluster::Gpu::alternative); null: no switch.
  const gpu::Model* model = nullptr;
};

using scheduling::Reason;

struct PodOutcome {
  std::shared_ptr<const cluster::Pod> pod;
  bool placed = false;
  std::string node;                     // when placed
  std::vector<AssignedDevice> devices;  // when placed; empty for a pod without slices
  std::vector<Reason> reasons;          // if pending: Explanation::reasons
  // If pending: the smallest change that would help, as in scheduling::Remedy; "": none is known.
  // A plan has it for pods that it does not plan for; AddRemedies finds the others (remedies.h).
  std::string remedy_code, remedy;
};

struct PlannedInstance {
  gpu::Placement placement;
  enum class State { kUsed, kFree, kNew } state = State::kFree;
  std::string pod;  // running on it, or planned for it; may be empty
};

struct PlannedGpu {
  int index = 0;
  const gpu::Model* model = nullptr;
  std::vector<PlannedInstance> layout;  // the target, sorted by start
  int created = 0, destroyed = 0;
  // The model to which the GPU may switch while it has no used instance; null: none.
  const gpu::Model* alternative = nullptr;
};

struct PlannedNode {
  std::string name;
  std::vector<PlannedGpu> gpus;  // only GPUs that change
};

// Slots of a node that become free are kept for a pod that has waited long.
struct KeptSlots {
  std::string pod, node;  // the pod's key
};

struct Plan {
  std::vector<PlannedNode> nodes;  // only nodes that change, by name
  std::vector<PodOutcome> pods;    // one per pending pod, in input order
  std::vector<KeptSlots> kept;
  int placed = 0;
  int upper_bound = 0;  // no plan can place more pods than this
  int created = 0, destroyed = 0, gpus_touched = 0, nodes_touched = 0;
  // True if the plan provably places the most pods: all pods that any plan can place, or the
  // optimum of an exhaustive search, with priorities in their order. False: a longer search might
  // place more.
  bool complete = true;
};

}  // namespace nos::planning
