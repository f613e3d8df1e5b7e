// Runs the search with regard to waiting times: pods that have waited too long and cannot be placed
// get slots kept for them before pods of a lower rank are served.
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
  std::vector<int> members;  // by index of draft.pods(): index of the placed member in its class
  std::vector<Reservation> reservations;
  int upper_bound = 0;
  bool complete = true;
  // By gang: number of its lacking pods that found a place in the last attempt; all of them if the
  // gang is placed.
  std::vector<int> gangs_found = {};
};

// `max_reservations`: maximum number of pods for which slots are kept at a time.
StagedResult SearchInStages(const Problem& problem, GpuStates& states, int max_reservations,
                            const std::function<bool()>& out_of_time);

}  // namespace nos::planning
