// Whether a number of instances of each profile can be packed into empty GPUs at all, for models
// where that has an exact closed form.
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
  // Exact for eight-slot GPUs with the five plain profiles, and for models whose mix has profiles
  // that halve evenly (A30, RTX PRO 6000 with plain profiles). Error: kInvalid otherwise.
  static Result<PackingTest> For(const gpu::Model& model, const Mix& mix);

  // Whether counts[profile] instances of each profile fit into that many GPUs together.
  bool Fits(const std::vector<int64_t>& counts, int64_t gpus) const;

 private:
  bool FitsEightSlots(const std::vector<int64_t>& counts, int64_t gpus) const;
  bool FitsSlots(const std::vector<int64_t>& counts, int64_t gpus) const;

  std::vector<int> sizes_;               // slots per profile
  std::vector<gpu::ProfileId> classic_;  // 1g 2g 3g 4g 7g; empty: slots alone decide
  int slots_ = 0;
};

}  // namespace nos::study
