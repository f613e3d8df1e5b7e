// Faults of the device operations of a machine: drawn by chance, or asked for. One thread.
#pragma once

#include <set>
#include <string>

#include "device/sim_gpus.h"
#include "sim/world/node/environment.h"

namespace nos::sim {

class DeviceFaults {
 public:
  // `agent_life`: an agent may crash in an operation. The references must outlive the object.
  DeviceFaults(const Environment& env, std::string node, Life& agent_life)
      : env_(env), node_(std::move(node)), agent_life_(agent_life) {}

  // The next operations of this kind fail.
  void FailNext(device::SimAttempt::Kind kind, int count);
  // The next operation on this GPU hangs, and the GPU with it.
  void HangNext(int gpu) { hang_next_.insert(gpu); }
  void HangNoMore(int gpu) { hang_next_.erase(gpu); }
  void HangNoMore() { hang_next_.clear(); }
  // For an operation of the agent.
  device::SimFault DrawForAgent(const device::SimAttempt& attempt);
  // For an operation of the driver of Dynamic Resource Allocation, which does not crash.
  device::SimFault DrawForDriver(const device::SimAttempt& attempt);

 private:
  bool TakeAsked(device::SimAttempt::Kind kind);
  void Log(const std::string& who, const device::SimAttempt& attempt, bool fails);

  Environment env_;
  std::string node_;
  Life& agent_life_;
  std::set<int> hang_next_;
  int creates_ = 0, destroys_ = 0, resets_ = 0;  // that are to fail
};

}  // namespace nos::sim
