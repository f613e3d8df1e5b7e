// The MPS daemons of devices that several ResourceClaims share.
//
//   daemons.ServeForClaims({{0, "GPU-...", 79}});
//   if (daemons.AwaitServing("GPU-...", seconds(15))) edits = daemons.AccessTo("GPU-...", ...);
//
// The daemons that the agent's sharing modes request are not affected. Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "device/cdi_spec.h"
#include "device/mps_control.h"

namespace nos::agent {

class ShareDaemons {
 public:
  virtual ~ShareDaemons() = default;
  // Until the next call of ServeForClaims no daemon ends: claims may use those that an earlier
  // agent has started.
  virtual void AwaitClaims() = 0;
  // Serves exactly these GPUs and instances for claims from now on.
  virtual void ServeForClaims(std::vector<device::MpsGpu> devices) = 0;
  // Waits until a daemon serves the GPU or instance. False: none does within this time.
  virtual bool AwaitServing(const std::string& uuid, Duration at_most) = 0;
  // Waits until nothing of its daemon is left. False: something is after this time.
  virtual bool AwaitEnd(const std::string& uuid, Duration at_most) = 0;
  // UUIDs of all GPUs and instances that have a daemon, or had one when an earlier agent ended.
  virtual std::set<std::string> Left() const = 0;
  // The reasons of daemons that do not serve, by the UUID of their GPU or instance. A daemon that
  // starts for the first time has none.
  virtual std::map<std::string, std::string> Troubles() const = 0;
  // The environment and folders of a container that may use `memory_mib` of the `total_mib` that a
  // GPU or MIG instance has for clients.
  virtual device::ContainerEdits AccessTo(const std::string& uuid, int64_t memory_mib,
                                          int64_t total_mib) const = 0;
};

}  // namespace nos::agent
