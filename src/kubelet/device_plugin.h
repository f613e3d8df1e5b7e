// The device-plugin API (ListAndWatch) as an interface: the devices that a node offers to the
// kubelet.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/status.h"

namespace nos::kubelet {

struct OfferedDevice {
  std::string resource;   // "nvidia.com/mig-1g.5gb"
  std::string device_id;  // "MIG-..."
  // The kubelet counts an unhealthy device in capacity but never allocates it.
  bool healthy = true;
  friend auto operator<=>(const OfferedDevice&, const OfferedDevice&) = default;
};

// Sorted and without duplicates, so that offers can be compared.
std::vector<OfferedDevice> SortedOffer(std::vector<OfferedDevice> devices);

class DevicePlugin {
 public:
  virtual ~DevicePlugin() = default;
  // Replaces the offer. After OK, the kubelet allocates no device outside it; an allocation that it
  // decided before may still arrive. Error: kUnavailable: call again; other errors are permanent.
  virtual Status Offer(const std::vector<OfferedDevice>& devices) = 0;
  // Call this before destroying a device that has left the offer: from now on its allocation is
  // refused. False: the device was allocated after it left the offer, so it must stay.
  virtual bool RefuseAllocation(const std::string& /*device_id*/) { return true; }
  // Devices that pods use, as far as the caller knows: device id -> UID of the pod's cgroup, "" if
  // unknown. The kubelet may take them for free before the caller hears of a deletion. It is asked
  // to choose others while there are enough, and does not get one whose pod still runs.
  virtual void Avoid(const std::map<std::string, std::string>& /*users*/) {}
  // True if existing devices can be left out of an offer. If false, an offer must list every device
  // and be made after all changes, because each offer may disturb pods that are being admitted.
  virtual bool Withdraws() const { return true; }
  // True if the last offer has to be made again although the devices are the same, because
  // something that containers need of them is missing.
  virtual bool IsStale() const { return false; }
  // True if the kubelet may allocate the device, as far as it has reported its list. A free device
  // that it may not allocate yet cannot be used by any pod.
  virtual bool Shows(const std::string& /*device_id*/) const { return true; }
};

}  // namespace nos::kubelet
