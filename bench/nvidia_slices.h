// ResourceSlices in the form in which NVIDIA's driver publishes them.
#pragma once

#include <string>
#include <vector>

#include "codec/json.h"

namespace nos::bench {

inline constexpr int kGpus = 8;

// Of a node with eight GPUs, each with 25 MIG placements and itself as devices: one slice a GPU,
// and one with the counters of all.
std::vector<Json> NvidiaSlices(const std::string& node);

}  // namespace nos::bench
