#include "device/mps_gpus.h"

#include <fmt/core.h>

#include <algorithm>
#include <tuple>
#include <utility>

namespace nos::device {
namespace {

GpuInstance ToInstance(int gpu, uint32_t id, const MpsShare& share) {
  GpuInstance instance;
  instance.gpu = gpu;
  instance.id = id;
  instance.uuid = MpsShareId(share);
  instance.profile = MpsProfile(share.gib);
  instance.start = static_cast<uint8_t>(share.start);
  instance.size = static_cast<uint8_t>(share.gib);
  return instance;
}

int WholeGib(int64_t mib) { return static_cast<int>(std::max<int64_t>(0, mib) / 1024); }

}  // namespace

const gpu::Model& SharesModel(const GpuInfo& info, std::span<const GpuInstance> there) {
  int taken = 0;
  for (const GpuInstance& share : there) taken += ParseMpsProfile(share.profile).value_or(0);
  return gpu::SharesOf(std::max(info.share_gib, taken),
                       std::max(info.max_shares, static_cast<int>(there.size())));
}

Result<std::vector<GpuInfo>> MpsGpus::ListGpus() {
  NOS_ASSIGN(std::vector<GpuInfo> infos, backend().ListGpus());
  const std::scoped_lock lock(mutex_);
  infos_.clear();
  for (GpuInfo& info : infos) {
    info.could_share_gib = CapacityOf(info);
    info.max_shares = options_.max_shares;
    if (shares_.contains(info.uuid)) info.share_gib = info.could_share_gib;
    infos_[info.index] = info;
  }
  return infos;
}

int MpsGpus::CapacityOf(const GpuInfo& info) const {
  return WholeGib(info.memory_mib - options_.overhead_mib);
}

// REQUIRES: mutex_ is held.
Result<MpsGpus::Known> MpsGpus::Find(int gpu) {
  const auto info = infos_.find(gpu);
  if (info == infos_.end()) return NotFound(fmt::format("there is no GPU {}", gpu));
  if (!info->second.problem.empty()) return Status(Code::kUnavailable, info->second.problem);
  const auto shares = shares_.find(info->second.uuid);
  return Known{info->second, shares == shares_.end() ? nullptr : &shares->second};
}

bool MpsGpus::IsShared(int gpu) {
  const std::scoped_lock lock(mutex_);
  const auto info = infos_.find(gpu);
  return info != infos_.end() && shares_.contains(info->second.uuid);
}

Status MpsGpus::EnableMps(int gpu) {
  NOS_RETURN_IF_ERROR(ListGpus().status());
  const std::scoped_lock lock(mutex_);
  NOS_ASSIGN(const Known known, Find(gpu));
  if (known.info.mig_enabled) {
    return Invalid(fmt::format(
        "GPU {} is in MIG mode: it gives MPS shares only after that is switched off", gpu));
  }
  if (CapacityOf(known.info) < 1) {
    return Invalid(
        fmt::format("GPU {} has {} MiB according to the driver, of which {} are kept for the MPS "
                    "server: that is not one GiB for shares",
                    gpu, known.info.memory_mib, options_.overhead_mib));
  }
  if (known.info.compute_mode != ComputeMode::kExclusiveProcess) {
    NOS_RETURN_IF_ERROR(backend().SetComputeMode(gpu, ComputeMode::kExclusiveProcess));
  }
  shares_.try_emplace(known.info.uuid);
  return Status::Ok();
}

Status MpsGpus::DisableMps(int gpu) {
  const std::scoped_lock lock(mutex_);
  NOS_ASSIGN(const Known known, Find(gpu));
  if (known.shares == nullptr) return Status::Ok();
  if (!known.shares->empty()) {
    return {Code::kUnavailable,
            fmt::format("GPU {} still has {} MPS shares, {} among them: it stays in MPS mode", gpu,
                        known.shares->size(), MpsShareId(known.shares->begin()->second))};
  }
  NOS_RETURN_IF_ERROR(backend().SetComputeMode(gpu, ComputeMode::kDefault));
  shares_.erase(known.info.uuid);
  return Status::Ok();
}

std::vector<std::string> MpsGpus::Adopt(std::span<const std::string> device_ids) {
  std::vector<std::string> refused = backend().Adopt(device_ids);
  const std::scoped_lock lock(mutex_);
  for (const std::string& id : device_ids) {
    if (std::string why = AdoptOne(id); !why.empty()) refused.push_back(std::move(why));
  }
  return refused;
}

// Returns the reason of a refusal; "" if the share is restored or not ours. REQUIRES: mutex_ is
// held.
std::string MpsGpus::AdoptOne(const std::string& id) {
  const auto named = std::find_if(shares_.begin(), shares_.end(), [&](const auto& gpu) {
    return id.starts_with(gpu.first + "::");
  });
  if (named == shares_.end()) return "";
  Shares& shares = named->second;
  const auto refuse = [&](const std::string& why) {
    return fmt::format("a pod holds '{}', which {}: it counts as no share", id, why);
  };
  const std::optional<MpsShare> share = ParseMpsShareId(id);
  if (!share) return refuse("is not written as <GPU-UUID>::<GiB>::<number>");
  const bool known = std::any_of(shares.begin(), shares.end(),
                                 [&](const auto& other) { return other.second == *share; });
  if (known) return "";
  // The GPU's present memory is not checked: ECC may reduce it between boots while pods keep their
  // shares.
  if (share->gib > gpu::kMaxShareGib) {
    return refuse(fmt::format("is more than the {} GiB of any share", gpu::kMaxShareGib));
  }
  if (share->start >= gpu::kMaxClients) {
    return refuse(fmt::format("is numbered {} or more", gpu::kMaxClients));
  }
  if (std::ssize(shares) >= gpu::kMaxClients) {
    return refuse(fmt::format("is one more than the {} shares of any GPU", gpu::kMaxClients));
  }
  shares[next_id_++] = *share;
  return "";
}

Result<std::vector<GpuInstance>> MpsGpus::ListInstances(int gpu) {
  if (!IsShared(gpu)) return backend().ListInstances(gpu);
  {
    const std::scoped_lock lock(mutex_);
    NOS_RETURN_IF_ERROR(Find(gpu).status());
  }
  return SharesOn(gpu);
}

std::vector<GpuInstance> MpsGpus::SharesOn(int gpu) {
  const std::scoped_lock lock(mutex_);
  std::vector<GpuInstance> instances;
  const auto info = infos_.find(gpu);
  const auto shares = info == infos_.end() ? shares_.end() : shares_.find(info->second.uuid);
  if (shares == shares_.end()) return instances;
  for (const auto& [id, share] : shares->second) instances.push_back(ToInstance(gpu, id, share));
  std::sort(instances.begin(), instances.end(), [](const auto& left, const auto& right) {
    return std::tie(left.start, left.uuid) < std::tie(right.start, right.uuid);
  });
  return instances;
}

Status MpsGpus::CheckRoom(const Known& gpu, int gib, int start) const {
  const int capacity = CapacityOf(gpu.info);
  const int index = gpu.info.index;
  if (gib > capacity) {
    return Invalid(
        fmt::format("GPU {} has {} GiB for shares ({} MiB less {} MiB overhead): {} does "
                    "not fit",
                    index, capacity, gpu.info.memory_mib, options_.overhead_mib, MpsProfile(gib)));
  }
  if (start >= gpu::kMaxClients) {  // a number limit, independent of the GPU
    return Invalid(fmt::format("shares of GPU {} are numbered from 0 to {}, not {}", index,
                               gpu::kMaxClients - 1, start));
  }
  int64_t taken = 0;
  for (const auto& [id, share] : *gpu.shares) {
    taken += share.gib;
    if (share.start == start) {
      return {Code::kExhausted,
              fmt::format("GPU {} has a share number {}: {}", index, start, MpsShareId(share))};
    }
  }
  if (taken + gib > capacity) {
    return {Code::kExhausted,
            fmt::format("shares of GPU {} have {} of {} GiB: {} does not fit beside them", index,
                        taken, capacity, MpsProfile(gib))};
  }
  if (std::ssize(*gpu.shares) >= options_.max_shares) {
    return {Code::kExhausted,
            fmt::format("GPU {} has {} shares, all it may have", index, options_.max_shares)};
  }
  return Status::Ok();
}

Result<GpuInstance> MpsGpus::Create(int gpu, const std::string& profile, uint8_t start) {
  if (!IsShared(gpu)) return backend().Create(gpu, profile, start);
  const std::scoped_lock lock(mutex_);
  NOS_ASSIGN(const Known known, Find(gpu));
  const std::optional<int> gib = ParseMpsProfile(profile);
  if (known.shares == nullptr || !gib) {
    return Invalid(fmt::format("GPU {} is in MPS mode and has no profile {}, only such as 10gb",
                               gpu, profile));
  }
  NOS_RETURN_IF_ERROR(CheckRoom(known, *gib, start));
  const uint32_t id = next_id_++;
  const MpsShare& share = (*known.shares)[id] = {known.info.uuid, *gib, start};
  return ToInstance(gpu, id, share);
}

Status MpsGpus::Destroy(int gpu, uint32_t instance_id) {
  if (!IsShared(gpu)) return backend().Destroy(gpu, instance_id);
  const std::scoped_lock lock(mutex_);
  NOS_ASSIGN(const Known known, Find(gpu));
  if (known.shares != nullptr && known.shares->erase(instance_id) > 0) return Status::Ok();
  return NotFound(fmt::format("GPU {} has no share {}", gpu, instance_id));
}

Status MpsGpus::EnableMig(int gpu) {
  if (!IsShared(gpu)) return backend().EnableMig(gpu);
  return {Code::kUnavailable,
          fmt::format("GPU {} is in MPS mode: it takes MIG mode only after it has left that", gpu)};
}

Status MpsGpus::ResetGpu(int gpu) {
  if (!IsShared(gpu)) return backend().ResetGpu(gpu);
  return {Code::kUnavailable,
          fmt::format("GPU {} is in MPS mode: it is reset only after it has left that", gpu)};
}

Status MpsGpus::SetComputeMode(int gpu, ComputeMode mode) {
  if (mode == ComputeMode::kExclusiveProcess || !IsShared(gpu)) {
    return backend().SetComputeMode(gpu, mode);
  }
  return {Code::kUnavailable,
          fmt::format("GPU {} is in MPS mode: its MPS server only uses it", gpu)};
}

Readings MpsGpus::MeasureInstance(const GpuInstance& instance) {
  if (!IsShared(instance.gpu)) return backend().MeasureInstance(instance);
  return NothingMeasured("the driver does not report the use of one MPS share");
}

}  // namespace nos::device
