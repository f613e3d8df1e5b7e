// Which devices of ResourceClaims on this node are unfit for work, and why.
//
// The driver reports a fault for a GPU or for a MIG instance. Only a claim that was prepared shows
// which device an instance is; that is remembered, because an instance outlives its claim. Devices
// that claims share have the faults of what they share, and those of its MPS daemon.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "agent/claims/checkpoint.h"
#include "device/health.h"
#include "dra/gpu_slices.h"
#include "kubelet/dra_driver.h"

namespace nos::agent {

// For one thread.
class DeviceFaults {
 public:
  void Update(std::vector<device::HealthCondition> conditions, const PreparedClaims& prepared,
              const std::vector<dra::GpuOfDriver>& gpus);

  // The last conditions that Update was called with.
  const std::vector<device::HealthCondition>& conditions() const { return conditions_; }
  // Sets the faults of the GPU and of its devices. Without conditions `gpu.fault` stays as it is.
  // `unserved`: UUIDs of GPUs and instances whose MPS daemon should serve, and does not.
  void AddTo(dra::GpuOfDriver& gpu, const std::map<std::string, std::string>& unserved) const;
  // The health of all devices of these GPUs.
  std::vector<kubelet::DeviceHealth> HealthOf(const std::vector<dra::GpuOfDriver>& gpus) const;
  // Devices whose instance has a fault and that no claim uses: another instance may be fit.
  std::vector<std::string> Unused(const PreparedClaims& prepared) const;

 private:
  // The device of an instance; "": not known.
  std::string DeviceOf(const device::HealthCondition& condition) const;
  const device::HealthCondition* FaultOf(int gpu) const;
  const device::HealthCondition* FaultOf(const std::string& device) const;

  std::vector<device::HealthCondition> conditions_;
  // A placement, and the UUID of its instance.
  struct Instance {
    std::string device, uuid;
  };
  std::map<std::pair<int, uint32_t>, Instance> devices_;  // by GPU and the driver's instance id
};

}  // namespace nos::agent
