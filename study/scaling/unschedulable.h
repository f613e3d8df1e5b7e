// "Scale on unschedulable pods", as cluster-autoscaler does it beside kube-scheduler, on nodes
// whose GPUs are cut once and for all. What the scaling simulation compares nos with.
//
// Where several ways are open, the kinder one is taken: see docs/simulate-scaling.md.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "study/scaling/stage.h"

namespace nos::study {

// How every GPU of a cut node is cut.
struct StaticLayout {
  std::string name;                    // "2x3g"
  std::vector<ScalingDevice> devices;  // of one GPU; none: whole GPUs only
};
// "whole", "7x1g", "3x2g+1g", "2x3g", "4g+3g", "balanced".
const std::vector<StaticLayout>& StaticLayouts();
// Error: kInvalid listing the names.
Result<StaticLayout> FindStaticLayout(const std::string& name);

// Each pool as it is, with whole GPUs, and then all of them again with cut ones ("eight-cut").
std::vector<ScalingPool> StaticPools(std::span<const ScalingPool> pools,
                                     const StaticLayout& layout);

// `stage` has these pools. `window`: seconds for which a node must have been unneeded, and none
// added, before one goes. `packs`: kube-scheduler is told to prefer full nodes (MostAllocated),
// not, as by default, empty ones.
std::unique_ptr<Scaler> MakeUnschedulableScaler(Stage& stage, const StaticLayout& layout,
                                                double window, bool packs);

}  // namespace nos::study
