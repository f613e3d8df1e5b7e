// The state of a kubelet's device manager: devices offered by plugins, and the containers that hold
// them. Pure, except for the text of its checkpoint.
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
  // Replaces a plugin's list.
  void SetDevices(const std::string& resource, Ids healthy, Ids unhealthy);
  // Its plugin has disconnected: all devices become unhealthy.
  void MarkUnhealthy(const std::string& resource);
  void Forget(const std::string& resource);

  // Reserves devices for a container, so that another pod does not get them while the plugin is
  // asked. Error: kExhausted, in the kubelet's words.
  // `preferred` is used if it has the right number of free devices.
  Result<Ids> Reserve(const std::string& resource, int64_t count, const Ids& preferred = {});
  // Healthy devices without a holder.
  Ids Free(const std::string& resource) const;
  void Release(const Ids& ids);
  // Assigns the reserved devices to this container.
  void Record(Holding holding);
  void Remove(const std::string& ns, const std::string& pod);

  const std::vector<Holding>& holdings() const { return holdings_; }
  std::map<std::string, ResourceCount> Counts() const;
  std::map<std::string, Ids> Healthy() const;

  // The format of the kubelet's own file: {"Data":{"PodDeviceEntries":[...],
  // "RegisteredDevices":{...}}}. The double has no pod UIDs: "namespace/name" is used instead.
  std::string WriteCheckpoint() const;
  // Restores the holders; devices are unknown until plugins register. Error: kInvalid.
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
