// Chooses a spot for a request under one policy.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "study/churn/mix.h"
#include "study/churn/simulation.h"
#include "study/placement/relocation.h"

namespace nos::study {

class Chooser {
 public:
  Chooser() = default;
  Chooser(const Chooser&) = delete;
  Chooser& operator=(const Chooser&) = delete;
  virtual ~Chooser() = default;
  // The spot for the request, and the instances that move for it; nullopt if it is rejected.
  virtual std::optional<Relocation> Choose(gpu::ProfileId profile) = 0;
  // Reports a changed layout. All GPUs start empty.
  virtual void Set(uint32_t gpu, gpu::LayoutId layout) = 0;
};

// nos: the spot with the least loss of potential; if there is none, at most options.moves moves.
std::unique_ptr<Chooser> MakeNosChooser(const ChurnOptions& options);

// The baselines that scan the GPUs one after the other: first-fit, best-fit, largest-free-run,
// placements-lost. Only placements of the plain profiles and of the mix are counted.
std::unique_ptr<Chooser> MakeScanChooser(const ChurnOptions& options, const Mix& mix);

}  // namespace nos::study
