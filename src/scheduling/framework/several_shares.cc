#include "scheduling/several_shares.h"

#include <algorithm>

#include "gpu/modes.h"
#include "gpu/shares.h"

namespace nos::scheduling {
namespace {

bool HasSeveral(const cluster::Container& container) {
  int64_t shares = 0;
  for (const cluster::ResourceList* list : {&container.limits, &container.requests}) {
    int64_t here = 0;
    for (const auto& [name, amount] : *list) {
      // Clamped to 2, which is enough to detect several: pods may request amounts whose sum
      // overflows.
      const bool share =
          gpu::IsShareResource(name) || name == gpu::kTimeSlice || gpu::IsPartResource(name);
      if (share) here += std::clamp<int64_t>(amount.Value(), 0, 2);
    }
    shares = std::max(shares, here);
  }
  return shares > 1;
}

}  // namespace

const cluster::Container* FindSeveralShares(const cluster::Pod& pod) {
  for (const auto* containers : {&pod.containers, &pod.init_containers}) {
    const auto found = std::ranges::find_if(*containers, HasSeveral);
    if (found != containers->end()) return &*found;
  }
  return nullptr;
}

bool AsksForSeveralShares(const cluster::Pod& pod) { return FindSeveralShares(pod) != nullptr; }

}  // namespace nos::scheduling
