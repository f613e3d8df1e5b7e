// Exponential back-off. Without jitter unless asked for, so that a seed replays a run.
#pragma once

#include <cstdint>

#include "base/clock.h"

namespace nos {

// base, 2 base, 4 base ... limit.
struct BackOff {
  Duration base = std::chrono::milliseconds(200);
  Duration limit = std::chrono::seconds(30);
  // The delay after the n-th failure in a row; n counts from 1.
  Duration After(int64_t failures) const;
  // A delay in the upper half of that, so that many clients do not retry at the same time.
  // `random`: from [0, 1).
  Duration Jittered(int64_t failures, double random) const;
};

}  // namespace nos
