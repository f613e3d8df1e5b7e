// A node without a machine: simulates the kubelet towards the API server, the agent and the pods
// bound to it. Its GPUs are simulated elsewhere; this class allocates their devices to pods.
//
// Behaviour of the real kubelet that it simulates:
// - Bound pods are admitted in the order of arrival. Each container gets the requested number of
//   devices of each extended resource, any that are offered and not held. A pod that cannot get
//   them fails for good: "UnexpectedAdmissionError" for devices, "OutOfcpu" and the like for other
//   resources (kubernetes pkg/kubelet/cm/devicemanager, pkg/kubelet/lifecycle).
// - A device is held from admission until the pod's containers have stopped. But if the pod's
// object
//   is gone before, as after a deletion by force, the kubelet takes its devices for free at once,
//   and only the pod's cgroup shows that it still runs (kubernetes 1.34.2,
//   pkg/kubelet/kubelet_pods.go, GetActivePods). The plugin refuses the allocation of such a device
//   if it knows its user (kubelet/device_plugin_server.h).
// - The pod resources API does not report devices that init containers have beyond those of the
// others; they are free
//   once the init containers have ended, although a real kubelet keeps them for the pod (kubernetes
//   pkg/kubelet/cm/devicemanager).
// - A pod with resource claims starts only after all its claims are allocated, reserved for it and
//   prepared by the node's driver; until then it stays in ContainerCreating and is tried again
//   every KubeletTimes::claims_retry. It has ended only after its claims are unprepared.
// - Allocatable and capacity follow the offered devices, but only at the next sync
//   (KubeletTimes::sync); a resource that is no longer offered drops to 0.
// - Its Lease in kube-node-lease is renewed every 10 s.
// - A pod runs for the time in its annotation (specs.h), then succeeds; a deleted pod stops, then
//   its object is removed.
// - After a reboot the kubelet has no state: bound pods are admitted again with the devices offered
//   by then.
//
// Every write to the API server is repeated until it is answered; a write to an object that no
// longer exists is dropped. One thread.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "kube/cache.h"
#include "kube/client.h"
#include "kubelet/device_plugin.h"
#include "kubelet/pod_cgroups.h"
#include "kubelet/pod_resources.h"
#include "sim/specs.h"
#include "sim/world/events/actor.h"
#include "sim/world/events/log.h"
#include "sim/world/node/claim_manager.h"
#include "sim/world/node/device_manager.h"
#include "sim/world/node/running_pod.h"

namespace nos::sim {

struct KubeletTimes {
  Duration start = std::chrono::milliseconds(1500);  // from admission to running
  Duration stop = std::chrono::seconds(1);           // from deletion to stopped containers
  Duration boot = std::chrono::seconds(45);
  Duration sync = std::chrono::seconds(10);      // nodeStatusUpdateFrequency: writes changes
  Duration heartbeat = std::chrono::minutes(5);  // nodeStatusReportFrequency: writes an unchanged
                                                 // status
  Duration retry = std::chrono::seconds(1);      // after a failed request
  // backOffPeriod of pkg/kubelet: after a failed attempt to start or end a pod.
  Duration claims_retry = std::chrono::seconds(10);
};

class VirtualNode final : public Actor,
                          public kubelet::DevicePlugin,
                          public kubelet::PodResources,
                          public kubelet::PodCgroups {
 public:
  // Registers the node at the first step. The references must outlive the object.
  VirtualNode(NodeSpec spec, kube::Transport& transport, const Clock& clock, EventLog& log,
              Random random, KubeletTimes times = {});

  const std::string& name() const override { return spec_.name; }
  bool Step() override;
  std::optional<Time> NextWake() const override;

  Status Offer(const std::vector<kubelet::OfferedDevice>& devices) override;
  Result<std::vector<kubelet::DeviceAssignment>> List() override;
  Result<std::vector<kubelet::ClaimAssignment>> ListClaims() override;
  Result<std::vector<kubelet::OfferedDevice>> Allocatable() override;
  void Avoid(const std::map<std::string, std::string>& users) override { devices_.Avoid(users); }
  Result<std::map<std::string, bool>> Read() override;

  // Stops everything at once; the node answers again after KubeletTimes::boot.
  void Reboot();
  bool down() const { return down_until_.has_value(); }
  // Removes the node, including its API object.
  void Remove();
  bool removed() const { return removed_; }

  // For the initial state of a scene (Pin), and for checkers.
  DeviceManager& devices() { return devices_; }
  const DeviceManager& devices() const { return devices_; }

  // The driver that serves claims here; it must outlive the object.
  void SetClaimDriver(ClaimDriver* driver) { claims_.SetDriver(driver); }

  const NodeSpec& spec() const { return spec_; }
  // The pods that really run here, whatever the API server has recorded so far.
  const RunningPods& pods() const { return pods_; }
  // The pod whose containers have a device, whatever the kubelet takes for free; null if none.
  const RunningPod* Holder(std::string_view device_id) const;
  // A pod that has the device through a claim; null if none.
  const RunningPod* ClaimHolder(std::string_view uuid) const;

 private:
  using PodPtr = std::shared_ptr<const cluster::Pod>;
  using Stage = RunningPod::Stage;

  void StartKubelet();
  bool BootIfDue();
  bool TakeChange();
  void OnPod(const PodPtr& pod);
  void OnGone(const std::string& uid);
  void Admit(const PodPtr& pod);
  std::optional<AdmissionRefusal> CheckResources(const cluster::Pod& pod) const;
  void Stop(RunningPod& pod);
  bool Advance();
  void EndStage(const std::string& uid, RunningPod& pod);
  bool SettleClaims(const std::string& uid, RunningPod& pod);
  void StartContainers(RunningPod& pod);
  bool Write();
  Status WritePod(RunningPod& pod);
  Status WriteNode();
  Status WriteLease();
  bool Answered(const Status& status, std::string_view what);

  NodeSpec spec_;
  kube::Client client_;
  ClaimManager claims_{client_};
  const Clock& clock_;
  EventLog& log_;
  DeviceManager devices_;
  KubeletTimes times_;
  std::unique_ptr<kube::Cache<cluster::Pod>> cache_;
  std::deque<std::pair<PodPtr, PodPtr>> changes_;  // before, after
  RunningPods pods_;
  bool registered_ = false, removed_ = false;
  std::optional<Time> down_until_;
  std::string uid_;  // of the node object, once written
  Time retry_at_{}, status_at_{}, lease_at_{}, ready_since_{};
  uint32_t next_pod_ip_ = 1;
};

}  // namespace nos::sim
