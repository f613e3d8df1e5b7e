// The order in which the openb protocol lets pods arrive.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/random.h"
#include "base/status.h"
#include "scheduling/packing/node.h"

namespace nos::study {

// Thousandths of a GPU over all devices.
int64_t RequestedMilli(const scheduling::packing::PodKind& pod);

// The trace shuffled, then made as large as target_milli of requests: filled up with draws (with
// replacement) from the whole trace until the next one would exceed it, or thinned by removing
// random pods until it is not exceeded. As in the published simulator, the test before a draw
// counts one device of a pod of several.
// Error: kInvalid when that takes more than two million pods.
// REQUIRES: some pod asks for a GPU.
Result<std::vector<scheduling::packing::PodKind>> ArrangeArrivals(
    std::span<const scheduling::packing::PodKind> trace, int64_t target_milli, Random random);

}  // namespace nos::study
