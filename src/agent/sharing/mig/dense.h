// Which MIG devices the kubelet should choose: on as few GPUs as possible, and on the fullest of
// them, so that whole GPUs stay free.
//
//   DenseChoice dense;
//   dense.Look(round.devices);                      // the agent's thread, each round
//   std::vector<std::string> ids = dense.Prefer(choice);   // a thread of the device plugin
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "agent/node/devices.h"
#include "kubelet/device_plugin_server.h"

namespace nos::agent {

class DenseChoice {
 public:
  void Look(const NodeDevices& devices);
  // The devices of `must_include`, and others up to `size`. Empty if a device is not one that
  // the last Look has seen, as an instance of a MIG profile.
  std::vector<std::string> Prefer(const kubelet::Choice& choice) const;

 private:
  struct Device {
    int gpu = 0;
    int slots = 0;  // placement slots
    std::string resource;
    bool held = false;
  };
  // Slots in use on each GPU. The kubelet knows better than the last Look which devices of the
  // resource are free.
  std::map<int, int> Used(const kubelet::Choice& choice) const;

  mutable std::mutex mutex_;               // guards all members below
  std::map<std::string, Device> devices_;  // by UUID
};

}  // namespace nos::agent
