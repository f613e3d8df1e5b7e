// What a node offers to the kubelet: the device-plugin API (ListAndWatch) as an interface.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace nos::kubelet {

struct OfferedDevice {
  std::string resource;   // "nvidia.com/mig-1g.5gb"
  std::string device_id;  // "MIG-..."
  // A broken device still counts as the node's, but is handed to nobody.
  bool healthy = true;
  friend auto operator<=>(const OfferedDevice&, const OfferedDevice&) = default;
};

// In order and without repetition, so that offers can be compared.
std::vector<OfferedDevice> SortedOffer(std::vector<OfferedDevice> devices);

class DevicePlugin {
 public:
  virtual ~DevicePlugin() = default;
  // Replaces the offer. When it returns OK the kubelet hands out no device outside it any more.
  // Error: kUnavailable: call again; others do not pass by themselves.
  virtual Status Offer(const std::vector<OfferedDevice>& devices) = 0;
  // Whether devices that exist can be left out of an offer. If not, the offer must be all there is,
  // and comes when the changes are done: each one may disturb whoever waits for devices.
  virtual bool Withdraws() const { return true; }
};

}  // namespace nos::kubelet
