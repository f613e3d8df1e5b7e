// The part of a kubelet that knows the devices of the node's plugins and gives them to pods
// (pkg/kubelet/cm/devicemanager).
//
//   DeviceManager devices(spec, random);
//   devices.Offer(offered);
//   if (auto refusal = devices.Allocate(pod, running, taken)) ...
//
// One thread.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "kubelet/device_plugin.h"
#include "sim/specs.h"
#include "sim/world/node/running_pod.h"
#include "sim/world/node/status.h"

namespace nos::sim {

// Reason and message.
using AdmissionRefusal = std::pair<std::string, std::string>;

class DeviceManager {
 public:
  // `claims`: resources that no plugin has belong to claims.
  DeviceManager(bool claims, Random random) : claims_(claims), random_(random) {}

  // Replaces the offered devices; returns whether that changed anything.
  bool Offer(const std::vector<kubelet::OfferedDevice>& devices);
  // Forgets them, as after a restart, but not the names of their resources.
  void Forget() { offered_.clear(); }
  // The users of devices, as the plugin names them (DevicePlugin::Avoid): uids by id.
  void Avoid(const std::map<std::string, std::string>& users) { avoided_ = users; }
  // The pod ("ns/name") gets exactly these devices.
  void Pin(const std::string& pod, std::vector<std::string> device_ids) {
    pinned_[pod] = std::move(device_ids);
  }
  // Called with each device at the moment when it is withdrawn.
  void OnWithdrawal(std::function<void(const kubelet::OfferedDevice&)> call) {
    on_withdrawal_ = std::move(call);
  }

  // Gives the pod all the devices that it requests, or none. `pods`: those that run here.
  std::optional<AdmissionRefusal> Allocate(const cluster::Pod& pod, const RunningPods& pods,
                                           std::vector<kubelet::DeviceAssignment>& taken);

  // The devices that may be allocated, including those already held.
  const std::set<kubelet::OfferedDevice>& offered() const { return offered_; }
  // By resource, with those that were offered once and are no more.
  std::map<std::string, DeviceCount> Count() const;

 private:
  std::vector<std::string> Free(const cluster::Pod& pod, const RunningPods& pods,
                                std::string_view resource);
  bool IsInUse(const std::string& device_id, const RunningPods& pods) const;

  const bool claims_;
  Random random_;
  std::set<kubelet::OfferedDevice> offered_;
  std::set<std::string> ever_offered_;  // resources
  std::map<std::string, std::string> avoided_;
  std::function<void(const kubelet::OfferedDevice&)> on_withdrawal_;
  std::map<std::string, std::vector<std::string>> pinned_;
};

}  // namespace nos::sim
