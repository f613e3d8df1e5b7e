#include "dra/device_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

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

template <typename Number>
std::optional<Number> NumberIn(std::string_view digits) {
  Number number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return number;
}

}  // namespace

std::optional<DeviceName> ReadDeviceName(std::string_view driver, std::string_view device) {
  if (!IsGpuDriver(driver) || !Take(device, "gpu-")) return std::nullopt;
  const DeviceSharing sharing = driver == kNosDriver ? TakeSharing(device) : DeviceSharing::kNone;
  const size_t digits = DigitsIn(device);
  const auto gpu = NumberIn<int64_t>(device.substr(0, digits));
  if (!gpu) return std::nullopt;
  device.remove_prefix(digits);
  DeviceName name{*gpu, "", std::nullopt, sharing};
  if (device.empty()) return name;
  if (!Take(device, "-mig-")) return std::nullopt;
  auto profile = ProfileIn(device);
  if (!profile) return std::nullopt;
  name.profile = *std::move(profile);
  name.start = NumberIn<uint8_t>(device.substr(device.rfind('-') + 1));
  return name;
}

}  // namespace nos::dra
