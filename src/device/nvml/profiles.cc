#include "device/nvml/profiles.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/table.h"
#include "device/nvml_status.h"

namespace nos::device {
namespace {

// Far above real values (18 GPU and 9 compute profiles, 12 slots); a larger answer is corrupt.
constexpr unsigned kMaxProfiles = 64;
constexpr unsigned kMaxPlacements = 256;
constexpr unsigned kMaxSlots = 64;
constexpr unsigned kMaxCount = 128;

struct RawProfile {
  nvml::GpuInstanceProfileInfo info{};
  std::string name;
};

// Reads the driver's profile at this index; with its name if the driver reports names.
nvml::Return ReadRaw(const nvml::Functions& call, nvml::Device device, unsigned place,
                     RawProfile& raw) {
  raw = {};
  if (call.nvmlDeviceGetGpuInstanceProfileInfoV != nullptr) {
    nvml::GpuInstanceProfileInfoV2 info{};
    info.version = nvml::StructVersion<nvml::GpuInstanceProfileInfoV2>(2);
    if (call.nvmlDeviceGetGpuInstanceProfileInfoV(device, place, &info) == nvml::kSuccess) {
      raw.info = {info.id,
                  info.p2p_supported,
                  info.slice_count,
                  info.instance_count,
                  info.multiprocessors,
                  info.copy_engines,
                  info.decoders,
                  info.encoders,
                  info.jpegs,
                  info.ofas,
                  info.memory_mib};
      raw.name = DriverString(info.name, sizeof info.name);
      if (raw.name.starts_with("MIG ")) raw.name.erase(0, 4);  // as in nvidia-smi's tables
      return nvml::kSuccess;
    }
  }
  return call.nvmlDeviceGetGpuInstanceProfileInfo(device, place, &raw.info);
}

// Suffixes of names by enumeration value. Source: nvml.h NVML_GPU_INSTANCE_PROFILE_*, MIG User
// Guide "MIG Device Names".
std::string_view SuffixOf(unsigned nvml_enum) {
  switch (nvml_enum) {
    case 0x7:
    case 0x8:
      return "+me";
    case 0xA:
    case 0xB:
    case 0xC:
    case 0x11:
      return "+gfx";
    case 0xD:
    case 0xE:
      return "-me";
    case 0xF:
    case 0x10:
      return "+me.all";
    default:
      return "";
  }
}

// Computes the name for drivers that do not report names. Memory is rounded up to eighths of the
// GPU's, then to whole GiB, as in the names of NVIDIA's tools (1g.5gb with 4864 MiB of 40 GiB).
std::string WorkedOutName(const DriverProfile& profile, int64_t gpu_memory_mib) {
  const double total = static_cast<double>(gpu_memory_mib);
  const double eighths = total > 0 ? std::ceil(profile.memory_mib / total * 8) : 0;
  const long gib = std::lround(eighths / 8 * std::ceil(total / 1024));
  return fmt::format("{}g.{}gb{}", profile.slices, gib, SuffixOf(profile.nvml_enum));
}

std::string CanonicalName(const DriverProfile& profile, const gpu::Model* model) {
  if (model == nullptr) return profile.name;
  if (const auto known = model->FindProfile(profile.name)) return model->profile(*known).name;
  // Finds the same profile under a name that the catalogue does not contain.
  for (const gpu::Profile& row : model->profiles()) {
    const bool alike = row.nvml_id == static_cast<int>(profile.id) &&
                       row.compute == profile.slices &&
                       std::abs(row.memory_mib - profile.memory_mib) * 10 < row.memory_mib;
    if (alike) return row.name;
  }
  return profile.name;
}

Status ReadPlacements(const nvml::Functions& call, nvml::Device device, DriverProfile& profile) {
  constexpr const char* kCall = "nvmlDeviceGetGpuInstancePossiblePlacements_v2";
  unsigned count = 0;
  NOS_RETURN_IF_ERROR(ToStatus(
      call.nvmlDeviceGetGpuInstancePossiblePlacements_v2(device, profile.id, nullptr, &count),
      kCall));
  if (count > kMaxPlacements) {
    return Internal(
        fmt::format("{}: the driver says {} placements of {}", kCall, count, profile.name));
  }
  std::vector<nvml::PlacementSlots> slots(kMaxPlacements);
  const unsigned room = count;
  NOS_RETURN_IF_ERROR(ToStatus(
      call.nvmlDeviceGetGpuInstancePossiblePlacements_v2(device, profile.id, slots.data(), &count),
      kCall));
  slots.resize(std::min(room, count));
  for (const nvml::PlacementSlots& at : slots) {
    if (at.size == 0 || at.start >= kMaxSlots || at.size > kMaxSlots - at.start) {
      profile.placements.clear();
      return Internal(fmt::format("{}: the driver says {} may take {} slots at {}", kCall,
                                  profile.name, at.size, at.start));
    }
    profile.placements.push_back({static_cast<uint8_t>(at.start), static_cast<uint8_t>(at.size)});
  }
  std::sort(profile.placements.begin(), profile.placements.end(),
            [](const auto& left, const auto& right) { return left.start < right.start; });
  return Status::Ok();
}

Result<DriverProfile> ToProfile(const RawProfile& raw, unsigned place, int64_t gpu_memory_mib,
                                const gpu::Model* model) {
  constexpr unsigned long long kMaxMemory = 1ULL << 30;  // MiB: a pebibyte
  const nvml::GpuInstanceProfileInfo& info = raw.info;
  if (info.instance_count > kMaxCount || info.slice_count == 0 || info.slice_count > kMaxSlots ||
      info.memory_mib > kMaxMemory || info.multiprocessors > 1'000'000) {
    return Internal(fmt::format(
        "nvmlDeviceGetGpuInstanceProfileInfo: the driver says profile {} has {} slices, {} MiB, {} "
        "multiprocessors and fits {} times",
        place, info.slice_count, info.memory_mib, info.multiprocessors, info.instance_count));
  }
  DriverProfile profile;
  profile.nvml_enum = place;
  profile.id = info.id;
  profile.slices = static_cast<int>(info.slice_count);
  profile.max_count = static_cast<int>(info.instance_count);
  profile.memory_mib = static_cast<int>(info.memory_mib);
  profile.multiprocessors = static_cast<int>(info.multiprocessors);
  const auto engines = [](unsigned count) { return static_cast<uint16_t>(std::min(count, 999u)); };
  profile.engines = {engines(info.copy_engines), engines(info.decoders), engines(info.encoders),
                     engines(info.jpegs), engines(info.ofas)};
  profile.name = raw.name.empty() ? WorkedOutName(profile, gpu_memory_mib) : raw.name;
  profile.canonical = CanonicalName(profile, model);
  return profile;
}

}  // namespace

std::string StartsText(const DriverProfile& profile) {
  std::string text;
  for (const DriverPlacement& placement : profile.placements) {
    text += fmt::format("{}{}", text.empty() ? "" : ",", placement.start);
  }
  return text;
}

std::string DriverString(const char* text, size_t size) {
  return Printable(std::string(text, strnlen(text, size)));
}

Result<std::vector<DriverProfile>> ReadProfiles(const nvml::Functions& call, nvml::Device device,
                                                int64_t gpu_memory_mib, const gpu::Model* model) {
  std::vector<DriverProfile> profiles;
  for (unsigned place = 0; place < kMaxProfiles; ++place) {
    RawProfile raw;
    const nvml::Return code = ReadRaw(call, device, place, raw);
    if (code == nvml::kInvalidArgument) break;  // beyond the last profile of this driver
    if (code == nvml::kNotSupported) continue;  // not on this GPU
    NOS_RETURN_IF_ERROR(ToStatus(code, "nvmlDeviceGetGpuInstanceProfileInfo"));
    NOS_ASSIGN(DriverProfile profile, ToProfile(raw, place, gpu_memory_mib, model));
    profile.placements_status = ReadPlacements(call, device, profile);
    profiles.push_back(std::move(profile));
  }
  return profiles;
}

Result<std::vector<DriverComputeProfile>> ReadComputeProfiles(const nvml::Functions& call,
                                                              nvml::GpuInstanceRef instance) {
  std::vector<DriverComputeProfile> profiles;
  for (unsigned place = 0; place < kMaxProfiles; ++place) {
    nvml::ComputeInstanceProfileInfo info{};
    const nvml::Return code =
        call.nvmlGpuInstanceGetComputeInstanceProfileInfo(instance, place, /*shared*/ 0, &info);
    if (code == nvml::kInvalidArgument) break;
    if (code == nvml::kNotSupported) continue;
    NOS_RETURN_IF_ERROR(ToStatus(code, "nvmlGpuInstanceGetComputeInstanceProfileInfo"));
    if (info.slice_count > kMaxSlots || info.instance_count > kMaxCount ||
        info.multiprocessors > 1'000'000) {
      return Internal(
          fmt::format("nvmlGpuInstanceGetComputeInstanceProfileInfo: the driver says "
                      "compute profile {} has {} slices and fits {} times",
                      place, info.slice_count, info.instance_count));
    }
    profiles.push_back({info.id, static_cast<int>(info.slice_count),
                        static_cast<int>(info.instance_count),
                        static_cast<int>(info.multiprocessors)});
  }
  return profiles;
}

const DriverComputeProfile* FullSize(const std::vector<DriverComputeProfile>& candidates,
                                     const DriverProfile& profile) {
  const DriverComputeProfile* best = nullptr;
  for (const DriverComputeProfile& candidate : candidates) {
    if (candidate.slices != profile.slices) continue;
    if (best == nullptr || candidate.multiprocessors > best->multiprocessors ||
        (candidate.multiprocessors == best->multiprocessors && candidate.id < best->id)) {
      best = &candidate;
    }
  }
  return best;
}

}  // namespace nos::device
