#include "scheduling/plugins/node_resources_fit/gpu_nodes.h"

#include "dra/device_index.h"
#include "scheduling/packing/view.h"

namespace nos::scheduling {

bool AreGpusScored(const cluster::NodeInfo& node, const dra::DeviceIndex* devices) {
  return packing::HasGpus(node) || (devices != nullptr && devices->Ranks(*node.node));
}

}  // namespace nos::scheduling
