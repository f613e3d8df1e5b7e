// GPUs of a machine that its agent cannot read: lost ones, whose calls fail, and those whose calls
// do not return.
//
//   GpuOutages outages(env, "gpu-1", gpus, health, faults);
//   outages.Hang(0);         // until Release(0) or Forget()
//
// One thread.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "device/health.h"
#include "device/sim_gpus.h"
#include "sim/world/node/device_faults.h"
#include "sim/world/node/environment.h"

namespace nos::sim {

class GpuOutages {
 public:
  // The references must outlive the object. `gpus` may be null until a call needs it.
  GpuOutages(const Environment& env, std::string node, const std::unique_ptr<device::SimGpus>& gpus,
             device::GpuHealth& health, DeviceFaults& faults)
      : env_(env), node_(std::move(node)), gpus_(gpus), health_(health), faults_(faults) {}

  // Calls for this GPU fail until it is restored.
  void Lose(int gpu);
  void Restore(int gpu);
  // Calls for this GPU do not return until it is released: from now on, or from the next change
  // that the agent makes there.
  void Hang(int gpu);
  void HangAtNextChange(int gpu) { faults_.HangNext(gpu); }
  // Ends also a hang that was to begin with the next change.
  void Release(int gpu);
  // Forgets all: the node reboots.
  void Forget() { since_.clear(); }
  // For SimHooks::on_hang.
  void OnHang(int gpu, Duration waited);

  // Start of the outage, by GPU.
  const std::map<int, Time>& since() const { return since_; }
  // Time of the last beginning or end. Later than now while the agent waits for a call.
  std::optional<Time> last() const { return last_; }
  // Number of hangs that the agent has met.
  int hangs() const { return hangs_; }

 private:
  void Note(const std::string& what);

  Environment env_;
  std::string node_;
  const std::unique_ptr<device::SimGpus>& gpus_;
  device::GpuHealth& health_;
  DeviceFaults& faults_;
  std::map<int, Time> since_;
  std::optional<Time> last_;
  int hangs_ = 0;
};

}  // namespace nos::sim
