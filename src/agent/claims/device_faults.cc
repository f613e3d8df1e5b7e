#include "agent/claims/device_faults.h"

#include <algorithm>
#include <set>

#include "agent/claims/known_devices.h"

namespace nos::agent {

using device::HealthCondition;

namespace {

// A daemon that does not serve is no fault of the GPU or instance itself.
bool Disables(const HealthCondition& condition) {
  return condition.Disables() && condition.kind != HealthCondition::Kind::kMps;
}

std::string MpsDeviceOf(const std::string& device) {
  return device + "-" + std::string(dra::kMpsType);
}

}  // namespace

void DeviceFaults::Update(std::vector<HealthCondition> conditions, const PreparedClaims& prepared,
                          const std::vector<dra::GpuOfDriver>& gpus) {
  conditions_ = std::move(conditions);
  std::set<std::pair<int, uint32_t>> used;
  for (const auto& [uid, claim] : prepared) {
    for (const ClaimedDevice& device : claim.devices) {
      const auto gpu = std::ranges::find(gpus, device.gpu_uuid, &dra::GpuOfDriver::uuid);
      if (gpu == gpus.end() || !device.instance) continue;
      devices_[{gpu->index, *device.instance}] = {WithoutSharing(device.device),
                                                  device.instance_uuid};
      used.insert({gpu->index, *device.instance});
    }
  }
  // A new instance may get the id of one that is gone.
  std::erase_if(devices_, [&](const auto& known) {
    return !used.contains(known.first) &&
           std::ranges::none_of(conditions_, [&](const HealthCondition& condition) {
             return condition.instance &&
                    std::pair(condition.gpu, *condition.instance) == known.first;
           });
  });
}

std::string DeviceFaults::DeviceOf(const HealthCondition& condition) const {
  if (!condition.instance) return "";
  const auto found = devices_.find({condition.gpu, *condition.instance});
  return found == devices_.end() ? "" : found->second.device;
}

const HealthCondition* DeviceFaults::FaultOf(int gpu) const {
  const auto found = std::ranges::find_if(conditions_, [&](const HealthCondition& condition) {
    return condition.gpu == gpu && !condition.instance && Disables(condition);
  });
  return found == conditions_.end() ? nullptr : &*found;
}

const HealthCondition* DeviceFaults::FaultOf(const std::string& device) const {
  const auto found = std::ranges::find_if(conditions_, [&](const HealthCondition& condition) {
    return Disables(condition) && DeviceOf(condition) == WithoutSharing(device);
  });
  return found == conditions_.end() ? nullptr : &*found;
}

void DeviceFaults::AddTo(dra::GpuOfDriver& gpu,
                         const std::map<std::string, std::string>& unserved) const {
  constexpr const char* kUnserved = "MpsDaemonNotServing";
  if (unserved.contains(gpu.uuid)) {
    gpu.device_faults[MpsDeviceOf(dra::DeviceNameOf(gpu.index))] = kUnserved;
  }
  for (const auto& [id, instance] : devices_) {
    if (id.first != gpu.index || !unserved.contains(instance.uuid)) continue;
    gpu.device_faults[MpsDeviceOf(instance.device)] = kUnserved;
  }
  if (const HealthCondition* fault = FaultOf(gpu.index)) gpu.fault = fault->Reason();
  for (const HealthCondition& condition : conditions_) {
    const std::string device = DeviceOf(condition);
    if (condition.gpu != gpu.index || device.empty() || !Disables(condition)) continue;
    gpu.device_faults[device] = condition.Reason();
  }
}

std::vector<kubelet::DeviceHealth> DeviceFaults::HealthOf(
    const std::vector<dra::GpuOfDriver>& gpus) const {
  std::vector<kubelet::DeviceHealth> health;
  for (const dra::GpuOfDriver& gpu : gpus) {
    for (const dra::DriverDevice& device : dra::DevicesOf(gpu)) {
      kubelet::DeviceHealth& one = health.emplace_back(kubelet::DeviceHealth{device.name});
      const HealthCondition* fault = FaultOf(gpu.index);
      if (fault == nullptr) fault = FaultOf(device.name);
      one.healthy = fault == nullptr && gpu.fault.empty();
      if (!one.healthy) one.message = fault != nullptr ? fault->message : gpu.fault;
    }
  }
  return health;
}

std::vector<std::string> DeviceFaults::Unused(const PreparedClaims& prepared) const {
  std::vector<std::string> unused;
  for (const HealthCondition& condition : conditions_) {
    std::string device = DeviceOf(condition);
    if (device.empty() || !Disables(condition)) continue;
    const bool used = std::ranges::any_of(prepared, [&](const auto& claim) {
      return std::ranges::any_of(claim.second.devices, [&](const ClaimedDevice& one) {
        return WithoutSharing(one.device) == device;
      });
    });
    if (!used) unused.push_back(std::move(device));
  }
  return unused;
}

}  // namespace nos::agent
