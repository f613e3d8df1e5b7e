#include "sim/world/run/rounds.h"

#include <fmt/format.h>

namespace nos::sim {

bool Rounds::Step(const Acting& acting) {
  if (!acting.actor->Step()) return false;
  busy_ = acting.actor->name();
  ++steps_;
  after_step_(acting.machine);
  return true;
}

bool Rounds::StepEach(const std::vector<Acting>& actors) {
  bool did = false;
  for (const Acting& acting : actors) did |= Step(acting);
  return did;
}

void Rounds::UntilNothingIsDone(const std::function<bool()>& act) {
  constexpr int kMaxRounds = 10'000;  // real work ends after some dozens
  int rounds = 0;
  while (act()) {
    if (++rounds < kMaxRounds) continue;
    violations_.Add(
        fmt::format("no end of work at {}: {} goes on and on", FormatTime(clock_.Now()), busy_));
    return;
  }
}

}  // namespace nos::sim
