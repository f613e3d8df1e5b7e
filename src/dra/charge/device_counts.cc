#include "dra/device_counts.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "dra/gpu_driver.h"

namespace nos::dra {
namespace {

constexpr size_t kMaxName = 63;  // of a device

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

size_t DigitsIn(std::string_view text) {
  return static_cast<size_t>(std::ranges::find_if_not(text, IsDigit) - text.begin());
}

bool Take(std::string_view& text, std::string_view what) {
  if (!text.starts_with(what)) return false;
  text.remove_prefix(what.size());
  return true;
}

// "1g10gb-19-6" is "1g.10gb", "1g10gb-me-20-6" is "1g.10gb.me".
std::optional<std::string> ProfileIn(std::string_view text) {
  if (text.size() > kMaxName) return std::nullopt;
  const std::string_view slices = text.substr(0, DigitsIn(text));
  text.remove_prefix(slices.size());
  if (slices.empty() || !Take(text, "g")) return std::nullopt;
  const std::string_view memory = text.substr(0, DigitsIn(text));
  text.remove_prefix(memory.size());
  if (memory.empty() || !Take(text, "gb")) return std::nullopt;
  std::string profile = fmt::format("{}g.{}gb", slices, memory);
  while (Take(text, "-") && !text.empty() && !IsDigit(text.front())) {
    const std::string_view extra = text.substr(0, text.find('-'));
    const bool plain = std::ranges::all_of(extra, [](char c) { return c >= 'a' && c <= 'z'; });
    if (extra.empty() || !plain) return std::nullopt;
    profile += "." + std::string(extra);
    text.remove_prefix(extra.size());
  }
  return profile;
}

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
  if (!IsGpuDriver(driver) || !Take(device, "gpu-")) return "";
  const size_t digits = DigitsIn(device);
  if (digits == 0) return "";
  device.remove_prefix(digits);
  if (device.empty()) return "nvidia.com/gpu";
  if (!Take(device, "-mig-")) return "";
  const auto profile = ProfileIn(device);
  return profile ? "nvidia.com/mig-" + *profile : "";
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

bool IsChargedFor(const ResourceClaim& claim, const cluster::Pod& pod) {
  if (claim.reserved_for.empty()) return true;
  const ClaimConsumer& first = claim.reserved_for.front();
  return first.resource != "pods" || first.uid == pod.meta.uid;
}

}  // namespace nos::dra
