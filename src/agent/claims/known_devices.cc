#include "agent/claims/known_devices.h"

#include <fmt/core.h>

#include <utility>

#include "gpu/occupancy.h"

namespace nos::agent {

bool IsLimitedByMps(const ClaimedDevice& device) {
  std::string_view name = device.device;
  return dra::TakeSharing(name) == dra::DeviceSharing::kMps && !device.admin;
}

std::string WithoutSharing(const std::string& device) {
  std::string_view name = device;
  (void)dra::TakeSharing(name);
  return std::string(name);
}

void KnownDevices::Set(std::vector<dra::GpuOfDriver> gpus) {
  gpus_.clear();
  devices_.clear();
  for (dra::GpuOfDriver& gpu : gpus) {
    for (dra::DriverDevice& device : dra::DevicesOf(gpu)) {
      std::string name = device.name;
      devices_.emplace(std::move(name), std::move(device));
    }
    const int index = gpu.index;
    gpus_[index] = std::move(gpu);
  }
}

const dra::DriverDevice* KnownDevices::Find(const std::string& device) const {
  const auto found = devices_.find(device);
  return found == devices_.end() ? nullptr : &found->second;
}

const dra::GpuOfDriver& KnownDevices::GpuOf(const std::string& device) const {
  return gpus_.at(Find(device)->gpu);
}

bool KnownDevices::IsShared(const ClaimedDevice& device) const {
  const dra::DriverDevice* known = Find(device.device);
  return known != nullptr && known->sharing != dra::DeviceSharing::kNone;
}

bool KnownDevices::Overlap(const ClaimedDevice& a, const ClaimedDevice& b) const {
  if (a.device == b.device) return !IsShared(a);
  // A claim may have a share of a device that is not shared any more.
  const auto place = [this](const std::string& name) {
    const dra::DriverDevice* known = Find(name);
    return known != nullptr ? known : Find(WithoutSharing(name));
  };
  const dra::DriverDevice* first = place(a.device);
  const dra::DriverDevice* second = place(b.device);
  if (first == nullptr || second == nullptr || first->gpu != second->gpu) return false;
  if (!first->placement || !second->placement) return true;
  gpu::Occupancy room(*gpus_.at(first->gpu).model);
  return !room.Add(*first->placement) || !room.Add(*second->placement);
}

Status KnownDevices::CheckShares(const AllocatedClaim& claim, const PreparedClaims& others) const {
  int by_mps = 0;
  for (const ClaimedDevice& device : claim.devices) {
    NOS_RETURN_IF_ERROR(CheckShare(claim, device, others));
    by_mps += IsLimitedByMps(device) ? 1 : 0;
  }
  if (by_mps < 2) return Status::Ok();
  return Invalid(
      "the claim has several shares by MPS, and a program reaches one MPS daemon: request one "
      "share "
      "in each of several claims, for different containers");
}

Status KnownDevices::CheckShare(const AllocatedClaim& claim, const ClaimedDevice& device,
                                const PreparedClaims& others) const {
  if (device.admin || !IsShared(device)) return Status::Ok();
  const dra::DriverDevice& known = *Find(device.device);
  const dra::GpuOfDriver& gpu = gpus_.at(known.gpu);
  const bool mps = known.sharing == dra::DeviceSharing::kMps;
  if (mps && device.memory_mib <= 0) {
    return Invalid(fmt::format("the allocation states no memory of {}", device.device));
  }
  int64_t amount = 0;
  const auto add = [&](const std::vector<ClaimedDevice>& devices) {
    for (const ClaimedDevice& one : devices) {
      if (one.device == device.device && !one.admin) amount += mps ? one.memory_mib : 1;
    }
  };
  add(claim.devices);
  for (const auto& [uid, other] : others) {
    if (uid != claim.uid) add(other.devices);
  }
  const int64_t total = mps ? dra::MemoryOf(gpu, known) : gpu.shares.time_slices;
  if (amount <= total) return Status::Ok();
  return {Code::kConflict, fmt::format("claims have been given {} of the {} {} of {}", amount,
                                       total, mps ? "MiB" : "time slices", device.device)};
}

}  // namespace nos::agent
