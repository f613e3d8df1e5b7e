// Handles MIG instances that several pods share (device/mig_parts.h) if their division is not
// known: a device in use must not be given away, under whatever id it is listed.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "agent/node/devices.h"

namespace nos::agent {

// If a pod holds a part that is not listed, the listed devices of its instance count as held: the
// whole instance, or its other parts, which become doubtful. They also become unhealthy, because
// the kubelet knows them under other ids and would give them to another pod.
void HoldInstancesOfParts(NodeDevices& devices);

// `unseen`: by resource, the number of parts that pods hold and that are not listed. Every instance
// that they may belong to becomes doubtful, and unhealthy so that no pod gets the whole instance.
void DoubtInstancesOfParts(const std::map<std::string, int64_t>& unseen, NodeDevices& devices);

// The listed parts by UUID of their instance, including parts of GPUs that currently cannot be
// read.
struct DividedInstance {
  const device::ObservedGpu* gpu = nullptr;
  std::vector<const device::GpuInstance*> parts{};
};
std::map<std::string, DividedInstance> DividedInstancesOf(const NodeDevices& devices);

}  // namespace nos::agent
