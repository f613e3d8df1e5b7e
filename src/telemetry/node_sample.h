// One look at a node's GPUs: what there is, what it measures, and whose it is. A value, and how it
// is taken.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "device/backend.h"
#include "device/health.h"
#include "gpu/catalogue.h"
#include "kubelet/pod_resources.h"
#include "telemetry/wire/holder.h"

namespace nos::telemetry {

struct SampledInstance {
  device::GpuInstance instance;
  device::Readings readings;
  std::vector<Holder> holders;
};

struct SampledGpu {
  device::GpuInfo info;
  // That placements, and time slices, count in; GiB for MPS shares; 0: it is not divided.
  int slots = 0;
  std::string health;  // why it cannot be used; "" when it can
  device::Readings readings;
  std::vector<SampledInstance> instances;
  Status instances_status;      // why they are missing
  std::vector<Holder> holders;  // of the whole GPU
  // In which way it is used (gpu/board.h), "" while nothing is on it; and what else it may become.
  std::string way{};
  std::vector<std::string> switches{};
};

struct NodeSample {
  std::string node;
  std::vector<SampledGpu> gpus;
  Status holders_status;  // why nobody is known to hold anything
};

// What the node's agent makes of its GPUs beside what the driver tells.
struct Sharing {
  int time_slices = 0;  // so many equal ones a GPU has that pods take turns on; 0: none does
  // GPUs change their MIG mode, too, that take it with a reset only: somebody resets them.
  bool resets = false;
};

// Error: kUnavailable when there is no driver. One bad GPU, or a kubelet that does not answer, is
// in the sample. `health` may be null.
Result<NodeSample> TakeSample(const std::string& node, device::Backend& backend,
                              kubelet::PodResources& pod_resources, const gpu::Catalogue& catalogue,
                              const device::HealthBoard* health, const Sharing& sharing = {});

// The one who holds it alone; null when it is nobody or several (shared GPUs).
const Holder* SoleHolder(const std::vector<Holder>& holders);

}  // namespace nos::telemetry
