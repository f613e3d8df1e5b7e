#include "sim/world/node/device_faults.h"

#include <fmt/format.h>

namespace nos::sim {
namespace {

using device::SimAttempt;
using device::SimFault;

std::string Describe(const SimAttempt& attempt) {
  switch (attempt.kind) {
    case SimAttempt::Kind::kEnableMig:
      return fmt::format("enable MIG on GPU {}", attempt.gpu);
    case SimAttempt::Kind::kDisableMig:
      return fmt::format("disable MIG on GPU {}", attempt.gpu);
    case SimAttempt::Kind::kSetComputeMode:
      return fmt::format("set the compute mode of GPU {}", attempt.gpu);
    case SimAttempt::Kind::kReset:
      return fmt::format("reset GPU {}", attempt.gpu);
    default:
      break;
  }
  const bool create = attempt.kind == SimAttempt::Kind::kCreate;
  return fmt::format("{} {}@{} on GPU {}", create ? "create" : "destroy", attempt.profile,
                     attempt.start, attempt.gpu);
}

}  // namespace

void DeviceFaults::FailNext(SimAttempt::Kind kind, int count) {
  if (kind == SimAttempt::Kind::kReset) {
    resets_ += count;
  } else {
    (kind == SimAttempt::Kind::kCreate ? creates_ : destroys_) += count;
  }
}

// True if an operation of this kind was to fail; that failure is used up.
bool DeviceFaults::TakeAsked(SimAttempt::Kind kind) {
  int* count = nullptr;
  if (kind == SimAttempt::Kind::kReset) count = &resets_;
  if (kind == SimAttempt::Kind::kCreate) count = &creates_;
  if (kind == SimAttempt::Kind::kDestroy) count = &destroys_;
  if (count == nullptr || *count == 0) return false;
  --*count;
  return true;
}

SimFault DeviceFaults::DrawForAgent(const SimAttempt& attempt) {
  const FaultRates& rates = env_.faults.rates();
  if (!agent_life_.alive) return SimFault::kFails;  // a dead process calls nothing
  if (attempt.kind == SimAttempt::Kind::kTakeBack) return SimFault::kNone;
  const bool create = attempt.kind == SimAttempt::Kind::kCreate;
  const bool destroy = attempt.kind == SimAttempt::Kind::kDestroy;
  SimFault fault = SimFault::kNone;
  if (hang_next_.erase(attempt.gpu) > 0) {
    fault = SimFault::kHangs;
  } else if (TakeAsked(attempt.kind)) {
    fault = create ? SimFault::kFails : SimFault::kBusy;
  } else if (env_.faults.Strike(rates.crash)) {
    fault = env_.random.Chance(0.5) ? SimFault::kCrashBetween : SimFault::kFails;
    agent_life_.alive = false;
  } else if (create && env_.faults.Strike(rates.create_failed)) {
    fault = env_.random.Chance(0.5) ? SimFault::kFails : SimFault::kTimeout;
  } else if ((destroy || attempt.kind == SimAttempt::Kind::kReset) &&
             env_.faults.Strike(rates.destroy_in_use)) {
    fault = SimFault::kBusy;
  }
  Log("agent " + node_, attempt, fault != SimFault::kNone);
  return fault;
}

SimFault DeviceFaults::DrawForDriver(const SimAttempt& attempt) {
  const FaultRates& rates = env_.kubelet_faults.rates();
  const bool create = attempt.kind == SimAttempt::Kind::kCreate;
  const bool destroy = attempt.kind == SimAttempt::Kind::kDestroy;
  const bool fails = ((create || destroy) && TakeAsked(attempt.kind)) ||
                     (create && env_.kubelet_faults.Strike(rates.create_failed)) ||
                     (destroy && env_.kubelet_faults.Strike(rates.destroy_in_use));
  Log("driver " + node_, attempt, fails);
  if (!fails) return SimFault::kNone;
  return create ? SimFault::kFails : SimFault::kBusy;
}

void DeviceFaults::Log(const std::string& who, const SimAttempt& attempt, bool fails) {
  env_.log.Note(who, (fails ? "fault: " : "") + Describe(attempt));
}

}  // namespace nos::sim
