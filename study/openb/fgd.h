// Fragmentation gradient descent (Weng et al., "Beware of Fragmentation: Scheduling GPU-Sharing
// Workloads with Fragmentation Gradient Descent", USENIX ATC 2023), as its simulator does it.
//
// A node's fragmentation is the idle GPU that a typical pod cannot use, averaged over the typical
// pods: all of it when the node lacks the CPU, the model or the devices, else what lies on devices
// too full for it. Typical pods are the most frequent kinds (memory ignored) that together make 95
// per cent of the whole trace, later arrivals included. A pod goes where fragmentation grows least.
#pragma once

#include <span>
#include <vector>

#include "scheduling/packing/node.h"
#include "scheduling/packing/score_memo.h"

namespace nos::study {

struct TypicalPod {
  scheduling::packing::PodKind kind;  // memory_mib is 0
  double share = 0;                   // of the typical pods; sums to 1
};

std::vector<TypicalPod> TypicalPods(std::span<const scheduling::packing::PodKind> trace);

// In milli-GPU.
double Fragmentation(const scheduling::packing::Node& node, std::span<const TypicalPod> typical);

// -int(100 sigmoid(fall of fragmentation / 1000)) on the pod's best device, the first of equals.
// Nothing when the pod does not fit.
std::optional<scheduling::packing::Score> FgdScore(const scheduling::packing::Node& node,
                                                   const scheduling::packing::PodKind& pod,
                                                   std::span<const TypicalPod> typical);

}  // namespace nos::study
