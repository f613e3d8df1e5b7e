// The planning problem as dense integers: what the search works on. Kubernetes is left outside;
// translate.h makes a Problem of a snapshot.
//
//   Problem problem = ...;                // models, slices, nodes, GPUs, pod classes
//   problem.IndexShapes();
//   SearchResult found = Search(problem, limits);
//
// Plain data, built once, then only read.
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
// A free amount that no pod can use up: resources that a node's arithmetic does not limit.
inline constexpr int64_t kPlenty = int64_t{1} << 60;

struct SliceCount {
  uint16_t slice = 0;  // index of Problem::slices
  uint16_t count = 0;
  int64_t beyond = 0;  // how many more are asked for: only in words, count is impossible already
  friend auto operator<=>(const SliceCount&, const SliceCount&) = default;
};

// A kind of slice that pods ask for, by resource name ("nvidia.com/mig-1g.5gb").
struct Slice {
  // By model index: the profile that serves it there, or kNoProfile.
  std::vector<gpu::ProfileId> profile;
  int size = 0;     // largest share of a GPU that it takes on any model, in 840ths
  int compute = 0;  // compute slices
};

// Pods that are alike: equal requests, constraints, priority and claim.
struct PodClass {
  std::vector<SliceCount> slices;  // largest slice first; empty: asks for none
  std::vector<int64_t> requests;   // by resource dimension
  int allowed = 0;                 // row of Problem::allowed
  int level = 0;                   // 0 is served first; a later level never costs an earlier one
  int64_t value = 1;               // what the objective counts for one pod
  int count = 0;
  bool aged = false;   // has waited so long that slots are kept for it when it cannot be placed
  int gang = -1;       // index of Problem::gangs; -1: each pod by itself
  bool extra = false;  // of a gang: beyond what that lacks; each by itself once the gang is whole
  int shape = 0;       // set by IndexShapes
};

// Of the pods of its classes that are no extras, so many are placed, or none of it.
struct ProblemGang {
  int lacking = 1;
};

// Pods without slices whose requests differ by less than a factor of two, with as many whole GPUs,
// are of one shape too.
struct Shape {
  std::vector<SliceCount> slices;
  int allowed = 0;
  int slice_count = 0;                // slices in all
  std::vector<int64_t> min_requests;  // the least that any class of this shape asks, by dimension
};

struct ProblemGpu {
  int node = 0;
  uint16_t model = 0;  // index of Problem::models
  // What it may be instead once nothing is used on it, and hence at once if nothing is; kNoModel:
  // nothing. No slice is of both.
  uint16_t other = kNoModel;
  // May be cut anew. Otherwise only its free instances serve pods, as they are.
  bool recut = true;
  gpu::LayoutId used = gpu::LayoutTable::kEmpty;
  uint64_t free = 0;     // bit per placement: instances that are there and unused
  uint64_t blocked = 0;  // bit per placement: kept for a pod that waits too long
  // Of a model that is counted(), instead of the three above: the profiles of its shares, by start,
  // and how many slots are kept for a pod that waits too long.
  std::vector<gpu::ProfileId> used_shares = {}, free_shares = {};
  int kept_slots = 0;
  bool broken = false;  // nobody knows what is used of it: takes no pod
  int kept_shares = 0;  // and how many shares are kept for it, beside kept_slots

  // To the other model. REQUIRES: there is one, and nothing is used.
  void Switch() {
    std::swap(model, other);
    free = 0;
    free_shares.clear();
  }
  bool IsUsed() const { return used != gpu::LayoutTable::kEmpty || !used_shares.empty(); }
};

struct ProblemNode {
  int first_gpu = 0, gpu_count = 0;
  // Its slices are counted like any extended resource (nodes whose GPUs nos does not cut): pods of
  // this node take them from its resource dimensions and no GPU is chosen.
  bool slices_as_resources = false;
};

// How nodes are weighed for pods without slices (packing_cost.h). Empty when all pods have some.
struct Packing {
  scheduling::packing::Demand demand;
  // By node, as it is: its MIG GPUs first, then its whole ones.
  std::vector<scheduling::packing::Node> nodes;
  std::vector<uint32_t> tie_order;      // by node: the least goes first among equals
  int cpu = -1, memory = -1, gpu = -1;  // resource dimensions; -1: no pod asks for any
};

struct Problem {
  std::vector<const gpu::Model*> models;
  std::vector<Slice> slices;
  std::vector<PodClass> classes;
  std::vector<ProblemGang> gangs;  // the most urgent first
  std::vector<Shape> shapes;
  std::vector<ProblemNode> nodes;
  std::vector<ProblemGpu> gpus;            // grouped by node
  size_t dimensions = 0;                   // at least 1
  std::vector<int64_t> free;               // nodes x dimensions
  std::vector<int64_t> capacity;           // nodes x dimensions: free if nothing ran there
  std::vector<std::vector<bool>> allowed;  // row x node: no filter keeps the pod away
  Packing packing;
  // Filled by IndexShapes:
  int levels = 0;
  std::vector<int64_t> row_nodes;  // by row of allowed: how many nodes
  std::vector<double> total_free;  // by dimension, over all nodes

  const int64_t* FreeOf(int node) const { return &free[static_cast<size_t>(node) * dimensions]; }
  // Call when everything else is there.
  void IndexShapes();
};

}  // namespace nos::planning
