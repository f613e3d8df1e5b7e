// What the kubelet says about devices: the pod-resources API (v1, unix socket) as an interface.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "kubelet/device_plugin.h"

namespace nos::kubelet {

struct DeviceAssignment {
  std::string ns, pod, container;
  std::string resource;   // "nvidia.com/mig-1g.5gb"
  std::string device_id;  // "MIG-..."; of a replica, too; of an MPS share "GPU-...::10::3"
};

class PodResources {
 public:
  virtual ~PodResources() = default;
  // Devices held by pods now. Error: kUnavailable.
  virtual Result<std::vector<DeviceAssignment>> List() = 0;
  // Healthy devices that the kubelet has taken over from plugins, free or not, in order: a moment
  // after it has read a plugin's list. Error: kUnavailable.
  virtual Result<std::vector<OfferedDevice>> Allocatable() = 0;
};

}  // namespace nos::kubelet
