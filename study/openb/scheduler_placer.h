// Runs the whole scheduler as a policy of the openb protocol. Nodes and pods are Kubernetes
// objects. A fraction of a GPU is a number of MPS shares of 1 % of its memory each. GPUs belong to
// hybrid nodes, are used whole or shared, and are partitioned by the scheduler in the cycle that
// places the pod. The result must be as good as that of scheduling/packing alone, although filters,
// scores, partitioning and the snapshot's accounting are involved.
#pragma once

#include <memory>
#include <vector>

#include "study/openb/policies.h"

namespace nos::study {

// A share is a multiple of this many thousandths of a GPU.
inline constexpr int kShareMilli = 10;

// REQUIRES: fractions are multiples of kShareMilli. The initially used part of a node's GPUs is
// rounded up to a multiple.
std::unique_ptr<OpenbPlacer> MakeSchedulerPlacer(
    const std::vector<scheduling::packing::Node>& nodes);

}  // namespace nos::study
