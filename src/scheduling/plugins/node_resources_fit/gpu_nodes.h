// Nodes that only the plugins for GPUs score: spreading pods over them would strand GPUs.
#pragma once

#include "cluster/snapshot.h"

namespace nos::dra {
class DeviceIndex;
}

namespace nos::scheduling {

// True if GpuPacking scores the node (it has GPUs of a device plugin), or DynamicResources does
// (`devices` has GPUs of NVIDIA's driver for Dynamic Resource Allocation). Null: no devices.
bool AreGpusScored(const cluster::NodeInfo& node, const dra::DeviceIndex* devices);

}  // namespace nos::scheduling
