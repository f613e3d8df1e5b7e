// Invariant checker for claims in the API server: no device is given twice, no counter of a pool
// and no capacity of a shared device is exceeded, an allocation never changes, and every device
// that a claim gets is announced in a ResourceSlice. It knows nothing of GPUs and shares no code
// with the allocator. A scheduler may learn late that a device is gone: it counts for
// kFaultsLinger.
//
//   DeviceChecker checker(api);
//   checker.Watch(now);                         // after each step of the world
//   for (std::string& problem : checker.TakeProblems()) ...
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
    bool shared = false;  // with other claims: `consumes` is capacity of the device
    Amounts consumes;     // while the claim has it
    std::string Key() const { return driver + "/" + pool + "/" + name; }
  };
  // A device as slices describe it.
  struct Announced {
    std::map<std::string, Amounts> by_slice;  // consumption of counters
    Amounts last;                             // of the last slice that announced it
    Amounts capacity;
    Time gone{};  // REQUIRES: by_slice is empty
  };

  static Status Keep(JsonSource json, Kept& to);
  void OnSlice(const KeptPtr& before, const KeptPtr& after);
  void OnClaim(const std::string& key, const KeptPtr& after);
  void Give(const std::string& claim, Device device);
  void Consume(const std::string& claim, const Device& device);
  void TakeBack(const std::string& claim);

  kube::Client client_;
  kube::Cache<Kept> slices_, claims_;
  Time now_{};
  std::map<std::string, Announced> announced_;  // by key of the device
  Amounts limits_, used_;
  std::map<std::string, std::string> holders_;          // claim by key of the device
  std::map<std::string, std::vector<Device>> devices_;  // by claim
  std::map<std::string, Json> results_;                 // of allocations, by claim
  std::vector<std::string> problems_;
};

}  // namespace nos::sim
