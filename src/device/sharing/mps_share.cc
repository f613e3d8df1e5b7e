#include "device/mps_share.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <string>
#include <vector>

#include "base/text.h"
#include "device/mig_parts.h"

namespace nos::device {
namespace {

constexpr int kMaxGib = 9999;
constexpr size_t kMaxUuid = 48;

// "GPU-" and characters of a UUID, so that it is safe in a path and in an environment.
bool IsGpuUuid(std::string_view text) {
  return text.starts_with("GPU-") && text.size() > 4 && text.size() <= kMaxUuid &&
         std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return std::isalnum(c) != 0 || c == '-'; });
}

// Accepts one spelling: no sign, no leading zeros.
std::optional<int> Number(std::string_view text, int least, int most) {
  const std::optional<int64_t> number = ParseInt(text);
  if (!number || *number < least || *number > most) return std::nullopt;
  return std::to_string(*number) == text ? std::optional(static_cast<int>(*number)) : std::nullopt;
}

}  // namespace

std::string MpsShareId(const MpsShare& share) {
  return fmt::format("{}::{}::{}", share.gpu_uuid, share.gib, share.start);
}

std::optional<MpsShare> ParseMpsShareId(std::string_view id) {
  const std::vector<std::string_view> parts = Split(id, ':');
  if (parts.size() != 5 || !parts[1].empty() || !parts[3].empty()) return std::nullopt;
  const std::optional<int> gib = Number(parts[2], 1, kMaxGib);
  const std::optional<int> start = Number(parts[4], 0, kMaxMpsStarts - 1);
  if (!IsGpuUuid(parts[0]) || !gib || !start) return std::nullopt;
  return MpsShare{std::string(parts[0]), *gib, *start};
}

std::string MpsProfile(int gib) { return fmt::format("{}gb", gib); }

std::optional<int> ParseMpsProfile(std::string_view profile) {
  if (!profile.ends_with("gb")) return std::nullopt;
  return Number(profile.substr(0, profile.size() - 2), 1, kMaxGib);
}

bool IsMpsUuid(const std::string& uuid) {
  return IsMigUuid(uuid) || ParseMpsShareId(MpsShareId({uuid, 1, 0})).has_value();
}

}  // namespace nos::device
