#include "kubelet/device_plugin.h"

#include <algorithm>

namespace nos::kubelet {

std::vector<OfferedDevice> SortedOffer(std::vector<OfferedDevice> devices) {
  std::sort(devices.begin(), devices.end());
  devices.erase(std::unique(devices.begin(), devices.end()), devices.end());
  return devices;
}

}  // namespace nos::kubelet
