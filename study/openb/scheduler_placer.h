// The scheduler itself as a policy of the openb protocol: nodes and pods are those of Kubernetes, a
// fraction of a GPU is an MPS share of a hundredth of its memory each, GPUs are those of hybrid
// nodes, given whole or shared, and cut by the scheduler in the cycle that places the pod. What
// scheduling/packing reaches alone, this has to reach through filters, scores, cuts and the books
// of the snapshot.
#pragma once

#include <memory>
#include <vector>

#include "study/openb/policies.h"

namespace nos::study {

// Thousandths of a GPU that a share is a multiple of.
inline constexpr int kShareMilli = 10;

// REQUIRES: fractions are multiples of kShareMilli; what nodes lack of their GPUs in the beginning
// is rounded up to one.
std::unique_ptr<OpenbPlacer> MakeSchedulerPlacer(
    const std::vector<scheduling::packing::Node>& nodes);

}  // namespace nos::study
