// The partition planner: what is there + who waits -> how every GPU shall be cut, who runs where,
// and why the others do not.
//
//   Plan plan = MakePlan(snapshot, pending, frameworks, options);
//
// The whole batch is planned at once over all nodes. Used instances are never moved or destroyed;
// free ones are destroyed only when that places a pod. What is optimised, in this order:
//   1. priority: a lower-priority pod never takes the place of a higher one that could be served;
//   2. most pods, or most compute, or most memory served (Objective);
//   3. fewest instances destroyed and created, fewest GPUs and nodes touched;
//   4. least fragmentation left (gpu/fragmentation.h) for the demand seen; pods without slices go
//      where the node loses least worth for it (scheduling/packing/packer.h), as the scheduler
//      does.
// A pod that has waited longer than `starvation_after` goes first among its equals in priority, and
// when it cannot be placed, slots are kept free for it as they fall free: where fewest instances
// are in the way, for up to 32 pods at a time and one for every four GPUs. Every further doubling
// of the wait puts it before those that have waited less.
//
// Of a gang, as many pods are placed as it lacks, or none; nothing is kept for one that waits.
// These count like its most urgent pod (priority, then age), and go before others of that priority
// and claim unless more is served when they go behind them. Its other pods are single ones.
//
// A plan with room for more is an answer too: a search that ends early (out_of_time) returns what
// it has. Between equal plans the choice is fixed by names and ages, never by memory or hash order.
// docs/planner.md tells how it works.
//
// Pure: same input, same plan. The only outside influence is `out_of_time`.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cluster/snapshot.h"
#include "gpu/catalogue.h"
#include "scheduling/framework_choice.h"

namespace nos::planning {

enum class Objective { kPods, kCompute, kMemory };

// Pods that are of use only together.
struct Gang {
  std::string name;          // "pod group ml/train"
  int least = 1;             // that must have a place
  int placed = 0;            // that have one, beside those that wait
  std::vector<int> members;  // that wait: by their place among the pending pods
  std::string problem;       // why none may be placed, however much room there is

  int Lacking() const { return least - placed; }
};

struct PlanOptions {
  Objective objective = Objective::kPods;
  std::vector<Gang> gangs;  // that pending pods belong to; each pod to one at most
  Time now{};               // for waiting times
  Duration starvation_after = std::chrono::minutes(10);
  // Asked now and then; true = return the best plan so far (Plan::complete is false then).
  std::function<bool()> out_of_time;
};

struct AssignedDevice {
  int gpu = 0;
  gpu::Placement placement;
  std::string profile;
  bool existing = false;  // a free instance that is there already
  // Which the GPU is switched to by the plan (cluster::Gpu::other); null: the one that it has.
  const gpu::Model* model = nullptr;
};

// Machine-readable reasons; the codes are also the names in JSON. Codes of filters stand beside
// these: NoNodes, NotPartitioned, GpuProblem, NoGpuForProfile, InsufficientResource, TooManyPods,
// NoRoomForSlices, TakenByPendingPods, SlotsKept (for this pod), SlotsKeptForOthers, SearchEnded,
// NotLookedAt, OtherReasons (beyond a handful), SchedulingGated, NotPending, SeveralShares (of one
// container), GangIncomplete (too
// few of its pods are there, or nobody says how many must be), GangNotWhole (no room for enough of
// it).
struct Reason {
  std::string code;
  std::string message;  // one sentence for a person
  int nodes = 0;        // how many nodes it holds for; 0 = not about nodes
};

struct PodOutcome {
  std::shared_ptr<const cluster::Pod> pod;
  bool placed = false;
  std::string node;                     // when placed
  std::vector<AssignedDevice> devices;  // when placed; empty for a pod without slices
  std::vector<Reason> reasons;          // when pending: Explanation::reasons
  std::string remedy;                   // when pending: the smallest change that would help, or ""
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
  const gpu::Model* other = nullptr;  // what it may be instead while nothing is used on it
};

struct PlannedNode {
  std::string name;
  std::vector<PlannedGpu> gpus;  // only GPUs that change
};

struct Plan {
  std::vector<PlannedNode> nodes;  // only nodes that change, by name
  std::vector<PodOutcome> pods;    // one for each pending pod, in input order
  int placed = 0;
  int upper_bound = 0;  // no plan can place more pods than this
  int created = 0, destroyed = 0, gpus_touched = 0, nodes_touched = 0;
  // The plan is proven to place the most: all pods that any plan can place, or what an exhaustive
  // search found best, priorities in their order. False: a longer search, or another, might place
  // more.
  bool complete = true;
};

Plan MakePlan(const cluster::ClusterSnapshot& snapshot,
              std::span<const std::shared_ptr<const cluster::Pod>> pending,
              const scheduling::FrameworkChoice& frameworks, const PlanOptions& options);

}  // namespace nos::planning
