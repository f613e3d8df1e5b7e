// The driver of the agent's GPUs, from the start of the process to its end, also if a call to it
// never returns.
//
//   StopNotice stop;
//   OutsideEvents events({}, [&] { if (events.StopAsked()) stop.Give(); });
//   AgentDriver driver(std::make_shared<device::NvmlGpus>(...), health, {.changed = ...});
//   stop.Use(&driver.gpus());
//   ... driver.gpus().ListGpus() ...
//   driver.Ended();      // all went well
#pragma once

#include <functional>
#include <memory>
#include <mutex>

#include "base/status.h"
#include "device/bounded_gpus.h"

namespace nos::cmd {

// Shortens the limits of calls to the driver once the process was asked to end. Thread-safe.
class StopNotice {
 public:
  // `gpus` must outlive this, or be replaced by null before. It may be null.
  void Use(device::BoundedGpus* gpus);
  void Give();

 private:
  std::mutex mutex_;
  device::BoundedGpus* gpus_ = nullptr;
  bool given_ = false;
};

class AgentDriver {
 public:
  AgentDriver(std::shared_ptr<device::GpuDriver> driver, device::GpuHealth& health,
              device::BoundedCallOptions options);
  // If a thread is left behind in the driver, this ends the process, with exit code 0 after Ended()
  // and 1 before: the thread uses the library, the catalogue and the health of the GPUs, which must
  // not be destroyed under it, and a join may never return. Everything that outlives the agent is
  // written when it changes, as for a crash. All users of the GPUs must be destroyed before.
  ~AgentDriver();
  AgentDriver(const AgentDriver&) = delete;
  AgentDriver& operator=(const AgentDriver&) = delete;

  device::BoundedGpus& gpus() { return *gpus_; }
  // The process ends without an error.
  void Ended() { code_ = 0; }
  // For readiness: kUnavailable if no GPU answers, or the driver does not. A GPU that hangs beside
  // others is no reason: the agent does its work, and the node's condition names the GPU.
  Status Answers() const;

 private:
  std::unique_ptr<device::BoundedGpus> gpus_;
  bool left_behind_ = false;
  int code_ = 1;
};

}  // namespace nos::cmd
