#include "scheduling/several_shares.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>

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

// GiB of all shares of GPU memory that the container requests; 0: no GPU has a share so large, or
// the container requests time slices or parts of MIG instances, which have no sum.
int64_t SumOfShares(const cluster::Container& container) {
  int64_t most = 0;
  for (const cluster::ResourceList* list : {&container.limits, &container.requests}) {
    int64_t sum = 0;
    for (const auto& [name, amount] : *list) {
      if (name == gpu::kTimeSlice || gpu::IsPartResource(name)) return 0;
      if (!gpu::IsShareResource(name)) continue;
      const gpu::Model& model = gpu::SharesOf(gpu::kMaxShareGib);
      const auto profile = model.FindProfile(name);
      if (!profile) return 0;
      const int64_t count = std::clamp<int64_t>(amount.Value(), 0, gpu::kMaxShareGib + 1);
      sum += count * model.profile(*profile).slots;
    }
    most = std::max(most, sum);
  }
  return most <= gpu::kMaxShareGib ? most : 0;
}

}  // namespace

bool AsksForSeveralShares(const cluster::Pod& pod) {
  return std::ranges::any_of(pod.containers, HasSeveral) ||
         std::ranges::any_of(pod.init_containers, HasSeveral);
}

Remedy RequestOneShare(const cluster::Pod& pod) {
  for (const auto* containers : {&pod.containers, &pod.init_containers}) {
    const auto found = std::ranges::find_if(*containers, HasSeveral);
    if (found == containers->end()) continue;
    const int64_t sum = SumOfShares(*found);
    if (sum == 0) break;
    return {remedies::kRequestOneShare,
            fmt::format("request one nvidia.com/gpu-{}gb in container {}, or each share in a "
                        "container of its own",
                        sum, found->name)};
  }
  return {remedies::kRequestOneShare, "request each share in a container of its own"};
}

}  // namespace nos::scheduling
