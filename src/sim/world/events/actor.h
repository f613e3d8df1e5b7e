// Something in a virtual world that acts by itself: a kubelet, a controller, a job that replaces
// its pods. One thread runs all actors, one step at a time.
#pragma once

#include <optional>
#include <string>

#include "base/clock.h"

namespace nos::sim {

class Actor {
 public:
  virtual ~Actor() = default;
  virtual const std::string& name() const = 0;
  // Does the next thing there is to do now, if any; says whether it did.
  virtual bool Step() = 0;
  // When there will be something to do even if nothing happens meanwhile.
  virtual std::optional<Time> NextWake() const = 0;
};

}  // namespace nos::sim
