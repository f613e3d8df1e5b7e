// One policy's choice of a spot for a request.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "study/placement/relocation.h"
#include "study/churn/simulation.h"
#include "study/churn/mix.h"

namespace nos::study {

class Chooser {
 public:
  Chooser() = default;
  Chooser(const Chooser&) = delete;
  Chooser& operator=(const Chooser&) = delete;
  virtual ~Chooser() = default;
  // Where the request goes, and which instances move for it; nothing when it is refused.
  virtual std::optional<Relocation> Choose(gpu::ProfileId profile) = 0;
  // The GPU's layout has changed. All GPUs start empty.
  virtual void Set(uint32_t gpu, gpu::LayoutId layout) = 0;
};

// nos: least loss of potential, then at most options.moves moves.
std::unique_ptr<Chooser> MakeNosChooser(const ChurnOptions& options);

// The baselines that look at one GPU after the other: first-fit, best-fit, largest-free-run,
// placements-lost. Placements are counted over the plain profiles and those of the mix.
std::unique_ptr<Chooser> MakeScanChooser(const ChurnOptions& options, const Mix& mix);

}  // namespace nos::study
