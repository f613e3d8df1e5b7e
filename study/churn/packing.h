// Decides whether given numbers of instances fit on empty GPUs at all, for models where an exact
// closed form exists.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.h"
#include "gpu/catalogue.h"
#include "study/churn/mix.h"

namespace nos::study {

class PackingTest {
 public:
  // Exact for eight-slot GPUs with the five plain profiles, and for mixes whose profile sizes
  // divide each other (A30, RTX PRO 6000 with plain profiles). Error: kInvalid otherwise.
  static Result<PackingTest> For(const gpu::Model& model, const Mix& mix);

  // True if counts[profile] instances of each profile fit together on `gpus` GPUs.
  bool Fits(const std::vector<int64_t>& counts, int64_t gpus) const;

 private:
  bool FitsEightSlots(const std::vector<int64_t>& counts, int64_t gpus) const;
  bool FitsSlots(const std::vector<int64_t>& counts, int64_t gpus) const;

  std::vector<int> sizes_;               // slots per profile
  std::vector<gpu::ProfileId> classic_;  // 1g 2g 3g 4g 7g; empty: only slots decide
  int slots_ = 0;
};

}  // namespace nos::study
