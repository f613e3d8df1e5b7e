// New nodes with the pods that they are for, while a mix of them is looked for.
//
//   const Problem problem = WithNodes(types, TypesOf(bins));
//   Draft draft = Load(problem, states, bins);   // pods where the bins have them
//   ... move them about ...
//   Unload(draft, bins);
//
// `types`: a Problem with one node of each type (growth_world.h). A bin is a copy of one.
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <vector>

#include "planning/model/draft.h"
#include "planning/model/problem.h"
#include "planning/scaling/with_nodes.h"

namespace nos::planning {

// Nodes of a pool; or one node that is there already, with what is free of it.
struct NodeType {
  static constexpr int kThere = -1;

  int pool = 0;       // as the caller counts them; kThere: of none
  int64_t price = 0;  // of one, for an hour, in thousandths
  int coming = 0;     // asked for already, and not there yet
  int due = 0;        // to be asked for whatever is planned: the pool has fewer than its minimum
  int room = 0;       // further ones that there may be

  int Free() const { return coming + due; }
  bool IsThere() const { return pool == kThere; }
};

// A pod on its node.
struct Seat {
  int cls = 0;
  std::vector<Device> devices;  // their GPUs are those of the node, from 0
};

struct Bin {
  int type = 0;      // node of the types
  bool paid = true;  // false: it comes whatever is planned
  std::vector<Seat> seats{};
};
using Bins = std::vector<Bin>;

// What is paid for an hour, and for how many nodes.
struct GrowthCost {
  int64_t price = 0;
  int nodes = 0;
  friend auto operator<=>(const GrowthCost&, const GrowthCost&) = default;
};
// Of those with pods.
GrowthCost CostOf(const Bins& bins, std::span<const NodeType> types);
std::vector<int> PlacedOf(const Bins& bins, size_t classes);  // by class
// By level, as Draft::score.
std::vector<int64_t> ScoreOf(const Problem& types, const std::vector<int>& placed);
std::vector<int> TypesOf(const Bins& bins);

// `problem`: with the nodes of the bins, in their order.
Draft Load(const Problem& problem, GpuStates& states, const Bins& bins);
// The other way round: what the bins hold afterwards is what their nodes do.
void Unload(const Draft& draft, Bins& bins);

// Takes the pods out of gangs of which too few are there, until all that are left are whole.
// Whether there were any.
bool TakeOutBrokenGangs(const Problem& types, Bins& bins);
// Without those that are paid and hold nothing.
void DropEmpty(Bins& bins);

}  // namespace nos::planning
