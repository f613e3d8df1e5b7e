// What a kubelet's device manager remembers: which devices plugins offer, and which containers hold
// them. Pure, but for the text of its checkpoint.
//
// Source of the rules: k8s.io/kubernetes, pkg/kubelet/cm/devicemanager (manager.go,
// pod_devices.go, checkpoint).
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/status.h"

namespace nos::doubles {

using Ids = std::set<std::string>;

struct Holding {
  std::string ns, pod, container, resource;
  Ids ids;
};

struct ResourceCount {
  int64_t capacity = 0, allocatable = 0;
  friend bool operator==(const ResourceCount&, const ResourceCount&) = default;
};

class DeviceLedger {
 public:
  // A plugin's newest list.
  void SetDevices(const std::string& resource, Ids healthy, Ids unhealthy);
  // Its plugin has gone: everything is unhealthy.
  void MarkUnhealthy(const std::string& resource);
  void Forget(const std::string& resource);

  // Takes devices for a container; they are held from here on, so that another pod does not get
  // them while the plugin is asked. Error: kExhausted, in the kubelet's words.
  // `preferred` are taken if they are so many, and free.
  Result<Ids> Reserve(const std::string& resource, int64_t count, const Ids& preferred = {});
  // Healthy ones that nobody holds.
  Ids Free(const std::string& resource) const;
  void Release(const Ids& ids);
  // What was reserved belongs to this container.
  void Record(Holding holding);
  void Remove(const std::string& ns, const std::string& pod);

  const std::vector<Holding>& holdings() const { return holdings_; }
  std::map<std::string, ResourceCount> Counts() const;
  std::map<std::string, Ids> Healthy() const;

  // The shape of the kubelet's own file: {"Data":{"PodDeviceEntries":[...],
  // "RegisteredDevices":{...}}}. The double has no pod UIDs: "namespace/name" stands in their
  // place.
  std::string WriteCheckpoint() const;
  // What is held comes back; devices are unknown until plugins register. Error: kInvalid.
  Status ReadCheckpoint(const std::string& text);

 private:
  struct Devices {
    Ids healthy, unhealthy;
  };
  std::map<std::string, Devices> devices_;
  Ids reserved_;  // held or about to be
  std::vector<Holding> holdings_;
};

}  // namespace nos::doubles
