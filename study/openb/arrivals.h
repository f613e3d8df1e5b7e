// The order in which pods arrive in the openb protocol.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/random.h"
#include "base/status.h"
#include "scheduling/packing/node.h"

namespace nos::study {

// Thousandths of a GPU, summed over devices.
int64_t RequestedMilli(const scheduling::packing::PodKind& pod);

// The shuffled trace, adjusted to target_milli of requests. A smaller trace is extended with random
// draws (with replacement) from the whole trace until the next draw would exceed the target. A
// larger one loses random pods until it no longer exceeds it. Like in the published simulator, the
// test before a draw counts only one device of a multi-device pod. Error: kInvalid if that needs
// more than two million pods. REQUIRES: some pod requests a GPU.
Result<std::vector<scheduling::packing::PodKind>> ArrangeArrivals(
    std::span<const scheduling::packing::PodKind> trace, int64_t target_milli, Random random);

}  // namespace nos::study
