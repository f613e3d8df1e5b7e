// The planning problem as dense integers, the input of the search. It does not depend on
// Kubernetes; translate.h converts a snapshot into a Problem.
//
//   Problem problem = ...;                // models, slices, nodes, GPUs, pod classes
//   problem.IndexShapes();
//   SearchResult found = Search(problem, limits);
//
// Plain data, built once, then read-only.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "gpu/catalogue.h"
#include "scheduling/packing/demand.h"
#include "scheduling/packing/node.h"

namespace nos::planning {

inline constexpr gpu::ProfileId kNoProfile = 0xff;
inline constexpr uint16_t kNoModel = 0xffff;
// A free amount that pods cannot exhaust: for resources that the node does not limit.
inline constexpr int64_t kPlenty = int64_t{1} << 60;

struct SliceCount {
  uint16_t slice = 0;  // index into Problem::slices
  uint16_t count = 0;
  // More that are requested; used in messages only, because `count` alone is impossible already.
  int64_t beyond = 0;
  friend auto operator<=>(const SliceCount&, const SliceCount&) = default;
};

// A kind of slice that pods request, by resource name ("nvidia.com/mig-1g.5gb").
struct Slice {
  // By model index: the profile that serves it, or kNoProfile.
  std::vector<gpu::ProfileId> profile;
  int size = 0;     // its largest share of a GPU on any model, in 840ths
  int compute = 0;  // compute slices
};

// Equal pods: same requests, constraints, priority and wait rank.
struct PodClass {
  std::vector<SliceCount> slices;  // largest slice first; empty: no slices
  std::vector<int64_t> requests;   // by resource dimension
  int allowed = 0;                 // row of Problem::allowed
  int level = 0;      // 0 is served first; serving a later level never displaces an earlier one
  int64_t value = 1;  // value of one pod in the objective
  int count = 0;
  bool aged = false;  // has waited so long that slots are kept for it if it cannot be placed
  int gang = -1;      // index into Problem::gangs; -1: a single pod
  // A gang member beyond those that the gang lacks; a single pod once the gang is complete.
  bool extra = false;
  int shape = 0;  // set by IndexShapes
};

// All `lacking` pods of its classes that are not extra are placed, or none.
struct ProblemGang {
  int lacking = 1;
};

// Classes with equal slices and filters share a shape. Pods without slices share one if their
// requests differ by less than a factor of two and they request equally many whole GPUs.
struct Shape {
  std::vector<SliceCount> slices;
  int allowed = 0;
  int slice_count = 0;                // slices in all
  std::vector<int64_t> min_requests;  // smallest request of any class of this shape, by dimension
};

struct ProblemGpu {
  int node = 0;
  uint16_t model = 0;  // index into Problem::models
  // The model to which it may switch while nothing is used on it; kNoModel: none. No slice belongs
  // to both models.
  uint16_t alternative = kNoModel;
  // May be repartitioned. Otherwise only its existing free instances serve pods.
  bool may_repartition = true;
  gpu::LayoutId used = gpu::LayoutTable::kEmpty;
  uint64_t free = 0;     // bit per placement: existing unused instances
  uint64_t blocked = 0;  // bit per placement: kept for a pod that has waited too long
  // For a counted() model, instead of the three above: the profiles of its shares, by start, and
  // the number of slots kept for a pod that has waited too long.
  std::vector<gpu::ProfileId> used_shares = {}, free_shares = {};
  int kept_slots = 0;
  bool broken = false;  // its used instances are unknown: serves no pod
  int kept_shares = 0;  // number of shares kept for that pod, in addition to kept_slots

  // Switches to the other model. REQUIRES: another model exists and nothing is used.
  void Switch() {
    std::swap(model, alternative);
    free = 0;
    free_shares.clear();
  }
  bool IsUsed() const { return used != gpu::LayoutTable::kEmpty || !used_shares.empty(); }
};

struct ProblemNode {
  int first_gpu = 0, gpu_count = 0;
  // Its slices are counted like any extended resource (nodes whose GPUs nos does not partition):
  // pods take them from the resource dimensions and no GPU is chosen.
  bool slices_as_resources = false;
};

// Inputs of packing_cost.h, for pods without slices. Empty if all pods have slices.
struct Packing {
  scheduling::packing::Demand demand;
  // By node, in its current state: MIG GPUs first, then whole GPUs.
  std::vector<scheduling::packing::Node> nodes;
  std::vector<uint32_t> tie_order;      // by node: among equal nodes the least is preferred
  int cpu = -1, memory = -1, gpu = -1;  // resource dimensions; -1: no pod requests it
};

struct Problem {
  std::vector<const gpu::Model*> models;
  std::vector<Slice> slices;
  std::vector<PodClass> classes;
  std::vector<ProblemGang> gangs;  // most urgent first
  std::vector<Shape> shapes;
  std::vector<ProblemNode> nodes;
  std::vector<ProblemGpu> gpus;            // grouped by node
  size_t dimensions = 0;                   // at least 1
  std::vector<int64_t> free;               // nodes x dimensions
  std::vector<int64_t> capacity;           // nodes x dimensions: free amount if the node were empty
  std::vector<std::vector<bool>> allowed;  // row x node: the filters admit the pod
  Packing packing;
  // Filled by IndexShapes:
  int levels = 0;
  std::vector<int64_t> row_nodes;  // by row of allowed: number of nodes
  std::vector<double> total_free;  // by dimension, over all nodes

  const int64_t* FreeOf(int node) const { return &free[static_cast<size_t>(node) * dimensions]; }
  // Call after all other members are set.
  void IndexShapes();
};

}  // namespace nos::planning
