// Keeps the last known state of GPUs that currently cannot be read.
#include <algorithm>
#include <utility>

#include "agent/node/devices.h"
#include "agent/node/divided_instances.h"

namespace nos::agent {
namespace {

// True if the GPU that was read under this index is not the one that has the index now.
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
  HoldInstancesOfParts(devices);  // also for the instances that were filled in
  return patient;
}

}  // namespace nos::agent
