// Slots kept for pods that wait too long: where what they need falls free soonest, nothing else of
// no stronger claim is put.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "planning/model/draft.h"

namespace nos::planning {

struct SlotInTheWay {
  int gpu = 0;
  gpu::PlacementId placement = 0;  // of an instance that must fall free; of shares the profile
  int nth = 0;                     // of equal shares: those in use come before planned ones
  uint16_t model = 0;              // of the GPU then: index of Problem::models
  friend auto operator<=>(const SlotInTheWay&, const SlotInTheWay&) = default;
};

// A place for one pod once some instances are gone.
struct FuturePlace {
  int node = 0;
  std::vector<Device> devices;
  std::vector<SlotInTheWay> in_the_way;  // sorted
  bool short_of_resources = false;       // cpu, memory... must fall free too
};

// The place with fewest instances in the way, given the layouts of this draft; ties: one where no
// other resource lacks, then the first node. None if no node could serve the class even when empty.
std::optional<FuturePlace> SoonestPlace(const Draft& draft, int cls);

// The same on one node, whatever the filters say of it.
std::optional<FuturePlace> PlaceOnNode(const Draft& draft, int cls, int node);

// Blocks the place for everyone: its slots, and on the node what the pod asks of other resources.
// `problem` is the one whose next draft shall respect that.
void Block(Problem& problem, const FuturePlace& place, int cls);

}  // namespace nos::planning
