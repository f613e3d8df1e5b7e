// ResourceSlices in the form in which NVIDIA's driver publishes them.
#pragma once

#include <string>
#include <vector>

#include "codec/json.h"

namespace nos::bench {

inline constexpr int kGpus = 8;

// The slices of a node with eight GPUs. Each GPU has one slice, which lists the whole GPU and its
// 25 MIG placements as devices; one further slice has the counters of all GPUs.
std::vector<Json> NvidiaSlices(const std::string& node);

}  // namespace nos::bench
