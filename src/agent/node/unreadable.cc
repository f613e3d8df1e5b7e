// GPUs that cannot be read now, as they were.
#include <algorithm>
#include <utility>

#include "agent/node/divided_instances.h"
#include "agent/node/devices.h"

namespace nos::agent {
namespace {

// Whether what was read of an index is another GPU than the one that has it now.
bool HasMoved(const device::ObservedGpu& before, const device::ObservedGpu& now,
              const NodeDevices& devices) {
  const bool other = !now.uuid.empty() && now.uuid != before.uuid;
  return other || std::ranges::count(devices.gpus, before.uuid, &device::ObservedGpu::uuid) > 0;
}

}  // namespace

bool KeepUnreadable(NodeDevices& devices, LastRead& last, bool healthy, Duration patience,
                    Time now) {
  LastRead known;
  for (const device::ObservedGpu& gpu : devices.gpus) known[gpu.index] = {gpu, now};
  bool patient = false;
  for (device::ObservedGpu& gpu : devices.unreadable) {
    const auto before = last.find(gpu.index);
    if (before == last.end() || HasMoved(before->second.first, gpu, devices)) continue;
    gpu = before->second.first;
    known.insert(*before);
    const bool soon = now - before->second.second < patience;
    patient |= soon;
    if (soon && healthy) continue;
    for (const device::GpuInstance& instance : gpu.instances) {
      devices.unhealthy.insert(instance.uuid);
    }
  }
  last = std::move(known);
  HoldInstancesOfParts(devices);  // of those that are filled in, too
  return patient;
}

}  // namespace nos::agent
