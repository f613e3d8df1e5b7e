#include "dra/suspect_devices.h"

#include <algorithm>

#include "dra/pools/node_view.h"

namespace nos::dra {

std::string DeviceId::ToString() const {
  return driver.str() + "/" + pool.str() + "/" + device.str();
}

void SuspectDevices::Add(const std::string& owner, const DeviceId& device, Time until) {
  const auto [known, fresh] = by_owner_[owner].try_emplace(device, until);
  if (!fresh) by_end_.erase({known->second, {owner, device}});
  known->second = until;
  by_end_.insert({until, {owner, device}});
  if (by_end_.size() > kMax) Forget(by_end_.begin()->first);
}

void SuspectDevices::Forget(Time now) {
  while (!by_end_.empty() && by_end_.begin()->first <= now) {
    const auto& [owner, device] = by_end_.begin()->second;
    const auto of_owner = by_owner_.find(owner);
    of_owner->second.erase(device);
    if (of_owner->second.empty()) by_owner_.erase(of_owner);
    by_end_.erase(by_end_.begin());
  }
}

std::set<DeviceId> SuspectDevices::Of(const std::vector<std::string>& owners) const {
  std::set<DeviceId> devices;
  for (const std::string& owner : owners) {
    const auto of_owner = by_owner_.find(owner);
    if (of_owner == by_owner_.end()) continue;
    for (const auto& [device, until] : of_owner->second) devices.insert(device);
  }
  return devices;
}

void SuspectsLast::Rank(const NodeView& view, std::span<const DeviceChoice> chosen,
                        std::vector<DeviceChoice>& devices) const {
  others_.Rank(view, chosen, devices);
  std::ranges::stable_partition(devices, [&](const DeviceChoice& choice) {
    const ViewDevice& at = view.devices[choice.index];
    const PoolId& pool = view.pools[at.pool].id;
    return !suspects_.contains({pool.driver, pool.pool, view.Find(at).device->name});
  });
}

}  // namespace nos::dra
