// Keeps slots for pods that have waited too long: no other pod with the same or a lower rank is
// placed where their slots become free soonest.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "planning/model/draft.h"

namespace nos::planning {

struct SlotInTheWay {
  int gpu = 0;
  gpu::PlacementId placement = 0;  // of an instance that must end; for shares the profile
  int nth = 0;                     // index among equal shares: used ones come before planned ones
  uint16_t model = 0;              // model of the GPU at that time: index into Problem::models
  friend auto operator<=>(const SlotInTheWay&, const SlotInTheWay&) = default;
};

// A place for one pod after some instances have ended.
struct FuturePlace {
  int node = 0;
  std::vector<Device> devices;
  std::vector<SlotInTheWay> in_the_way;  // sorted
  bool short_of_resources = false;       // cpu, memory or another resource must become free, too
};

// The place with the fewest instances in the way, given the layouts of this draft. Ties: a place
// with enough other resources, then the first node. nullopt if no node could serve the class even
// when empty.
std::optional<FuturePlace> SoonestPlace(const Draft& draft, int cls);

// The same on one node, ignoring filters.
std::optional<FuturePlace> PlaceOnNode(const Draft& draft, int cls, int node);

// Blocks the place for all pods: its slots, and the pod's other requests on the node. `problem` is
// the problem of the next draft.
void Block(Problem& problem, const FuturePlace& place, int cls);

}  // namespace nos::planning
