// One sample of a node's GPUs: devices, readings and holders. TakeSample takes it.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "device/backend.h"
#include "device/driver_files.h"
#include "device/health.h"
#include "gpu/catalogue.h"
#include "kubelet/pod_resources.h"
#include "telemetry/holder.h"

namespace nos::telemetry {

struct SampledInstance {
  device::GpuInstance instance;
  device::Readings readings;
  std::vector<Holder> holders;
};

struct SampledGpu {
  device::GpuInfo info;
  // Number of slots for placements and time slices; GiB for MPS shares; 0: the GPU is not divided.
  int slots = 0;
  std::string health;  // why it cannot be used; "" if healthy
  device::Readings readings;
  std::vector<SampledInstance> instances;
  Status instances_status;      // why instances are missing
  std::vector<Holder> holders;  // of the whole GPU
  // Sharing mode (gpu/product.h), "" while the GPU is unused; and modes that it can switch to.
  std::string sharing_mode{};
  std::vector<std::string> switches{};
};

struct NodeSample {
  std::string node;
  std::vector<SampledGpu> gpus;
  Status holders_status;  // why holders are not known
};

// Settings of the node's agent that the driver does not report.
struct NodeSettings {
  int time_slices = 0;  // number of equal time slices per GPU; 0: no time-slicing
  // True if the agent resets GPUs that need a reset to change MIG mode.
  bool resets = false;
  device::HostFolders host{};
};

// Error: kUnavailable if there is no driver. A failing GPU or a kubelet that does not answer is
// recorded in the sample. `health` may be null.
Result<NodeSample> TakeSample(const std::string& node, device::Backend& backend,
                              kubelet::PodResources& pod_resources, const gpu::Catalogue& catalogue,
                              const device::GpuHealth* health, const NodeSettings& settings = {});

// The only holder; null if there is none or several (shared GPUs).
const Holder* SoleHolder(const std::vector<Holder>& holders);

}  // namespace nos::telemetry
