#include "planning/model/gpu_states.h"

namespace nos::planning {
namespace {

constexpr int64_t kStepsOfPacking = 3000;  // between two calls of stop_

}  // namespace

GpuStates::GpuStates(const Problem& problem)
    : table_(problem),
      potential_(problem),
      steps_(problem, table_, potential_),
      sets_(problem, table_),
      arrangements_(problem, table_, potential_),
      packings_(problem, sets_),
      node_value_(problem.packing.demand) {}

const std::optional<std::vector<Counts>>* GpuStates::Pack(int gpus, int slices) {
  return packings_.Pack(gpus, slices, [this] {
    AddWork(kStepsOfPacking);
    return stop_();
  });
}

}  // namespace nos::planning
