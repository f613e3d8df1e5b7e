// A plan under construction: the pods placed on each node and the remaining capacity, with undo.
//
//   Draft draft(problem, states, Draft::Free::kKeep);
//   std::vector<Device> devices;
//   if (draft.HasResources(cls, node) && draft.Find(shape, node, &devices)) {
//     draft.Place(cls, node, devices);
//   }
//
// Copies are independent but share the GpuStates of the constructor. Not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "planning/model/gpu_states.h"
#include "planning/model/problem.h"

namespace nos::planning {

struct Device : Taking {
  int gpu = 0;  // index into Problem::gpus
};

struct PlacedPod {
  int cls = 0, node = 0;
  uint32_t first_device = 0;
  uint32_t device_count = 0;
  bool alive = true;  // false: removed again
};

// The cost of a plan besides its pending pods. Smaller is better; members are compared in order.
struct ChangeCost {
  int instances = 0;        // created and destroyed
  int gpus = 0, nodes = 0;  // with a changed layout
  int64_t loss = 0;         // of potential (gpu/fragmentation.h)
  friend auto operator<=>(const ChangeCost&, const ChangeCost&) = default;
};

class Draft {
 public:
  // kIgnore: free instances of GPUs that may be repartitioned count as empty space, which serves
  // more pods. Realise (realise.h) later keeps as many of them as possible.
  enum class Free { kKeep, kIgnore };

  Draft(const Problem& problem, GpuStates& states, Free free);

  // From now on Find adds no cost for opening this GPU or for destroying its free instances.
  void Open(int gpu);

  bool HasResources(int cls, int node) const {
    return Covers(problem_->classes[cls].requests, node);
  }
  bool Covers(const std::vector<int64_t>& requests, int node) const;
  // The cost of slices for a pod of this shape on the node; smaller is better, 0 for a pod without
  // slices (packing_cost.h). nullopt if they do not fit. Fills `devices`. Checks slices and
  // filters, not resources.
  std::optional<uint64_t> Find(int shape, int node, std::vector<Device>* devices);
  // The same without checking filters.
  std::optional<uint64_t> FindSlices(int shape, int node, std::vector<Device>* devices);
  // Only checks whether the slices fit; fast if a node with equal GPUs has been checked before.
  // nullopt: packing was stopped (GpuStates::StopWhen) before the result was known. Find reports
  // that as "does not fit".
  std::optional<bool> HasRoom(int shape, int node);

  void Place(int cls, int node, std::span<const Device> devices);
  void Remove(uint32_t pod);

  // Rollback() undoes everything after Mark().
  size_t Mark() const { return journal_.entries.size(); }
  void Rollback(size_t mark);

  const Problem& problem() const { return *problem_; }
  GpuStates& states() const { return *states_; }
  const std::vector<PlacedPod>& pods() const { return pods_; }
  std::span<const Device> DevicesOf(const PlacedPod& pod) const {
    return {devices_.data() + pod.first_device, pod.device_count};
  }
  // Indices into pods(), including removed pods.
  const std::vector<uint32_t>& PodsOn(int node) const { return pods_on_[node]; }
  int PlacedOf(int cls) const { return placed_.by_class[cls]; }
  int placed() const { return placed_.total; }
  GpuStateId gpu(int g) const { return gpu_[g]; }
  GpuStateId Original(int g) const { return original_[g]; }
  const int64_t* FreeOf(int node) const { return &free_[static_cast<size_t>(node) * dimensions_]; }
  int CreatedOn(int gpu) const { return created_[gpu]; }

  // By level: the value of the objective. A lexicographically larger vector is a better plan.
  const std::vector<int64_t>& score() const { return placed_.score; }
  ChangeCost Cost() const;
  // The part of Cost() on this node.
  ChangeCost CostOn(int node) const;

  // Nodes in the order in which they changed; each change increments version(node). A queue of
  // candidates is updated by reading the new entries.
  const std::vector<int>& changes() const { return changes_.nodes; }
  uint32_t version(int node) const { return changes_.version[node]; }
  // Incremented when capacity may have grown again.
  uint32_t epoch() const { return changes_.epoch; }

 private:
  struct JournalEntry {
    uint32_t pod = 0;
    bool placed = false;
    size_t first_undo = 0;
  };
  struct Choice {
    Step step;
    int gpu = -1;
    uint64_t cost = 0;
  };

  Choice BestGpu(const ProblemNode& node, uint16_t slice, bool node_open) const;
  bool FindGreedily(const Shape& shape, const ProblemNode& node, bool node_open,
                    std::vector<Device>* devices, uint64_t* cost);
  std::optional<bool> FindExactly(int shape, int node, std::vector<Device>* devices);
  int GpusOf(int node);
  bool IsOpen(int gpu) const { return created_[gpu] > 0 || open_[gpu]; }
  GpuStateId Recompute(int gpu) const;
  void Charge(const PlacedPod& pod, int sign);
  void Touch(int node);

  const Problem* problem_;
  GpuStates* states_;
  size_t dimensions_;
  std::vector<GpuStateId> original_, gpu_;
  std::vector<int64_t> free_;  // node x dimension
  std::vector<PlacedPod> pods_;
  std::vector<Device> devices_;
  std::vector<std::vector<uint32_t>> pods_on_;  // by node
  struct {
    std::vector<int> by_class;
    int total = 0;
    std::vector<int64_t> score;
  } placed_;
  std::vector<uint16_t> created_;  // by GPU
  std::vector<bool> open_;         // by GPU
  // By node: number of open GPUs, including those with created instances.
  std::vector<uint16_t> open_gpus_;
  struct {
    std::vector<JournalEntry> entries;
    std::vector<std::pair<int, GpuStateId>> states;  // to restore
  } journal_;
  struct {
    std::vector<int> nodes;         // in the order of their changes
    std::vector<uint32_t> version;  // by node
    uint32_t epoch = 0;
  } changes_;
  std::vector<int> slices_of_;                     // by shape: slice list id in states_
  std::vector<std::pair<uint32_t, int>> gpus_of_;  // by node: version + 1, GPU list id in states_
  mutable std::vector<GpuStateId> scratch_;        // states of a node's GPUs while a pod is tried
};

// One unit of value outweighs a million pods; pods without value still count.
inline constexpr int64_t kValueUnit = int64_t{1} << 20;

}  // namespace nos::planning
