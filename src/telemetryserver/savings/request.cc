#include "telemetryserver/savings/request.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>

#include "base/text.h"
#include "gpu/modes.h"
#include "gpu/shares.h"

namespace nos::telemetryserver {
namespace {

constexpr std::string_view kMigPrefix = "nvidia.com/mig-", kSharePrefix = "nvidia.com/gpu-";
// A share of a GPU by a claim: the memory in GB (docs/quotas.md).
constexpr std::string_view kGpuMemory = "nos.nebuly.com/gpu-memory";
constexpr int64_t kMaxCount = 10'000;
constexpr int kMibPerGib = 1024;

// Memory of a part of a MIG instance, in GiB: that of the instance in the first model that has it.
std::optional<int64_t> GibOfPart(std::string_view resource, const gpu::Catalogue& catalogue) {
  const auto part = gpu::ParsePartName(resource.substr(kMigPrefix.size()));
  if (!part) return std::nullopt;
  for (const auto& model : catalogue.models()) {
    const auto profile = model->FindProfile(part->profile);
    if (!profile) continue;
    return std::max(1, model->profile(*profile).memory_mib / part->count / kMibPerGib);
  }
  return std::nullopt;
}

std::optional<DeviceRequest> Read(std::string_view resource, int64_t amount,
                                  const gpu::Catalogue& catalogue) {
  using Kind = DeviceRequest::Kind;
  if (resource == gpu::kWholeGpu) return DeviceRequest{.kind = Kind::kGpu, .count = amount};
  if (resource == gpu::kTimeSlice) return DeviceRequest{.kind = Kind::kTimeSlice, .count = amount};
  if (resource == kGpuMemory) return DeviceRequest{.kind = Kind::kMemory, .gib = amount};
  if (gpu::IsPartResource(resource)) {
    const auto gib = GibOfPart(resource, catalogue);
    if (!gib) return std::nullopt;
    return DeviceRequest{.kind = Kind::kMemory, .gib = *gib, .count = amount};
  }
  if (resource.starts_with(kMigPrefix)) {
    return DeviceRequest{.kind = Kind::kProfile,
                         .profile = std::string(resource.substr(kMigPrefix.size())),
                         .count = amount};
  }
  if (!gpu::IsShareResource(resource)) return std::nullopt;
  std::string_view gib = resource.substr(kSharePrefix.size());
  gib.remove_suffix(std::string_view("gb").size());
  return DeviceRequest{.kind = Kind::kMemory, .gib = ParseInt(gib).value_or(1), .count = amount};
}

}  // namespace

std::vector<DeviceRequest> DeviceRequestsOf(const Pod& pod, const gpu::Catalogue& catalogue) {
  std::vector<DeviceRequest> requests;
  for (const auto& [resource, amount] : pod.requests) {
    if (!(amount >= 1)) continue;
    const auto count = static_cast<int64_t>(std::min<double>(amount, kMaxCount));
    if (auto request = Read(resource, count, catalogue)) requests.push_back(*std::move(request));
  }
  std::ranges::sort(requests);
  return requests;
}

}  // namespace nos::telemetryserver
