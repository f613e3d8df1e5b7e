// The sharing mode that the label of a node requests for its GPUs.
#pragma once

namespace nos::agent {

// cluster::SharingModeOf differs: it returns MPS only after the GPUs are shared. The default is
// partitioning by MIG.
struct RequestedMode {
  bool per_gpu = false;  // the spec of each GPU decides: "hybrid", and "mig" with whole GPUs
  bool mps = false;      // GPUs may be shared by MPS: each GPU if not per_gpu
  // "hybrid": GPUs may be shared, also by time-slicing. "mig" with whole GPUs does not share them.
  bool Shares() const { return per_gpu && mps; }
};

}  // namespace nos::agent
