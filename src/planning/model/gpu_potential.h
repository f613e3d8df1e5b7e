// Rates what a GPU with a given layout can still serve.
//
//   GpuPotential potential(problem);
//   int left = potential.Of(model, layout);   // highest for an empty GPU
//   int loss = potential.Lost(before, after);
//
// The potential is that of gpu/fragmentation.h, with a much higher weight for the slices that pods
// request now. It is computed once for each layout.
//
// The problem must outlive it. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "planning/model/gpu_state.h"

namespace nos::planning {

class GpuPotential {
 public:
  explicit GpuPotential(const Problem& problem);

  int Of(uint16_t model, gpu::LayoutId layout) {
    const int known = by_model_[model].by_layout[layout];
    return known >= 0 ? known : Compute(model, layout);
  }
  // Potential lost between a state and a later one.
  int Lost(const GpuState& before, const GpuState& after);

 private:
  struct ModelPotential {
    std::vector<int> weight;               // by profile
    std::vector<gpu::ProfileId> weighted;  // profiles with a weight above zero
    std::vector<int> by_layout;            // -1: not computed yet
  };
  ModelPotential Weigh(const gpu::Model& model, size_t index) const;
  int Compute(uint16_t model, gpu::LayoutId layout);

  const Problem& problem_;
  std::vector<ModelPotential> by_model_;
};

}  // namespace nos::planning
