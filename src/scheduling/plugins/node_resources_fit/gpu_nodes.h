// Nodes that are scored by the plugins for GPUs: spreading pods over them would strand GPUs.
#pragma once

#include <memory>

#include "cluster/snapshot.h"

namespace nos::dra {
class DeviceIndex;
}

namespace nos::scheduling {

class GpuNodes {
 public:
  GpuNodes() = default;
  explicit GpuNodes(const cluster::ClusterSnapshot& snapshot)
      : devices_(snapshot.around().devices) {}

  // True if GpuPacking scores the node (it has GPUs of a device plugin), or DynamicResources does
  // (GPUs of NVIDIA's driver for Dynamic Resource Allocation).
  bool Contains(const cluster::NodeInfo& node) const;

 private:
  std::shared_ptr<const dra::DeviceIndex> devices_;  // null: nothing is known of devices
};

}  // namespace nos::scheduling
