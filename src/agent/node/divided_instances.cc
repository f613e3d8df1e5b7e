#include "agent/node/divided_instances.h"

#include <set>
#include <string_view>

#include "cluster/resources.h"
#include "device/mig_parts.h"
#include "gpu/modes.h"

namespace nos::agent {
namespace {

template <typename Visit>
void ForEachInstance(const NodeDevices& devices, const Visit& visit) {
  for (const auto* gpus : {&devices.gpus, &devices.unreadable}) {
    for (const device::ObservedGpu& gpu : *gpus) {
      for (const device::GpuInstance& instance : gpu.instances) visit(gpu, instance);
    }
  }
}

}  // namespace

void HoldInstancesOfParts(NodeDevices& devices) {
  std::set<std::string> listed;
  ForEachInstance(devices, [&](const device::ObservedGpu&, const device::GpuInstance& instance) {
    listed.insert(instance.uuid);
  });
  std::map<std::string, std::string> unlisted;  // UUID of the instance -> pod
  for (const auto& [id, pod] : devices.holders) {
    const auto part = device::ParseMigPartId(id);
    if (part && !listed.contains(id)) unlisted[part->mig_uuid] = pod;
  }
  ForEachInstance(devices, [&](const device::ObservedGpu&, const device::GpuInstance& instance) {
    const bool part = unlisted.contains(instance.part_of);
    if (part) devices.doubtful.insert(instance.uuid);
    const auto held = unlisted.find(instance.uuid);
    if (held != unlisted.end()) devices.holders.try_emplace(instance.uuid, held->second);
    // The kubelet does not know that the holder of a part holds this device.
    if (part || held != unlisted.end()) devices.unhealthy.insert(instance.uuid);
  });
}

void DoubtInstancesOfParts(const std::map<std::string, int64_t>& unseen, NodeDevices& devices) {
  for (const auto& [resource, count] : unseen) {
    if (count <= 0 || !gpu::IsPartResource(resource)) continue;
    const auto part =
        gpu::ParsePartName(std::string_view(resource).substr(cluster::kMigResourcePrefix.size()));
    ForEachInstance(devices, [&](const device::ObservedGpu&, const device::GpuInstance& instance) {
      if (!instance.complete || instance.profile != part->profile) return;
      devices.doubtful.insert(instance.uuid);
      devices.unhealthy.insert(instance.uuid);
    });
  }
}

std::map<std::string, DividedInstance> DividedInstancesOf(const NodeDevices& devices) {
  std::map<std::string, DividedInstance> divided;
  ForEachInstance(devices, [&](const device::ObservedGpu& gpu, const device::GpuInstance& part) {
    if (part.part_of.empty()) return;
    DividedInstance& instance = divided[part.part_of];
    instance.gpu = &gpu;
    instance.parts.push_back(&part);
  });
  return divided;
}

}  // namespace nos::agent
