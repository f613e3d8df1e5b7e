// Fragmentation gradient descent (Weng et al., "Beware of Fragmentation: Scheduling GPU-Sharing
// Workloads with Fragmentation Gradient Descent", USENIX ATC 2023), as implemented in its
// simulator.
//
// The fragmentation of a node is the idle GPU share that a typical pod cannot use, averaged over
// the typical pods: all idle GPUs if the node lacks the CPU, the model or the number of devices,
// else the idle share of devices that are too full for the pod. Typical pods are the most frequent
// kinds (ignoring memory) that together make up 95 % of the whole trace, including later arrivals.
// A pod is placed where fragmentation grows least.
#pragma once

#include <span>
#include <vector>

#include "scheduling/packing/node.h"
#include "scheduling/packing/score_memo.h"

namespace nos::study {

struct TypicalPod {
  scheduling::packing::PodKind kind;  // memory_mib is 0
  double share = 0;                   // among the typical pods; the sum is 1
};

std::vector<TypicalPod> TypicalPods(std::span<const scheduling::packing::PodKind> trace);

// In milli-GPU.
double Fragmentation(const scheduling::packing::Node& node, std::span<const TypicalPod> typical);

// -int(100 sigmoid(decrease of fragmentation / 1000)) on the pod's best device; ties: the first.
// nullopt if the pod does not fit.
std::optional<scheduling::packing::Score> FgdScore(const scheduling::packing::Node& node,
                                                   const scheduling::packing::PodKind& pod,
                                                   std::span<const TypicalPod> typical);

}  // namespace nos::study
