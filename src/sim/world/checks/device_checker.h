// Invariant checker for claims in the API server: no device is given twice, no counter of a pool is
// exceeded, and every device that a claim gets is announced in a ResourceSlice. It knows nothing of
// GPUs and shares no code with the allocator.
//
//   DeviceChecker judge(api);
//   judge.Watch(now);                         // after each step of the world
//   for (std::string& problem : judge.TakeProblems()) ...
//
// One thread.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/quantity.h"
#include "cluster/objects.h"
#include "kube/cache.h"
#include "kube/client.h"

namespace nos::sim {

class DeviceChecker {
 public:
  explicit DeviceChecker(kube::Transport& api);
  DeviceChecker(const DeviceChecker&) = delete;
  DeviceChecker& operator=(const DeviceChecker&) = delete;

  void Watch(Time now);
  std::vector<std::string> TakeProblems();
  // Number of devices that claims have now.
  int allocated() const { return static_cast<int>(holders_.size()); }
  // The devices of a claim ("ns/name") as "pool/device", sorted.
  std::vector<std::string> DevicesOf(const std::string& claim) const;

 private:
  struct Kept {
    cluster::ObjectMeta meta;
    Json object;
  };
  using KeptPtr = std::shared_ptr<const Kept>;
  using Amounts = std::map<std::string, Quantity>;  // by "driver/pool/set/counter"
  struct Device {
    std::string driver, pool, name;
    Amounts consumes;  // while the claim has it
    std::string Key() const { return driver + "/" + pool + "/" + name; }
  };

  static Status Keep(JsonSource json, Kept& to);
  void OnSlice(const KeptPtr& before, const KeptPtr& after);
  void OnClaim(const std::string& key, const KeptPtr& after);
  void Give(const std::string& claim, Device device);
  void TakeBack(const std::string& claim);

  kube::Client client_;
  kube::Cache<Kept> slices_, claims_;
  std::map<std::string, Amounts> announced_;  // consumption by key of the device
  Amounts limits_, used_;
  std::map<std::string, std::string> holders_;          // claim by key of the device
  std::map<std::string, std::vector<Device>> devices_;  // by claim
  std::vector<std::string> problems_;
};

}  // namespace nos::sim
