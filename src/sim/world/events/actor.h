// An autonomous part of a virtual world: a kubelet, a controller, a job that replaces its pods. One
// thread runs all actors, one step at a time.
#pragma once

#include <optional>
#include <string>

#include "base/clock.h"

namespace nos::sim {

class Actor {
 public:
  virtual ~Actor() = default;
  virtual const std::string& name() const = 0;
  // Does the next pending work; returns whether there was any.
  virtual bool Step() = 0;
  // The time of the next work if no other event happens before.
  virtual std::optional<Time> NextWake() const = 0;
};

}  // namespace nos::sim
