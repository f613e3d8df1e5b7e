// Bounds the work of functions whose cost is known only afterwards.
#pragma once

#include <cstdint>

namespace nos::cel {

// Counts steps of functions whose cost upstream knows only afterwards; throws Cancelled after three
// million of them in one evaluation.
class StepLimit {
 public:
  static void Reset() { steps_ = 0; }
  static void Spend(uint64_t steps);

 private:
  static thread_local uint64_t steps_;
};

}  // namespace nos::cel
