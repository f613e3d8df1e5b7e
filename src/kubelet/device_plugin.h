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
  // Replaces the offer. When it returns OK the kubelet chooses no device outside it any more. What
  // it had chosen before it may still take. Error: kUnavailable: call again; others do not pass by
  // themselves.
  virtual Status Offer(const std::vector<OfferedDevice>& devices) = 0;
  // A device that has left the offer is about to be destroyed: from now on it is refused. False
  // when it has been taken since it left: it must stay.
  virtual bool Condemn(const std::string& /*device_id*/) { return true; }
  // Whether devices that exist can be left out of an offer. If not, the offer must be all there is,
  // and comes when the changes are done: each one may disturb whoever waits for devices.
  virtual bool Withdraws() const { return true; }
  // Whether the kubelet may hand the device out, as far as it has said. A free one that it may not
  // is not there yet for anybody.
  virtual bool Shows(const std::string& /*device_id*/) const { return true; }
};

}  // namespace nos::kubelet
