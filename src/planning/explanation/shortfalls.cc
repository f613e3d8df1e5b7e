#include "planning/explanation/shortfalls.h"

namespace nos::planning {

using scheduling::Remedy;

namespace {

int64_t CapacityOf(const Problem& problem, int node, size_t dimension) {
  return problem.capacity[static_cast<size_t>(node) * problem.dimensions + dimension];
}

}  // namespace

std::optional<Remedy> ForImpossible(const Translation& t, const PodClass& cls,
                                    const scheduling::SliceDemand& demand) {
  if (std::optional<Remedy> impossible = demand.Impossible()) return impossible;
  for (size_t r = 0; r < cls.requests.size(); ++r) {
    auto less = scheduling::RequestLess(cluster::ResourceName(t.dimensions[r]), cls.requests[r]);
    for (size_t n = 0; n < t.nodes.size() && less; ++n) {
      if (CapacityOf(t.problem, static_cast<int>(n), r) >= cls.requests[r]) less.reset();
    }
    if (less) return less;
  }
  return std::nullopt;
}

bool NodeHasProfile(const Problem& problem, int node, uint16_t slice) {
  const ProblemNode& where = problem.nodes[node];
  for (int g = where.first_gpu; g < where.first_gpu + where.gpu_count; ++g) {
    const std::vector<gpu::ProfileId>& profile = problem.slices[slice].profile;
    const ProblemGpu& gpu = problem.gpus[g];
    if (profile[gpu.model] != kNoProfile) return true;
    if (gpu.alternative != kNoModel && profile[gpu.alternative] != kNoProfile) return true;
  }
  return false;
}

bool AdvertisesSlices(const Translation& t, const PodClass& cls, int node) {
  if (!t.problem.nodes[node].slices_as_resources) return false;
  for (size_t r = 0; r < cls.requests.size(); ++r) {
    const bool slice = cls.requests[r] > 0 && cluster::IsSliceResource(t.dimensions[r]);
    if (slice && CapacityOf(t.problem, node, r) > 0) return true;
  }
  return false;
}

bool NeedsOptIn(const Translation& t, const PodClass& cls, int node) {
  return !cls.slices.empty() && !t.nodes[node]->gpus.managed && !AdvertisesSlices(t, cls, node);
}

int LackingDimension(const Draft& draft, int cls, int node) {
  const std::vector<int64_t>& requests = draft.problem().classes[cls].requests;
  for (size_t r = 0; r < requests.size(); ++r) {
    if (requests[r] > 0 && requests[r] > draft.FreeOf(node)[r]) return static_cast<int>(r);
  }
  return -1;
}

}  // namespace nos::planning
