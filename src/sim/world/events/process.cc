#include "sim/world/events/process.h"

#include <algorithm>

namespace nos::sim {
namespace {

constexpr Duration kRestart = std::chrono::seconds(3);

}  // namespace

bool Process::Step() {
  const Time now = clock_.Now();
  if (runner_ == nullptr) {
    if (now < start_at_) return false;
    Start();
  }
  if (now < busy_until_) return false;
  const bool did = runner_->Step(clock_);
  if (!life_.alive) Bury(kRestart);
  return did;
}

std::optional<Time> Process::NextWake() const {
  if (runner_ == nullptr) return start_at_;
  const std::optional<Time> due = runner_->NextDue();
  return due ? std::max(*due, busy_until_) : busy_until_;
}

void Process::Start() {
  life_.alive = true;
  reconciler_ = make_();
  runner_ = std::make_unique<reconcile::Runner>(*reconciler_, transport_, options_);
}

void Process::Crash(Duration down) {
  log_.Note(name_, "crashes");
  Bury(down);
}

void Process::Bury(Duration down) {
  life_.alive = false;
  runner_ = nullptr;
  reconciler_ = nullptr;
  busy_until_ = {};
  start_at_ = clock_.Now() + down;
}

void Process::Spend(Duration time) { busy_until_ = std::max(busy_until_, clock_.Now()) + time; }

}  // namespace nos::sim
