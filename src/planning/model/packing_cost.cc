#include "planning/model/packing_cost.h"

#include <algorithm>

#include "scheduling/packing/packer.h"
#include "scheduling/packing/view.h"

namespace nos::planning {
namespace {

using scheduling::packing::kWholeGpu;
using scheduling::packing::Node;
using scheduling::packing::PodKind;

constexpr int64_t kMebibyte = int64_t{1} << 20;
constexpr int64_t kMaxSteps = int64_t{1} << 30;

PodKind KindOf(const Packing& packing, const std::vector<int64_t>& requests) {
  const auto asked = [&](int dimension) {
    return dimension < 0 ? 0 : std::max<int64_t>(requests[dimension], 0);
  };
  const int64_t memory = asked(packing.memory);
  PodKind kind{.cpu_milli = asked(packing.cpu),
               .memory_mib = memory / kMebibyte + (memory % kMebibyte != 0 ? 1 : 0)};
  kind.gpus = static_cast<int>(std::min(asked(packing.gpu), scheduling::packing::kMaxDevices));
  kind.milli = kind.gpus > 0 ? kWholeGpu : 0;
  return kind;
}

// The node including the pods that the draft has placed there.
Node NodeNow(const Draft& draft, int index) {
  const Problem& problem = draft.problem();
  const Packing& packing = problem.packing;
  const ProblemNode& place = problem.nodes[index];
  const int64_t* free = draft.FreeOf(index);
  Node node = packing.nodes[index];
  if (packing.cpu >= 0) node.cpu_milli = free[packing.cpu];
  if (packing.memory >= 0) node.memory_mib = free[packing.memory] / kMebibyte;
  for (int i = 0; i < place.gpu_count; ++i) {
    const int gpu = place.first_gpu + i;
    if (problem.gpus[gpu].broken) continue;
    const GpuStateId state = draft.gpu(gpu);
    const int slots = problem.models[draft.states().Get(state).model]->slots();
    const int taken = draft.states().table().TakenSlots(state);
    node.gpu_milli[i] = kWholeGpu * (slots - taken) / slots;
  }
  if (packing.gpu < 0) return node;
  for (size_t i = place.gpu_count; i < node.gpu_milli.size(); ++i) {
    const auto nth = static_cast<int64_t>(i) - place.gpu_count;
    node.gpu_milli[i] = nth < free[packing.gpu] ? kWholeGpu : 0;
  }
  return node;
}

}  // namespace

uint64_t PackingCost(const Draft& draft, int shape, int index) {
  const Packing& packing = draft.problem().packing;
  if (packing.nodes.empty()) return 0;
  const PodKind kind = KindOf(packing, draft.problem().shapes[shape].min_requests);
  const Node node = NodeNow(draft, index);
  scheduling::packing::NodeValue& value = draft.states().node_value();
  const double loss = value.Worth(node) - value.AfterPlacing(node, kind).worth;
  const int64_t steps = scheduling::packing::LossSteps(kind, node, loss);
  return static_cast<uint64_t>(steps + kMaxSteps) << 32 | packing.tie_order[index];
}

}  // namespace nos::planning
