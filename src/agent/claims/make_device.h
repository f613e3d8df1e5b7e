// Makes a device of a claim exist on its GPU: a MIG instance at its start, or the GPU as a whole.
//
// Instances that are not used stay, so that the next claim for the same placement finds its
// instance ready; they are destroyed when another placement needs the room. The order of operations
// is that of the device plugin's path (device/actuator.h).
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/status.h"
#include "device/backend.h"
#include "gpu/catalogue.h"

namespace nos::agent {

struct DeviceWork {
  int gpu = 0;
  std::string gpu_uuid;
  const gpu::Model* model = nullptr;       // null: unknown, so only the whole GPU can be wanted
  std::optional<gpu::Placement> wanted{};  // absent: the whole GPU
  // Other claims' instances on this GPU; they exist or will, and are never destroyed.
  std::vector<gpu::Placement> claimed{};
  bool whole_claimed = false;  // another claim has the whole GPU
  bool create = true;          // false: only finds what exists
};

struct MadeDevice {
  std::string instance_uuid;         // "" if it is a GPU
  std::optional<uint32_t> instance;  // the driver's id
};

// UUIDs of devices that pods hold otherwise: by a device plugin. Asked before a GPU is given as a
// whole, and before anything is destroyed.
using HeldDevices = std::function<Result<std::set<std::string>>()>;

// Idempotent, from any state of the GPU, after a crash at any point. Blocks while the driver works.
// Errors: kConflict (a claim or pod uses what is in the way), kExhausted, kInvalid (the GPU has no
// such placement), kNotFound (only `create` false), kUnavailable and kDeadline (try again),
// kPermission (the MIG mode changes only with a reset).
Result<MadeDevice> MakeDevice(const DeviceWork& work, const HeldDevices& held,
                              device::Backend& backend);

// Destroys the instance of `work.wanted`, if there is one. Idempotent. Errors: kConflict (a claim
// or pod uses it), and those of the driver and of `held`.
Status RemoveDevice(const DeviceWork& work, const HeldDevices& held, device::Backend& backend);

}  // namespace nos::agent
