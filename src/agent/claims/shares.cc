#include "agent/claims/shares.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/log.h"

namespace nos::agent {
namespace {

// A daemon has ten seconds to begin or to end (device/sharing/mps_daemon.h).
constexpr Duration kDaemonTimeout = std::chrono::seconds(15);

device::MpsGpu ServedBy(const dra::GpuOfDriver& gpu, const dra::DriverDevice& device,
                        const ClaimedDevice& made) {
  device::MpsGpu served;
  served.index = gpu.index;
  if (device.placement) {
    served.uuid = made.instance_uuid;
    served.instance = made.instance;
    served.memory_mib = static_cast<int>(dra::MemoryOf(gpu, device));
  } else {
    served.uuid = gpu.uuid;
    served.memory_gib = static_cast<int>(gpu.shares.memory_gib);
  }
  return served;
}

Status NotServed(const std::string& uuid) {
  return {Code::kUnavailable,
          fmt::format("no MPS daemon serves {}, and without one nothing would limit the memory of "
                      "containers: the agent's log says why",
                      uuid)};
}

}  // namespace

void SharedByMps::Restore(const KnownDevices& devices, const PreparedClaims& prepared) {
  if (daemons_ == nullptr) return;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [uid, claim] : prepared) {
      for (const ClaimedDevice& device : claim.devices) {
        const dra::DriverDevice* known = devices.Find(device.device);
        // Without an instance there is nothing to serve yet.
        if (known == nullptr || !claim.ready || !IsLimitedByMps(device)) continue;
        served_[device.device] = {ServedBy(devices.GpuOf(device.device), *known, device)};
      }
    }
    // An earlier agent may have ended before it put the compute mode back.
    const std::set<std::string> left = daemons_->Left();
    for (const auto& [index, gpu] : devices.gpus()) {
      const std::string name = fmt::format("{}-{}", dra::DeviceNameOf(index), dra::kMpsType);
      const dra::DriverDevice* known = devices.Find(name);
      if (known != nullptr && left.contains(gpu.uuid)) {
        served_.try_emplace(name, Served{ServedBy(gpu, *known, {})});
      }
    }
  }
  Publish();
}

Status SharedByMps::Serve(const ClaimedDevice& made, const dra::GpuOfDriver& gpu,
                          const dra::DriverDevice& device, device::Backend& backend) {
  const device::MpsGpu served = ServedBy(gpu, device, made);
  if (daemons_ == nullptr) return NotServed(served.uuid);
  if (!device.placement) {
    NOS_RETURN_IF_ERROR(backend.SetComputeMode(gpu.index, device::ComputeMode::kExclusiveProcess));
  }
  {
    const std::lock_guard lock(mutex_);
    served_[device.name] = {served};
  }
  Publish();
  return daemons_->AwaitServing(served.uuid, kDaemonTimeout) ? Status::Ok()
                                                             : NotServed(served.uuid);
}

std::set<int> SharedByMps::GpusWithUnused(const std::set<std::string>& used) const {
  const std::lock_guard lock(mutex_);
  std::set<int> gpus;
  for (const auto& [device, served] : served_) {
    if (!used.contains(device)) gpus.insert(served.gpu.index);
  }
  return gpus;
}

Status SharedByMps::EndUnused(int gpu, const std::set<std::string>& used,
                              device::Backend& backend) {
  std::map<std::string, device::MpsGpu> unused;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [device, served] : served_) {
      if (served.gpu.index == gpu && !used.contains(device)) unused[device] = served.gpu;
    }
  }
  if (unused.empty()) return Status::Ok();
  for (const auto& [device, served] : unused) {
    if (served.instance) continue;
    NOS_RETURN_IF_ERROR(backend.SetComputeMode(gpu, device::ComputeMode::kDefault));
  }
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [device, served] : unused) served_[device].ends = true;
  }
  Publish();
  for (const auto& [device, served] : unused) {
    if (!daemons_->AwaitEnd(served.uuid, kDaemonTimeout)) {
      return {Code::kUnavailable, fmt::format("the MPS daemon of {} does not end", served.uuid)};
    }
    const std::lock_guard lock(mutex_);
    served_.erase(device);
  }
  return Status::Ok();
}

Result<device::ContainerEdits> SharedByMps::EditsFor(const ClaimedDevice& device,
                                                     int64_t total_mib) const {
  const std::string& uuid = device.instance_uuid.empty() ? device.gpu_uuid : device.instance_uuid;
  if (daemons_ == nullptr) return NotServed(uuid);
  return daemons_->AccessTo(uuid, device.memory_mib, total_mib);
}

void SharedByMps::Publish() {
  const std::lock_guard order(publishing_);
  std::vector<device::MpsGpu> all;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [device, served] : served_) {
      if (!served.ends) all.push_back(served.gpu);
    }
  }
  daemons_->ServeForClaims(std::move(all));
}

}  // namespace nos::agent
