#include "device/backend/last_known.h"

#include <algorithm>
#include <utility>

namespace nos::device {

std::vector<GpuInfo> LastKnownGpus::Complete(const std::map<int, Result<GpuInfo>>& read) {
  std::erase_if(known_, [&](const auto& entry) { return !read.contains(entry.first); });
  std::vector<GpuInfo> infos;
  for (const auto& [gpu, info] : read) {
    if (info.ok()) {
      known_[gpu] = *info;
    } else {
      known_[gpu].index = gpu;
    }
    infos.push_back(known_[gpu]);
    if (!info.ok()) infos.back().problem = info.status().message();
  }
  ForgetMoved(infos);
  return infos;
}

// The GPU last known at this index may have moved to another index, so nothing is known of the GPU
// here now.
void LastKnownGpus::ForgetMoved(std::vector<GpuInfo>& infos) {
  for (GpuInfo& info : infos) {
    const bool moved =
        !info.problem.empty() && std::ranges::any_of(infos, [&](const GpuInfo& other) {
          return other.problem.empty() && other.uuid == info.uuid;
        });
    if (!moved) continue;
    GpuInfo unknown;
    unknown.index = info.index;
    known_[info.index] = unknown;
    unknown.problem = std::move(info.problem);
    info = std::move(unknown);
  }
}

}  // namespace nos::device
