// Devices that could not be prepared for a claim: the next allocations try them last.
//
//   SuspectDevices suspects;
//   suspects.Add(claim.uid, DeviceId::Of(device), now + minutes(10));
//   const std::set<DeviceId> avoided = suspects.Of({claim.uid, pod.meta.uid});
//   const SuspectsLast ranking(least_loss, avoided);              // for AllocationOptions
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "dra/allocator.h"
#include "dra/objects.h"

namespace nos::dra {

struct DeviceId {
  Name driver, pool, device;
  static DeviceId Of(const AllocatedDevice& device) {
    return {device.driver, device.pool, device.device};
  }
  std::string ToString() const;
  friend auto operator<=>(const DeviceId&, const DeviceId&) = default;
};

// Remembers at most kMax devices. Beyond that it forgets the one that ends first.
class SuspectDevices {
 public:
  static constexpr size_t kMax = 1024;

  // `owner`: the uid of the claim, or of the pod.
  void Add(const std::string& owner, const DeviceId& device, Time until);
  // Forgets devices that were to be remembered until `now`.
  void Forget(Time now);
  std::set<DeviceId> Of(const std::vector<std::string>& owners) const;
  bool empty() const { return by_end_.empty(); }

 private:
  std::map<std::string, std::map<DeviceId, Time>> by_owner_;
  std::set<std::pair<Time, std::pair<std::string, DeviceId>>> by_end_;
};

// The order of another ranking, but for these devices, which come last.
class SuspectsLast final : public DeviceRanking {
 public:
  // Refers to both.
  SuspectsLast(const DeviceRanking& others, const std::set<DeviceId>& suspects)
      : others_(others), suspects_(suspects) {}
  void Rank(const NodeView& view, std::span<const DeviceChoice> chosen,
            std::vector<DeviceChoice>& devices) const override;
  DeviceLoss LossOf(const NodeView& view, std::span<const DeviceChoice> chosen) const override {
    return others_.LossOf(view, chosen);
  }

 private:
  const DeviceRanking& others_;
  const std::set<DeviceId>& suspects_;
};

}  // namespace nos::dra
