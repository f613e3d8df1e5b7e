#include "device/nvml/instances.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "device/nvml_status.h"

namespace nos::device {
namespace {

constexpr unsigned kRoom = 128;  // capacity for handles in a list; a GPU has at most 12 instances
constexpr unsigned kMaxSlots = 64;

// Reads one list of handles: `list(buffer, &count)`.
template <typename Ref, typename List>
Result<std::vector<Ref>> ReadRefs(const char* name, unsigned expected, const List& list) {
  std::vector<Ref> refs(kRoom);
  unsigned count = expected;
  NOS_RETURN_IF_ERROR(ToStatus(list(refs.data(), &count), name));
  if (count > kRoom) return Internal(fmt::format("{}: the driver lists {} instances", name, count));
  refs.resize(count);
  return refs;
}

Result<std::string> UuidOf(const nvml::Functions& call, nvml::Device device) {
  char uuid[nvml::kUuidSize + 1] = {};
  NOS_RETURN_IF_ERROR(
      ToStatus(call.nvmlDeviceGetUUID(device, uuid, nvml::kUuidSize), "nvmlDeviceGetUUID"));
  return DriverString(uuid, nvml::kUuidSize);
}

// Searches the list of MIG devices, which has holes. Needed for drivers whose compute instances
// name the parent device, as documented in nvml.h, instead of the MIG device.
Result<std::string> SearchUuid(const NvmlLibrary& library, nvml::Device gpu, unsigned instance,
                               unsigned compute) {
  const nvml::Functions& call = library.call();
  if (!library.Has(nvml::Feature::kMigDevices))
    return Internal("the driver does not list MIG devices");
  unsigned count = 0;
  NOS_RETURN_IF_ERROR(
      ToStatus(call.nvmlDeviceGetMaxMigDeviceCount(gpu, &count), "nvmlDeviceGetMaxMigDeviceCount"));
  for (unsigned index = 0; index < std::min(count, kRoom); ++index) {
    nvml::Device device = nullptr;
    unsigned gi = nvml::kNoInstance, ci = nvml::kNoInstance;
    if (call.nvmlDeviceGetMigDeviceHandleByIndex(gpu, index, &device) != nvml::kSuccess) continue;
    if (call.nvmlDeviceGetGpuInstanceId(device, &gi) != nvml::kSuccess) continue;
    if (call.nvmlDeviceGetComputeInstanceId(device, &ci) != nvml::kSuccess) continue;
    if (gi == instance && ci == compute) return UuidOf(call, device);
  }
  return Status(Code::kUnavailable,
                fmt::format("no MIG device for compute instance {} of GPU instance {} yet", compute,
                            instance));
}

Result<std::string> MigUuid(const NvmlLibrary& library, nvml::Device gpu, unsigned instance,
                            const ComputeSlice& slice) {
  nvml::ComputeInstanceInfo info{};
  NOS_RETURN_IF_ERROR(ToStatus(library.call().nvmlComputeInstanceGetInfo_v2(slice.ref, &info),
                               "nvmlComputeInstanceGetInfo_v2"));
  Result<std::string> uuid = UuidOf(library.call(), info.device);
  if (uuid.ok() && uuid->starts_with("MIG-")) return uuid;
  return SearchUuid(library, gpu, instance, slice.id);
}

Result<GpuInstance> ReadInstance(const NvmlLibrary& library, nvml::Device device, int gpu,
                                 const DriverProfile& profile, nvml::GpuInstanceRef ref) {
  nvml::GpuInstanceInfo info{};
  NOS_RETURN_IF_ERROR(
      ToStatus(library.call().nvmlGpuInstanceGetInfo(ref, &info), "nvmlGpuInstanceGetInfo"));
  const nvml::PlacementSlots& at = info.placement;
  if (at.start >= kMaxSlots || at.size == 0 || at.size > kMaxSlots - at.start) {
    return Internal(
        fmt::format("nvmlGpuInstanceGetInfo: the driver says instance {} has {} slots "
                    "at {}",
                    info.id, at.size, at.start));
  }
  GpuInstance instance{gpu,
                       info.id,
                       "",
                       profile.canonical,
                       static_cast<int>(profile.id),
                       static_cast<uint8_t>(at.start),
                       static_cast<uint8_t>(at.size),
                       true};
  NOS_ASSIGN(const std::vector<ComputeSlice> slices, ReadComputeSlices(library.call(), ref));
  instance.complete = !slices.empty();
  if (slices.empty()) return instance;
  NOS_ASSIGN(instance.uuid, MigUuid(library, device, info.id, slices.front()));
  if (slices.size() > 1 || slices.front().slices != profile.slices) {
    instance.profile = fmt::format("{}c.{}", slices.front().slices, profile.canonical);
  }
  return instance;
}

}  // namespace

Result<std::vector<ComputeSlice>> ReadComputeSlices(const nvml::Functions& call,
                                                    nvml::GpuInstanceRef instance) {
  std::vector<ComputeSlice> slices;
  NOS_ASSIGN(const std::vector<DriverComputeProfile> profiles, ReadComputeProfiles(call, instance));
  for (const DriverComputeProfile& profile : profiles) {
    NOS_ASSIGN(const auto refs,
               ReadRefs<nvml::ComputeInstanceRef>("nvmlGpuInstanceGetComputeInstances",
                                                  static_cast<unsigned>(profile.max_count),
                                                  [&](auto* buffer, unsigned* count) {
                                                    return call.nvmlGpuInstanceGetComputeInstances(
                                                        instance, profile.id, buffer, count);
                                                  }));
    for (const nvml::ComputeInstanceRef ref : refs) {
      nvml::ComputeInstanceInfo info{};
      NOS_RETURN_IF_ERROR(ToStatus(call.nvmlComputeInstanceGetInfo_v2(ref, &info),
                                   "nvmlComputeInstanceGetInfo_v2"));
      slices.push_back({ref, info.id, profile.slices});
    }
  }
  std::sort(slices.begin(), slices.end(),
            [](const auto& left, const auto& right) { return left.id < right.id; });
  return slices;
}

Result<std::vector<GpuInstance>> ReadInstances(const NvmlLibrary& library, nvml::Device device,
                                               int gpu, std::span<const DriverProfile> profiles) {
  std::vector<GpuInstance> instances;
  for (const DriverProfile& profile : profiles) {
    NOS_ASSIGN(const auto refs,
               ReadRefs<nvml::GpuInstanceRef>("nvmlDeviceGetGpuInstances",
                                              static_cast<unsigned>(profile.max_count),
                                              [&](auto* buffer, unsigned* count) {
                                                return library.call().nvmlDeviceGetGpuInstances(
                                                    device, profile.id, buffer, count);
                                              }));
    for (const nvml::GpuInstanceRef ref : refs) {
      NOS_ASSIGN(GpuInstance instance, ReadInstance(library, device, gpu, profile, ref));
      instances.push_back(std::move(instance));
    }
  }
  std::sort(instances.begin(), instances.end(), [](const auto& left, const auto& right) {
    return std::pair(left.start, left.id) < std::pair(right.start, right.id);
  });
  return instances;
}

}  // namespace nos::device
