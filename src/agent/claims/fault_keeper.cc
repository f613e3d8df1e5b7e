#include "agent/claims/fault_keeper.h"

#include <algorithm>

namespace nos::agent {

void FaultKeeper::Follow(std::vector<device::HealthCondition> conditions, ClaimDriver& driver,
                         const std::vector<dra::GpuOfDriver>& gpus, Time now) {
  const PreparedClaims prepared = driver.prepared();
  if (conditions != faults_.conditions()) publish_next_ = now;
  faults_.Update(std::move(conditions), prepared, gpus);
  const std::vector<std::string> unused = faults_.Unused(prepared);
  std::erase_if(discard_next_, [&](const auto& entry) {
    return std::ranges::find(unused, entry.first) == unused.end();
  });
  for (const std::string& device : unused) {
    Time& next = discard_next_[device];
    if (next > now) continue;
    next = now + options_.retry;
    driver.Discard(device);
  }
}

void FaultKeeper::Publish(kubelet::DraPluginServer& server,
                          const std::vector<dra::GpuOfDriver>& gpus, Time now) {
  publish_next_ = now + options_.health;
  server.PublishHealth(options_.pool, faults_.HealthOf(gpus), now, 3 * options_.health);
}

}  // namespace nos::agent
