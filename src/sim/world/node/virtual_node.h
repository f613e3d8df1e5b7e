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
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
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
#include "sim/world/node/pod_status.h"

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
  enum class Stage { kAdmitted, kRunning, kStopping, kFinished };
  struct RunningPod {
    std::shared_ptr<const cluster::Pod> pod;
    Stage stage = Stage::kAdmitted;
    Time admitted{};
    std::vector<kubelet::DeviceAssignment> devices;  // empty once stopped
    std::vector<std::string> ending;                 // init containers; empty once they have ended
    bool prepared = false;                           // its claims, if it has any
    PodStatusInput status;
    std::optional<Time> next;  // end of the stage
    // Time of a refusal for lack of devices although a scheduler had sent the pod.
    std::optional<Time> refused;
    bool write_status = false;
    bool remove_object = false;
  };

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
  void Avoid(const std::map<std::string, std::string>& users) override { avoided_ = users; }
  Result<std::map<std::string, bool>> Read() override;

  // Stops everything at once; the node answers again after KubeletTimes::boot.
  void Reboot();
  bool down() const { return down_until_.has_value(); }
  // Removes the node, including its API object.
  void Remove();
  bool removed() const { return removed_; }

  // The pod ("ns/name") gets exactly these devices at admission. For the initial state of a scene.
  void Pin(const std::string& pod, std::vector<std::string> device_ids) {
    pinned_[pod] = std::move(device_ids);
  }

  // The driver that serves claims here; it must outlive the object.
  void SetClaimDriver(ClaimDriver* driver) { claims_.SetDriver(driver); }

  const NodeSpec& spec() const { return spec_; }
  // By uid. The pods that really run here, whatever the API server has recorded so far.
  const std::map<std::string, RunningPod>& pods() const { return pods_; }
  // The devices that may be allocated, including those already held.
  const std::set<kubelet::OfferedDevice>& offered() const { return offered_; }
  // Called with each device at the moment when it is withdrawn.
  void OnWithdrawal(std::function<void(const kubelet::OfferedDevice&)> call) {
    on_withdrawal_ = std::move(call);
  }
  // The pod whose containers have a device, whatever the kubelet takes for free; null if none.
  const RunningPod* Holder(std::string_view device_id) const;
  // A pod that has the device through a claim; null if none.
  const RunningPod* ClaimHolder(std::string_view uuid) const;

 private:
  using PodPtr = std::shared_ptr<const cluster::Pod>;
  using Devices = std::vector<kubelet::DeviceAssignment>;
  // Reason and message.
  using Refusal = std::pair<std::string, std::string>;

  void StartKubelet();
  bool BootIfDue();
  bool TakeChange();
  void OnPod(const PodPtr& pod);
  void OnGone(const std::string& uid);
  void Admit(const PodPtr& pod);
  std::optional<Refusal> CheckResources(const cluster::Pod& pod) const;
  // All or none.
  std::optional<Refusal> TakeDevices(const cluster::Pod& pod, Devices& taken);
  bool IsAllocated(std::string_view device_id) const;
  bool IsInUse(const std::string& device_id) const;
  std::vector<std::string> FreeDevices(const cluster::Pod& pod, std::string_view resource);
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
  Random random_;
  KubeletTimes times_;
  std::unique_ptr<kube::Cache<cluster::Pod>> cache_;
  std::deque<std::pair<PodPtr, PodPtr>> changes_;  // before, after
  std::map<std::string, RunningPod> pods_;
  std::set<kubelet::OfferedDevice> offered_;
  std::set<std::string> ever_offered_;  // resources
  // The users of devices that the plugin named last (DevicePlugin::Avoid).
  std::map<std::string, std::string> avoided_;
  std::function<void(const kubelet::OfferedDevice&)> on_withdrawal_;
  std::map<std::string, std::vector<std::string>> pinned_;
  bool registered_ = false, removed_ = false;
  std::optional<Time> down_until_;
  std::string uid_;  // of the node object, once written
  Time retry_at_{}, status_at_{}, lease_at_{}, ready_since_{};
  uint32_t next_pod_ip_ = 1;
};

}  // namespace nos::sim
