// The part of a kubelet that serves the claims of pods (pkg/kubelet/cm/dra): has their devices
// prepared by the node's driver before the containers of a pod start, and unprepared after the
// containers of the last pod with the claim have stopped.
//
// One thread.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/objects.h"
#include "kube/client.h"
#include "sim/world/node/claim_driver.h"

namespace nos::sim {

class ClaimManager {
 public:
  // `client` must outlive the object.
  explicit ClaimManager(kube::Client& client) : client_(client) {}

  // Null: the node has no driver. The driver must outlive the object.
  void SetDriver(ClaimDriver* driver) { driver_ = driver; }

  // The time until the devices are ready. Error: try again; a claim is missing, belongs to another
  // pod, is not allocated or not reserved for the pod, or the driver refuses.
  Result<Duration> Prepare(const cluster::Pod& pod);
  // The time until the pod's devices are free; zero if it has none. Error: try again.
  Result<Duration> Unprepare(const std::string& pod_uid);
  // Names of the devices that are prepared for the pod.
  std::vector<std::string> DevicesOf(const std::string& pod_uid) const;
  // True if a claim of the pod has the device with this UUID.
  bool HasDevice(const std::string& pod_uid, std::string_view uuid) const;
  // The node has rebooted.
  void Forget() { prepared_.clear(); }

 private:
  Result<Json> ClaimFor(const cluster::Pod& pod, const std::string& name, bool made);
  Result<Duration> PrepareOne(const cluster::Pod& pod, const std::string& name, bool made);

  kube::Client& client_;
  ClaimDriver* driver_ = nullptr;
  std::map<std::string, std::set<std::string>> prepared_;  // uids of pods by uid of the claim
};

}  // namespace nos::sim
