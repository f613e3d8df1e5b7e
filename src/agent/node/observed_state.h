// The node as one reconciliation sees it, and the layout that its spec requests. A value: each
// reconciliation starts with a new one, and a device operation ends it.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "agent/node/devices.h"
#include "agent/node/requested_mode.h"
#include "cluster/objects.h"
#include "device/actuator.h"

namespace nos::agent {

// A pod that requests devices and probably cannot use them.
struct PodViolation {
  std::string ns, name, uid;
  std::string reason, message;  // of the Event
  friend bool operator==(const PodViolation&, const PodViolation&) = default;
};

struct ObservedState {
  std::shared_ptr<const cluster::Node> node;
  RequestedMode mode;  // requested by the node's label
  NodeDevices devices;
  bool managed = false;
  // The node's GPUs are for ResourceClaims, or claims still have devices: free devices leave the
  // offer to the kubelet, and this agent changes no GPU.
  bool claims = false;
  std::vector<device::Target> targets;
  std::set<std::string> keep;                   // UUIDs that must not be destroyed
  std::map<std::string, std::string> unwanted;  // UUID -> resource of free instances to destroy
  // Pods being admitted, by resource.
  std::map<std::string, std::set<std::string>> pending_admission;
  std::vector<gpu::Obstacle> unreadable;  // parts of the spec that cannot be read
  std::vector<PodViolation> violations;   // unmet requirements of pods
  bool kubelet_lags = false;              // its answers do not match the pods
  // An operation waits for a pod that is being admitted or a GPU that currently cannot be read.
  bool waits = false;
};

}  // namespace nos::agent
