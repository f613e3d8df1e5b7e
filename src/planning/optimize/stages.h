// The search with waiting kept in mind: pods whose long wait gives them a claim, and that cannot be
// placed, get slots kept for them before anyone with a weaker claim is served.
#pragma once

#include <functional>
#include <vector>

#include "planning/optimize/reserve.h"
#include "planning/optimize/search.h"

namespace nos::planning {

struct Assignment {
  int cls = 0, node = 0;
  std::vector<Device> devices;
};

struct Reservation {
  int cls = 0;
  FuturePlace place;
};

struct StagedResult {
  Draft draft;               // of the whole problem
  std::vector<int> members;  // by index of draft.pods(): the member of its class placed there
  std::vector<Reservation> reservations;
  int upper_bound = 0;
  bool complete = true;
  // By gang, how many of what it lacks found a place when it was last tried; all: it is whole.
  std::vector<int> gangs_found = {};
};

// `most_reservations`: for how many pods slots are kept at a time.
StagedResult SearchInStages(const Problem& problem, GpuStates& states, int most_reservations,
                            const std::function<bool()>& out_of_time);

}  // namespace nos::planning
