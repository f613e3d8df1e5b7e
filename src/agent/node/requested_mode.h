// The sharing mode that the label of a node requests for its GPUs.
#pragma once

namespace nos::agent {

// cluster::SharingModeOf differs: it returns MPS only after the GPUs are shared. The default is
// partitioning by MIG.
struct RequestedMode {
  bool per_gpu = false;  // "hybrid": the spec of each GPU decides
  bool mps = false;      // GPUs may be shared by MPS: each GPU if not per_gpu
};

}  // namespace nos::agent
