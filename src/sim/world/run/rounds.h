// The actors of a virtual world take turns, one step at a time, until none has work left. One
// thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/random.h"
#include "sim/world/events/actor.h"
#include "sim/world/events/violations.h"
#include "sim/world/node/machine.h"

namespace nos::sim {

struct Acting {
  Actor* actor;
  Machine* machine;  // the actor's machine; null if it has none
};

class Rounds {
 public:
  // `after_step` is called with the actor's machine. The references must outlive the object.
  Rounds(const Clock& clock, Violations& violations, std::function<void(Machine*)> after_step)
      : clock_(clock), violations_(violations), after_step_(std::move(after_step)) {}

  // Returns whether the actor had work.
  bool Step(const Acting& acting);
  // Lets each actor take one step, in this order; returns whether any had work.
  bool StepEach(const std::vector<Acting>& actors);
  // Calls `act` while it returns true. An end that does not come is a violation.
  void UntilNothingIsDone(const std::function<bool()>& act);

  uint64_t steps() const { return steps_; }

 private:
  const Clock& clock_;
  Violations& violations_;
  std::function<void(Machine*)> after_step_;
  uint64_t steps_ = 0;
  std::string busy_;  // the actor of the last step
};

}  // namespace nos::sim
