// The devices that NVIDIA's DRA driver announces for the GPUs of a node (dynamic MIG,
// Kubernetes 1.35 and newer): names, ResourceSlices, DeviceClasses. Rules from
// kubernetes-sigs/dra-driver-nvidia-gpu, commit 9593204, cmd/gpu-kubelet-plugin: mig.go,
// partitions.go, driver.go (generateSplitResourceSlices), and its chart.
//
// Pure functions of values.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "codec/json.h"
#include "gpu/catalogue.h"

namespace nos::sim {

inline constexpr char kGpuDriver[] = "gpu.nvidia.com";

// A device by its name: "gpu-0", or a placement "gpu-0-mig-1g5gb-19-3". The driver reads only the
// numbers; the profile's text decides about the order of devices.
struct DeviceId {
  int gpu = 0;                 // minor number
  std::optional<int> nvml_id;  // of the profile; absent: the whole GPU
  int start = 0;               // placement slot
  friend auto operator<=>(const DeviceId&, const DeviceId&) = default;
};
std::string DeviceName(const DeviceId& id, const gpu::Model& model);
// nullopt for a name that the driver does not give.
std::optional<DeviceId> ParseDeviceName(std::string_view name);
// nullopt if the model has no such placement.
std::optional<gpu::Placement> PlacementOf(const DeviceId& id, const gpu::Model& model);

// True if the catalogue has the facts that decide which placements exclude each other: sizes in
// multiprocessors, and the media engines that only one instance has.
bool CanAnnounce(const gpu::Model& model);

struct AnnouncedGpu {
  const gpu::Model* model = nullptr;
  std::string uuid, product;
  // A GPU whose MIG mode changes only with a reset offers either itself or placements.
  bool whole = true, placements = true;
};

// A slice with the counters of all GPUs, then one with the devices of each GPU, sorted by name.
// Owner is the Node.
std::vector<Json> ResourceSlices(const std::string& node, std::string_view node_uid,
                                 const std::vector<AnnouncedGpu>& gpus);
// gpu.nvidia.com and mig.nvidia.com.
std::vector<Json> DeviceClasses();

}  // namespace nos::sim
