#include <fmt/core.h>

#include <algorithm>

#include "gpu/modes.h"
#include "gpu/shares.h"
#include "scheduling/remedies.h"
#include "scheduling/several_shares.h"

namespace nos::scheduling {
namespace {

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

Remedy RequestOneShare(const cluster::Pod& pod) {
  const cluster::Container* container = FindSeveralShares(pod);
  const int64_t sum = container == nullptr ? 0 : SumOfShares(*container);
  if (sum == 0) {
    return {remedies::kRequestOneShare, "request each share in a container of its own"};
  }
  return {remedies::kRequestOneShare,
          fmt::format("request one nvidia.com/gpu-{}gb in container {}, or each share in a "
                      "container of its own",
                      sum, container->name)};
}

}  // namespace nos::scheduling
