// The sharing mode that the label of a node requests for its GPUs.
//
//   const SharingMode mode = SharingModeOf(*node, gives_whole);
//   if (mode.per_gpu) ...  // "hybrid": the spec of each GPU decides
//
// A mode is a row of a table in sharing_mode.cc, not a branch in its users.
#pragma once

#include "cluster/objects.h"

namespace nos::agent {

struct SharingMode {
  bool per_gpu = false;  // each GPU has its own sharing mode
  bool mps = false;      // GPUs may be shared by MPS: each GPU if not per_gpu

  // True if the node's label requests sharing of all GPUs by MPS.
  bool WholeNodeMps() const { return mps && !per_gpu; }
};

// `gives_whole`: the backend can give GPUs as a whole; without it no mode per GPU is possible.
// cluster::SharingModeOf differs: it returns MPS only after the GPUs are shared.
SharingMode SharingModeOf(const cluster::Node& node, bool gives_whole);

}  // namespace nos::agent
