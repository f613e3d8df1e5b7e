// The reference that nos is compared with: scaling on unschedulable pods, as cluster-autoscaler
// does beside kube-scheduler, on nodes whose GPUs have a static layout.
//
// If there are several interpretations, the one that favours the baseline is used: see
// docs/simulate-scaling.md.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "study/scaling/stage.h"

namespace nos::study {

// The layout of every GPU of a partitioned node.
struct StaticLayout {
  std::string name;                    // "2x3g"
  std::vector<ScalingDevice> devices;  // of one GPU; empty: whole GPUs only
};
// "whole", "7x1g", "3x2g+1g", "2x3g", "4g+3g", "balanced".
const std::vector<StaticLayout>& StaticLayouts();
// Error: kInvalid listing the names.
Result<StaticLayout> FindStaticLayout(const std::string& name);

// Each pool with whole GPUs, then each again with partitioned ones ("eight-partitioned").
std::vector<ScalingPool> StaticPools(std::span<const ScalingPool> pools,
                                     const StaticLayout& layout);

// `stage` has these pools. `window`: seconds that a node must have been unneeded, with no node
// added, before it is removed. `packs`: kube-scheduler prefers full nodes (MostAllocated) instead
// of empty ones (the default).
std::unique_ptr<Scaler> MakeUnschedulableScaler(Stage& stage, const StaticLayout& layout,
                                                double window, bool packs);

}  // namespace nos::study
