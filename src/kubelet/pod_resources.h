// The pod-resources API (v1, unix socket) as an interface: the kubelet's report on devices.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "kubelet/device_plugin.h"

namespace nos::kubelet {

struct DeviceAssignment {
  std::string ns, pod, container;
  std::string resource;   // "nvidia.com/mig-1g.5gb"
  std::string device_id;  // "MIG-...", also for a replica; an MPS share: "GPU-...::10::3"
};

// A device that a container has through a ResourceClaim.
struct ClaimAssignment {
  std::string ns, pod, container;
  std::string driver;  // "gpu.nvidia.com"
  std::string device;  // name in the driver's pool of this node: "gpu-0-mig-1g10gb-19-6"
};

class PodResources {
 public:
  virtual ~PodResources() = default;
  // Devices that plugins have given to pods now. Error: kUnavailable.
  virtual Result<std::vector<DeviceAssignment>> List() = 0;
  // Devices of all drivers that pods have through ResourceClaims now. Kubelets report them from
  // Kubernetes 1.34 on. Error: kUnavailable.
  virtual Result<std::vector<ClaimAssignment>> ListClaims() = 0;
  // Healthy devices that the kubelet has accepted from plugins, free or not, sorted. An update
  // appears a moment after the kubelet has read a plugin's list. Error: kUnavailable.
  virtual Result<std::vector<OfferedDevice>> Allocatable() = 0;
};

}  // namespace nos::kubelet
