#include "planning/model/gpu_potential.h"

#include "gpu/fragmentation.h"
#include "planning/model/share_states.h"

namespace nos::planning {
namespace {

// Extra weight of a profile that pods request now.
constexpr int kDemandWeight = 16;

}  // namespace

GpuPotential::GpuPotential(const Problem& problem) : problem_(problem) {
  for (size_t m = 0; m < problem.models.size(); ++m) {
    by_model_.push_back(Weigh(*problem.models[m], m));
  }
}

GpuPotential::ModelPotential GpuPotential::Weigh(const gpu::Model& model, size_t index) const {
  const auto worth = [&](gpu::ProfileId p) {
    return model.counted() ? model.profile(p).slots : model.profile(p).compute;
  };
  ModelPotential potential;
  std::vector<int>& weight = potential.weight;
  weight.resize(model.profiles().size());
  for (const gpu::ProfileId p : gpu::PlainProfiles(model)) weight[p] = worth(p);
  for (const Slice& slice : problem_.slices) {
    const gpu::ProfileId p = slice.profile[index];
    if (p != kNoProfile) weight[p] += worth(p) * kDemandWeight;
  }
  for (size_t p = 0; p < weight.size(); ++p) {
    if (weight[p] > 0) potential.weighted.push_back(static_cast<gpu::ProfileId>(p));
  }
  const size_t layouts =
      model.counted() ? size_t{Taken{model.slots() + 1, 0}.Pack()} : model.layouts().size();
  potential.by_layout.assign(layouts, -1);
  return potential;
}

int GpuPotential::Compute(uint16_t model, gpu::LayoutId layout) {
  ModelPotential& potential = by_model_[model];
  const gpu::Model& gpu = *problem_.models[model];
  int sum = 0;
  for (const gpu::ProfileId p : potential.weighted) {
    const int copies = gpu.counted() ? CopiesOfShare(gpu, Taken::Of(layout), {}, p)
                                     : gpu.layouts().Copies(layout, p);
    sum += potential.weight[p] * copies;
  }
  return potential.by_layout[layout] = sum;
}

int GpuPotential::Lost(const GpuState& before, const GpuState& after) {
  const int was = Of(before.model, before.occupied);
  if (before.model == after.model) return was - Of(after.model, after.occupied);
  // Relative to an empty GPU of the new model.
  return Of(after.model, gpu::LayoutTable::kEmpty) - Of(after.model, after.occupied);
}

}  // namespace nos::planning
