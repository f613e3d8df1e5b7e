// Decides whether free devices could serve claims, without allocator, selectors or snapshot: it
// tries every choice of devices. It is deliberately simple, because it checks the others.
//
//   NodeDevices devices(slices, rules, claims, "n1");
//   if (devices.CouldServe({&asked})) ...
//
// Plain values.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/quantity.h"
#include "codec/json.h"

namespace nos::sim {

// Devices of one kind.
struct AskedDevices {
  std::string device_class;
  std::string profile;  // of MIG devices; "": any
  int count = 1;
  bool tolerates = false;  // every taint
  int64_t gib = 0;         // capacity of a shared device; 0: the device itself
};

// A claim as the simulation draws it.
struct AskedClaim {
  // For each request its alternatives.
  std::vector<std::vector<AskedDevices>> requests;
  bool same_gpu = false;  // all its devices are instances of one GPU
  bool hostile = false;   // it need not be served
};

// The devices of a node that no claim has.
class NodeDevices {
 public:
  // All ResourceSlices and DeviceTaintRules of the cluster; the allocated claims. A pool that is
  // incomplete or contradicts itself has no devices.
  NodeDevices(const std::vector<Json>& slices, const std::vector<Json>& rules,
              const std::vector<Json>& claims, const std::string& node);

  // False also if that is not clear after kMaxSteps choices.
  bool CouldServe(const std::vector<const AskedClaim*>& claims);

  static constexpr int kMaxSteps = 200'000;

 private:
  using Amounts = std::map<std::string, Quantity>;
  struct Device {
    std::string device_class, profile, parent;
    bool tainted = false, shared = false, used = false;
    Amounts consumes;   // counters
    Quantity capacity;  // that is left of a shared device
  };
  // A point of the search.
  struct At {
    size_t claim = 0, request = 0;
    const AskedDevices* asked = nullptr;  // the alternative
    int left = 0;                         // devices that it still needs
    size_t from = 0;                      // first device to try
    std::string parent;                   // of the claim's devices so far
  };

  void AddPool(const std::vector<const Json*>& slices, const std::vector<Json>& rules);
  void Use(const Json& result);
  bool Fits(const Device& device, const AskedClaim& claim, const At& at) const;
  void Take(Device& device, const AskedDevices& asked, int sign);
  bool NextRequest(const std::vector<const AskedClaim*>& claims, At at);
  bool NextDevice(const std::vector<const AskedClaim*>& claims, const At& at);

  std::map<std::string, Device> devices_;  // by "driver/pool/name"
  Amounts left_;                           // of counters
  std::vector<Device*> order_;
  int steps_ = 0;
};

}  // namespace nos::sim
