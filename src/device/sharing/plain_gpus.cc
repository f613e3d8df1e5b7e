#include "device/plain_gpus.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/text.h"
#include "device/mps_share.h"
#include "gpu/modes.h"

namespace nos::device {
namespace {

constexpr std::string_view kWholeProfile = "gpu", kTimeProfile = "shared", kMark = "::time::";
constexpr int kWholePlace = -1;
constexpr int kMaxStarts = 64;

}  // namespace

std::string TimeSliceId(const TimeSlice& slice) {
  return fmt::format("{}{}{}", slice.gpu_uuid, kMark, slice.start);
}

std::optional<TimeSlice> ParseTimeSliceId(std::string_view id) {
  const size_t mark = id.find(kMark);
  if (mark == std::string_view::npos || !id.starts_with("GPU-")) return std::nullopt;
  const auto start = ParseInt(id.substr(mark + kMark.size()));
  if (!start || *start < 0 || *start >= kMaxStarts) return std::nullopt;
  TimeSlice slice{std::string(id.substr(0, mark)), static_cast<int>(*start)};
  return TimeSliceId(slice) == id ? std::optional(std::move(slice)) : std::nullopt;
}

bool IsMigProfile(std::string_view profile) {
  return profile != kWholeProfile && profile != kTimeProfile && !ParseMpsProfile(profile) &&
         !gpu::ParsePartName(profile);
}

void PlainGpus::GiveWhole(bool give) {
  backend().GiveWhole(give);
  const std::scoped_lock lock(mutex_);
  gives_ = give;
  if (!give) instances_.clear();
}

Result<std::vector<GpuInfo>> PlainGpus::ListGpus() {
  NOS_ASSIGN(std::vector<GpuInfo> infos, backend().ListGpus());
  const std::scoped_lock lock(mutex_);
  infos_.clear();
  for (GpuInfo& info : infos) {
    info.gives_whole = gives_;
    infos_[info.index] = info;
  }
  return infos;
}

// Null: the GPU has no such instances. REQUIRES: mutex_ is held.
const GpuInfo* PlainGpus::Plain(int gpu) const {
  const auto info = infos_.find(gpu);
  const bool plain =
      gives_ && info != infos_.end() && !info->second.mig_enabled && info->second.share_gib == 0;
  return plain ? &info->second : nullptr;
}

GpuInstance PlainGpus::ToInstance(const GpuInfo& info, uint32_t id, int place) const {
  const bool whole = place == kWholePlace;
  GpuInstance instance;
  instance.gpu = info.index;
  instance.id = id;
  instance.uuid = whole ? info.uuid : TimeSliceId({info.uuid, place});
  instance.profile = whole ? kWholeProfile : kTimeProfile;
  instance.start = static_cast<uint8_t>(whole ? 0 : place);
  return instance;
}

std::vector<std::string> PlainGpus::Adopt(std::span<const std::string> device_ids) {
  {
    const std::scoped_lock lock(mutex_);
    for (const std::string& id : device_ids) AdoptOne(id);
  }
  return backend().Adopt(device_ids);
}

// REQUIRES: mutex_ is held.
void PlainGpus::AdoptOne(const std::string& id) {
  const auto slice = ParseTimeSliceId(id);
  const std::string& uuid = slice ? slice->gpu_uuid : id;
  const auto gpu =
      std::ranges::find_if(infos_, [&](const auto& entry) { return entry.second.uuid == uuid; });
  if (gpu == infos_.end() || Plain(gpu->first) == nullptr) return;
  Instances& there = instances_[uuid];
  const int place = slice ? slice->start : kWholePlace;
  const bool known =
      std::ranges::any_of(there, [&](const auto& entry) { return entry.second == place; });
  if (!known) there[next_id_++] = place;
}

Result<std::vector<GpuInstance>> PlainGpus::ListInstances(int gpu) {
  std::string uuid;
  {
    const std::scoped_lock lock(mutex_);
    if (const GpuInfo* info = Plain(gpu)) {
      if (!info->problem.empty()) return Status(Code::kUnavailable, info->problem);
      uuid = info->uuid;
    }
  }
  if (uuid.empty()) return backend().ListInstances(gpu);
  return InstancesOn(uuid);
}

std::vector<GpuInstance> PlainGpus::InstancesOn(const std::string& uuid) {
  const std::scoped_lock lock(mutex_);
  std::vector<GpuInstance> instances;
  const auto there = instances_.find(uuid);
  const auto gpu =
      std::ranges::find_if(infos_, [&](const auto& entry) { return entry.second.uuid == uuid; });
  if (there == instances_.end() || gpu == infos_.end()) return instances;
  for (const auto& [id, place] : there->second) {
    instances.push_back(ToInstance(gpu->second, id, place));
  }
  std::ranges::sort(instances, {}, &GpuInstance::uuid);
  return instances;
}

Result<GpuInstance> PlainGpus::Create(int gpu, const std::string& profile, uint8_t start) {
  if (profile != kWholeProfile && profile != kTimeProfile) {
    NOS_RETURN_IF_ERROR(CheckEmpty(gpu));
    return backend().Create(gpu, profile, start);
  }
  const std::scoped_lock lock(mutex_);
  const GpuInfo* info = Plain(gpu);
  if (info == nullptr) {
    return Invalid(fmt::format("GPU {} is not given whole or in time slices now", gpu));
  }
  if (!info->problem.empty()) return Status(Code::kUnavailable, info->problem);
  const int place = profile == kWholeProfile ? kWholePlace : start;
  if (start >= kMaxStarts || (place == kWholePlace && start != 0)) {
    return Invalid(fmt::format("GPU {} has no {}@{}", gpu, profile, start));
  }
  Instances& there = instances_[info->uuid];
  for (const auto& [id, other] : there) {
    if (place != kWholePlace && other != kWholePlace && other != place) continue;
    return Status(Code::kExhausted,
                  fmt::format("GPU {} has {} already", gpu, ToInstance(*info, id, other).uuid));
  }
  const uint32_t id = next_id_++;
  there[id] = place;
  return ToInstance(*info, id, place);
}

Status PlainGpus::Destroy(int gpu, uint32_t instance_id) {
  {
    const std::scoped_lock lock(mutex_);
    if (const GpuInfo* info = Plain(gpu)) {
      if (instances_[info->uuid].erase(instance_id) > 0) return Status::Ok();
      return NotFound(fmt::format("GPU {} has no instance {}", gpu, instance_id));
    }
  }
  return backend().Destroy(gpu, instance_id);
}

Status PlainGpus::CheckEmpty(int gpu) {
  const std::scoped_lock lock(mutex_);
  const GpuInfo* info = Plain(gpu);
  if (info == nullptr || instances_[info->uuid].empty()) return Status::Ok();
  const auto& [id, place] = *instances_[info->uuid].begin();
  return {Code::kUnavailable,
          fmt::format("GPU {} has {}: nothing else is made of it before that is gone", gpu,
                      ToInstance(*info, id, place).uuid)};
}

Status PlainGpus::EnableMig(int gpu) {
  NOS_RETURN_IF_ERROR(CheckEmpty(gpu));
  return backend().EnableMig(gpu);
}

Status PlainGpus::ResetGpu(int gpu) {
  NOS_RETURN_IF_ERROR(CheckEmpty(gpu));
  return backend().ResetGpu(gpu);
}

Status PlainGpus::EnableMps(int gpu) {
  NOS_RETURN_IF_ERROR(CheckEmpty(gpu));
  return backend().EnableMps(gpu);
}

Status PlainGpus::SetComputeMode(int gpu, ComputeMode mode) {
  if (mode != ComputeMode::kDefault) NOS_RETURN_IF_ERROR(CheckEmpty(gpu));
  return backend().SetComputeMode(gpu, mode);
}

Readings PlainGpus::MeasureInstance(const GpuInstance& instance) {
  if (instance.profile == kWholeProfile) return backend().MeasureGpu(instance.gpu);
  if (instance.profile == kTimeProfile) {
    return NothingMeasured("the driver does not report the use of one of several pods on a GPU");
  }
  return backend().MeasureInstance(instance);
}

}  // namespace nos::device
