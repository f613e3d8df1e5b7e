// Rules of a device plugin that chooses and names its devices itself. The agent asks them wherever
// it decides about devices, and knows no plugin by name.
//
//   round.unreadable = rules.MatchTargets(round.targets, round.devices);
//   round.keep = rules.Keep(std::move(round.keep), round.devices);
//
// Each default is the rule of a plugin that offers any device the agent lists. A plugin overrides
// them, as NebulyPlugin does, and its strategy returns them (DevicePluginStrategy::rules). Called
// by the agent's thread.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "agent/node/devices.h"
#include "device/actuator.h"

namespace nos::agent {

class DeviceRules {
 public:
  virtual ~DeviceRules() = default;

  // Replaces the placements of targets by devices that the plugin can offer. Returns the parts of
  // the spec that it cannot offer.
  virtual std::vector<gpu::Obstacle> MatchTargets(std::vector<device::Target>& /*targets*/,
                                                  const NodeDevices& /*devices*/) const {
    return {};
  }
  // The ids of the devices that stay if `ids` must stay.
  virtual std::set<std::string> Keep(std::set<std::string> ids,
                                     const NodeDevices& /*devices*/) const {
    return ids;
  }
  // The devices as the node's status shows them.
  virtual NodeDevices Shown(NodeDevices devices) const { return devices; }
  // The ids of `unwanted` (id -> resource) that a plugin which cannot withdraw single devices
  // (DevicePlugin::Withdraws) leaves out of its next offer.
  virtual std::set<std::string> LeftOut(
      const std::map<std::string, std::string>& /*unwanted*/) const {
    return {};
  }
};

}  // namespace nos::agent
