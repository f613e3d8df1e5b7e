#include "controllers/pending/assumed.h"

#include <algorithm>

namespace nos::controllers {
namespace {

void AssumeLayout(const std::vector<gpu::Placement>& wanted, cluster::Gpu& gpu) {
  std::erase_if(gpu.instances, [](const cluster::Instance& instance) { return !instance.used; });
  auto on = gpu.Used();
  for (const gpu::Placement& placement : wanted) {
    if (!on || !on->Add(placement)) continue;  // a used instance overlaps or equals it
    gpu.instances.push_back({placement, false, ""});
  }
  std::ranges::sort(gpu.instances, {}, &cluster::Instance::placement);
}

int64_t CountFree(const cluster::NodeInfo& info, std::string_view resource) {
  int64_t count = 0;
  for (const cluster::Gpu& gpu : info.gpus.gpus) {
    const auto profile = gpu.model->FindProfile(resource);
    if (!profile) continue;
    count += std::count_if(gpu.instances.begin(), gpu.instances.end(), [&](const auto& instance) {
      return !instance.used && instance.placement.profile == *profile;
    });
  }
  return count;
}

}  // namespace

cluster::NodeGpus AssumeSpec(const cluster::NodeInfo& info) {
  cluster::NodeGpus gpus = info.gpus;
  const std::vector<cluster::TargetLayout> targets = cluster::ReadSpec(*info.node, gpus);
  for (cluster::Gpu& gpu : gpus.gpus) {
    gpu.fixed = true;
    for (const cluster::TargetLayout& target : targets) {
      if (target.index != gpu.index) continue;
      if (target.model != gpu.model && gpu.MaySwitch()) gpu.Switch();
      if (target.model == gpu.model) AssumeLayout(target.placements, gpu);
    }
  }
  return gpus;
}

bool HasFreeSlices(const cluster::NodeInfo& info, const cluster::Pod& pod) {
  for (const auto& [resource, amount] : cluster::PodRequests(pod)) {
    const bool slice =
        std::any_of(info.gpus.gpus.begin(), info.gpus.gpus.end(), [&](const cluster::Gpu& gpu) {
          return gpu.model->FindProfile(resource) ||
                 (gpu.alternative != nullptr && gpu.alternative->FindProfile(resource));
        });
    if (slice && CountFree(info, resource) < amount.Value()) return false;
  }
  return true;
}

bool AsksForSlices(const cluster::Pod& pod, bool whole) {
  for (const auto& [resource, amount] : cluster::PodRequests(pod)) {
    const bool slice =
        cluster::IsSliceResource(resource) || (whole && resource == cluster::kWholeGpuResource);
    if (slice && amount.Value() > 0) return true;
  }
  return false;
}

bool GivesWhole(const cluster::ClusterSnapshot& snapshot) {
  for (size_t i = 0; i < snapshot.size(); ++i) {
    if (snapshot.node(i).gpus.whole) return true;
  }
  return false;
}

}  // namespace nos::controllers
