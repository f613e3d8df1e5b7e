// New nodes with the pods assigned to them, while a mix of nodes is searched.
//
//   const Problem problem = WithNodes(types, TypesOf(bins));
//   Draft draft = Load(problem, states, bins);   // pods at their assignments
//   ... move pods ...
//   Unload(draft, bins);
//
// `types`: a Problem with one node of each type (growth_world.h). A bin is a copy of one of these
// nodes.
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <vector>

#include "planning/model/draft.h"
#include "planning/model/problem.h"
#include "planning/scaling/with_nodes.h"

namespace nos::planning {

// The nodes of a node group; or one existing node with its free resources.
struct NodeType {
  static constexpr int kThere = -1;

  int pool = 0;       // index of the caller's group; kThere: an existing node
  int64_t price = 0;  // per node and hour, in thousandths
  int coming = 0;     // requested already, has not joined yet
  int due = 0;        // requested in any case, because the group is below its minimum
  int room = 0;       // maximum number of additional nodes

  int Free() const { return coming + due; }
  bool IsThere() const { return pool == kThere; }
};

// The assignment of a pod to a node.
struct BinAssignment {
  int cls = 0;
  std::vector<Device> devices;  // GPU indices are relative to the node, from 0
};

struct Bin {
  int type = 0;      // index into the nodes of `types`
  bool paid = true;  // false: the node comes in any case
  std::vector<BinAssignment> assignments{};
};
using Bins = std::vector<Bin>;

// The price per hour, and the number of paid nodes.
struct GrowthCost {
  int64_t price = 0;
  int nodes = 0;
  friend auto operator<=>(const GrowthCost&, const GrowthCost&) = default;
};
// Counts nodes with pods only.
GrowthCost CostOf(const Bins& bins, std::span<const NodeType> types);
std::vector<int> PlacedOf(const Bins& bins, size_t classes);  // by class
// By level, comparable to Draft::score.
std::vector<int64_t> ScoreOf(const Problem& types, const std::vector<int>& placed);
std::vector<int> TypesOf(const Bins& bins);

// `problem`: contains the nodes of the bins, in their order.
Draft Load(const Problem& problem, GpuStates& states, const Bins& bins);
// The inverse: assigns to the bins the pods of the draft.
void Unload(const Draft& draft, Bins& bins);

// Removes the pods of incomplete gangs until all remaining gangs are complete. True if any were
// removed.
bool TakeOutBrokenGangs(const Problem& types, Bins& bins);
// Removes paid nodes without pods.
void DropEmpty(Bins& bins);

}  // namespace nos::planning
