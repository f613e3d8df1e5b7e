// The names that GPU drivers give their devices: "gpu-0", "gpu-0-mig-1g10gb-19-6" (profile id 19,
// start slot 6), "gpu-0-mps" (shared by MPS; nos's driver only). Sources: NVIDIA's
// cmd/gpu-kubelet-plugin/mig.go; dra/gpu_slices.h.
//
//   ReadDeviceName(kNvidiaDriver, "gpu-0-mig-1g10gb-19-6")->profile;   // "1g.10gb"
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "dra/gpu_driver.h"

namespace nos::dra {

struct DeviceName {
  int64_t gpu = 0;      // NVIDIA's driver: minor number of the device node; nos's: GpuInfo::index
  std::string profile;  // "1g.10gb", "1g.10gb.me"; "": the whole GPU
  std::optional<uint8_t> start;  // slot of the instance; empty: the name does not state it
  DeviceSharing sharing = DeviceSharing::kNone;
};

// nullopt: another driver, or a device that is neither a GPU nor a MIG instance.
std::optional<DeviceName> ReadDeviceName(std::string_view driver, std::string_view device);

}  // namespace nos::dra
