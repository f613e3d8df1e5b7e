#include "scheduling/plugins/node_resources_fit/gpu_nodes.h"

#include "dra/device_index.h"
#include "scheduling/packing/view.h"

namespace nos::scheduling {

bool GpuNodes::Contains(const cluster::NodeInfo& node) const {
  return packing::HasGpus(node) || (devices_ != nullptr && devices_->Ranks(*node.node));
}

}  // namespace nos::scheduling
