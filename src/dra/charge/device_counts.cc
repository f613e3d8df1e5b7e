#include "dra/device_counts.h"

#include <algorithm>

#include "dra/device_name.h"

namespace nos::dra {
namespace {

const std::string* ClassOf(const ResourceClaim& claim, const std::string& result) {
  for (const DeviceRequest& request : claim.requests) {
    if (request.exactly && request.name == result) return &request.exactly->device_class;
    for (const ExactRequest& alternative : request.first_available) {
      if (request.name + "/" + alternative.name == result) return &alternative.device_class;
    }
  }
  return nullptr;
}

}  // namespace

std::string ResourceOf(std::string_view driver, std::string_view device) {
  const auto name = ReadDeviceName(driver, device);
  if (!name) return "";
  const bool turns = name->sharing == DeviceSharing::kTimeSlices;
  if (turns && name->profile.empty()) return "nvidia.com/gpu.shared";
  return name->profile.empty() ? "nvidia.com/gpu" : "nvidia.com/mig-" + name->profile;
}

int64_t GbOf(const Quantity& memory) {
  constexpr int64_t kGib = int64_t{1} << 30;
  const int64_t bytes = std::max<int64_t>(memory.Value(), 0);
  return bytes / kGib + (bytes % kGib > 0 ? 1 : 0);
}

std::string ResourceOfClass(const std::string& device_class) {
  return device_class + ".deviceclass.resource.k8s.io/devices";
}

DeviceCounts CountsOf(const ResourceClaim& claim, const Allocation& allocation) {
  static const Name kMemory("memory");
  DeviceCounts counts;
  for (const AllocatedDevice& device : allocation.devices) {
    if (device.admin()) continue;
    const std::string* device_class = ClassOf(claim, device.request);
    if (device_class != nullptr) ++counts[ResourceOfClass(*device_class)];
    const std::string resource = ResourceOf(device.driver.str(), device.device.str());
    if (resource.empty()) continue;
    const auto memory =
        std::ranges::find(device.consumed_capacity, kMemory, &Amounts::value_type::first);
    const bool shares = !device.share_id.empty() && memory != device.consumed_capacity.end();
    if (shares) {
      counts[kGpuMemory] += GbOf(memory->second);
    } else {
      ++counts[resource];
    }
  }
  return counts;
}

}  // namespace nos::dra
