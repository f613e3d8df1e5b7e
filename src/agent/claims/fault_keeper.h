// Acts on faults of devices: instances that have one are destroyed once no claim uses them, and the
// kubelet gets the health of all devices, again and again, because it forgets what is old.
//
//   faults.Follow(conditions, driver, gpus, now);
//   faults.Publish(server, gpus, now);
#pragma once

#include <map>
#include <string>
#include <vector>

#include "agent/claims/device_faults.h"
#include "agent/claims/driver.h"
#include "base/clock.h"
#include "device/health.h"
#include "kubelet/dra_plugin_server.h"

namespace nos::agent {

struct FaultKeeperOptions {
  std::string pool;                            // of the devices
  Duration retry = std::chrono::seconds(5);    // of a destruction
  Duration health = std::chrono::seconds(10);  // kubelets 1.34 and 1.35 forget it after 30 s
};

// For one thread.
class FaultKeeper {
 public:
  explicit FaultKeeper(FaultKeeperOptions options) : options_(std::move(options)) {}

  // Takes over the conditions, and begins the destruction of unused instances that have a fault.
  void Follow(std::vector<device::HealthCondition> conditions, ClaimDriver& driver,
              const std::vector<dra::GpuOfDriver>& gpus, Time now);
  const DeviceFaults& faults() const { return faults_; }

  // Publish at this time at the latest; earlier after Follow has brought news.
  Time NextPublication() const { return publish_next_; }
  void Publish(kubelet::DraPluginServer& server, const std::vector<dra::GpuOfDriver>& gpus,
               Time now);

 private:
  const FaultKeeperOptions options_;
  DeviceFaults faults_;
  std::map<std::string, Time> discard_next_;  // by device with a fault: when to try (again)
  Time publish_next_{};
};

}  // namespace nos::agent
