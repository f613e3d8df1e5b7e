// MIG instances that several pods share (device/mig_parts.h), where it is not known into what they
// are divided: a used device is sacred, whatever it is listed as.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "agent/node/devices.h"

namespace nos::agent {

// Who holds a part that is not listed holds what is listed of its instance: the instance as a
// whole, or its other parts, which count as doubtful. Both count as unhealthy, since the kubelet,
// which knows them by other names, would give them to somebody else.
void HoldInstancesOfParts(NodeDevices& devices);

// `unseen`: by resource, how many parts pods hold of which nobody tells. Each of the instances that
// they may be of counts as doubtful, and as unhealthy, so that nobody is given the whole of it.
void DoubtInstancesOfParts(const std::map<std::string, int64_t>& unseen, NodeDevices& devices);

// The parts that are listed, those of GPUs that cannot be read now included, by UUID of the
// instance in which they lie.
struct DividedInstance {
  const device::ObservedGpu* gpu = nullptr;
  std::vector<const device::GpuInstance*> parts{};
};
std::map<std::string, DividedInstance> DividedInstancesOf(const NodeDevices& devices);

}  // namespace nos::agent
