#include "base/back_off.h"

#include <algorithm>

namespace nos {

Duration BackOff::After(int64_t failures) const {
  Duration delay = base;
  for (int64_t i = 1; i < failures && delay < limit; ++i) delay *= 2;
  return std::min(delay, limit);
}

Duration BackOff::Jittered(int64_t failures, double random) const {
  return FromSeconds(ToSeconds(After(failures)) * (0.5 + 0.5 * random));
}

}  // namespace nos
