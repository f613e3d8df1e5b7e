// The agent of one node. It offers the node's MIG devices to the kubelet, partitions the GPUs as
// the node's spec annotations request, and reports the actual state.
//
// Each call performs at most one device operation and observes everything again before it. An
// instance is destroyed in these steps:
//  1. The node's allocatable stops counting it, so that schedulers send no more pods for it.
//  2. A moment later, if no pod bound to the node needs it, it leaves the offer to the kubelet.
//  3. It is destroyed if neither the kubelet's pod-resources nor a bound pod needs it.
// Step 3 waits for pods that were already being admitted when the instance left the offer, because
// the kubelet may have chosen it for one of them. The agent writes the node's allocatable itself:
// the kubelet would write it only at its next sync, up to 10 s after the offer
// (nodeStatusUpdateFrequency). The plan id is acknowledged when the plan has been applied or has
// ended otherwise. Parts that could not be applied are in cluster::kPlanResult and in an Event.
// Owned by one thread.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/node/devices.h"
#include "agent/node/drains.h"
#include "agent/node/failures.h"
#include "agent/node/mps_requirements.h"
#include "agent/node_modes.h"
#include "base/metrics.h"
#include "device/actuator.h"
#include "device/backend.h"
#include "device/health.h"
#include "device/mps_control.h"
#include "gpu/catalogue.h"
#include "gpu/modes.h"
#include "kube/event_recorder.h"
#include "kubelet/device_plugin.h"
#include "kubelet/pod_resources.h"
#include "reconcile/plan_result.h"
#include "reconcile/reconciler.h"

namespace nos::agent {

struct AgentConfig {
  // Interval of looking at devices and kubelet without an event: neither of them sends
  // notifications.
  Duration poll = std::chrono::seconds(10);
  // While the kubelet still assigns devices to pods that have ended, or has not adopted the last
  // offer, the agent looks again after pauses that grow from the first to the second value.
  Duration first_look = std::chrono::milliseconds(10);
  Duration catch_up = std::chrono::seconds(1);
  // Time between the change of the node's allocatable and the withdrawal of devices, for schedulers
  // that have not seen the change yet.
  Duration settle = std::chrono::milliseconds(200);
  // The same if the agent may not write allocatable and the kubelet does not change it.
  Duration drain_timeout = std::chrono::seconds(15);
  // How long a GPU that cannot be read keeps its last known state.
  Duration unreadable = std::chrono::seconds(5);
  // A failed operation is retried with growing pauses. After this many failures the plan is
  // reported as ended without it; retries continue.
  int failures_before_giving_up = 5;
  Duration first_pause = std::chrono::milliseconds(500);
  Duration longest_pause = std::chrono::seconds(60);
  // How long a GPU that could not be reset keeps its mode: after the first failure, and at most.
  Duration first_reset_pause = std::chrono::minutes(1);
  Duration longest_reset_pause = std::chrono::hours(1);
};

// Optional parts of an agent. Null disables the part.
struct AgentExtras {
  const device::GpuHealth* health = nullptr;
  Metrics* metrics = nullptr;
  // The backend can share GPUs by MPS if the node's label requests it.
  bool shares_gpus = false;
  device::MpsControl* daemons = nullptr;  // of shared GPUs
  MpsPodRequirements mps_needs{};         // requirements of pods with shares
  // The backend can give GPUs as a whole, and in this number of time slices (0: none), if the
  // node's label requests hybrid partitioning. Requires the device plugin of nos.
  bool gives_whole = false;
  int time_slices = 0;
  ResetRule resets = ResetRule::kNever;  // reset rule for GPUs of hybrid nodes
  // Shares are offered and numbered by Nebuly's device plugin (agent/nebuly_plugin.h).
  bool nebuly_shares = false;
  // The parts into which MIG instances may be divided there if GPUs are shared by MPS.
  std::vector<gpu::InstancePart> parts{};
};

// Condition of the node: True if a reboot would change the MIG mode of a GPU.
inline constexpr std::string_view kRebootRequired = "nos.nebuly.com/RebootRequired";
// Condition of the node: "True" if its GPUs are healthy; "False" with the problems otherwise.
inline constexpr std::string_view kGpusHealthy = "nos.nebuly.com/GpusHealthy";

class Agent final : public reconcile::Reconciler {
 public:
  // All references and pointers must outlive this.
  Agent(AgentConfig config, std::string node, const gpu::Catalogue& catalogue,
        device::Backend& backend, kubelet::PodResources& pod_resources,
        kubelet::DevicePlugin& device_plugin, AgentExtras extras = {});

  // Key: the node's name. REQUIRES: a view of this node and of the pods bound to it (ForNode).
  reconcile::ReconcileResult Reconcile(const std::string& key, const reconcile::Listers& view,
                                       kube::Client& client, const Clock& clock) override;

  // Call it before the offer ends with the process. It sets the devices in allocatable to 0, so
  // that no scheduler sends pods that the kubelet would reject without a device plugin. The next
  // plugin to register restores the counts.
  Status Leave(const reconcile::Listers& view, kube::Client& client);

 private:
  using Node = std::shared_ptr<const cluster::Node>;
  using Pods = std::vector<std::shared_ptr<const cluster::Pod>>;
  // The state that one call works with.
  struct ObservedState {
    Node node;
    NodeDevices devices;
    bool managed = false;
    std::vector<device::Target> targets;
    std::set<std::string> keep;                   // UUIDs that must not be destroyed
    std::map<std::string, std::string> unwanted;  // UUID -> resource of free instances to destroy
    std::map<std::string, std::set<std::string>>
        pending_admission;                  // pods being admitted, by resource
    std::vector<gpu::Obstacle> unreadable;  // parts of the spec that cannot be read
    std::vector<MpsViolation> lacks;        // unmet requirements of pods with shares
    bool kubelet_lags = false;              // its answers do not match the pods
    std::optional<Duration> look_again;     // when to check that the kubelet has adopted the offer
    // An operation waits for a pod that is being admitted or a GPU that currently cannot be read.
    bool waits = false;
  };

  static bool WantsMps(const cluster::Node& node);
  bool IsHybrid(const cluster::Node& node) const;
  SharingSettings SharingSettingsOf(const cluster::Node& node, Time now);
  bool IsNoted(const device::Operation& operation, const ObservedState& round) const;
  static bool OnlyTakesBack(const device::Operation& operation, const ObservedState& round);
  void FindStalePendingModes(const ObservedState& round);
  std::optional<device::Operation> NextTakeBack(
      const ObservedState& round,
      const std::function<bool(const device::Operation&)>& deferred) const;
  Status ApplyOrReset(const device::Operation& operation, const ObservedState& round);
  void KeepMode(const device::Operation& operation, const Status& error, const ObservedState& round,
                Time now);
  gpu::Obstacle BadSpec(const cluster::Gpu& gpu, const ObservedState& round) const;
  Status ReportReboot(const ObservedState& round, kube::Client& client, Time now);
  std::vector<device::GpuInfo> InfosToSwitch(const ObservedState& round, Time now) const;
  Node NodeNow(const reconcile::Listers& view);
  Result<ObservedState> Assess(Node node, const Pods& pods, Time now);
  void LeaveOldModes(ObservedState& round);
  std::set<std::string> WereShared(const ObservedState& round) const;
  std::optional<device::Operation> NextPutBack(
      const ObservedState& round,
      const std::function<bool(const device::Operation&)>& deferred) const;
  std::set<int> NotTakenOver(const ObservedState& round) const;
  void KeepDaemons(ObservedState& round);
  void AddDividedInstances(ObservedState& round, std::vector<device::MpsGpu>& served,
                           std::set<std::string>& undecided);
  void WithholdUnserved(ObservedState& round) const;
  bool MustEndDaemon(const device::Operation& operation, ObservedState& round);
  bool IsServed(const std::string& gpu_uuid) const;
  bool IsBeingServed(int gpu) const;
  void ReadTargets(ObservedState& round);
  void MatchTargets(ObservedState& round) const;
  std::set<std::string> GivenUp(const ObservedState& round) const;
  Status Offer(ObservedState& round, kube::Client& client, Time now);
  bool InOffer(const std::string& uuid) const;
  std::map<std::string, int64_t> CountsFor(const ObservedState& round) const;
  Status ShowCounts(ObservedState& round, kube::Client& client, const Clock& clock);
  Result<bool> OfferTaken(ObservedState& round);
  Status ReadUncached(ObservedState& round, kube::Client& client, Time now);
  bool Draining(const std::string& uuid, Time now) const;
  bool IsAwaited(const std::string& uuid, const ObservedState& round, Time now) const;
  bool LeftAlone(const device::Operation& operation, const ObservedState& round) const;
  bool MustWait(const device::Operation& operation, ObservedState& round, Time now) const;
  device::Progress Decide(ObservedState& round, Time now);
  Result<bool> StillFree(const device::Operation& operation, ObservedState& round,
                         kube::Client& client, Time now);
  reconcile::ReconcileResult Act(const device::Operation& operation, ObservedState& round,
                                 kube::Client& client, const Clock& clock);
  reconcile::ReconcileResult Rest(const device::Progress& progress, const ObservedState& round,
                                  bool offered, kube::Client& client, Time now);
  reconcile::PlanResult ResultOf(const device::Progress& progress,
                                 const ObservedState& round) const;
  Status Report(const ObservedState& round, const std::optional<reconcile::PlanResult>& result,
                kube::Client& client);
  void Announce(const ObservedState& round, const reconcile::PlanResult& result,
                kube::Client& client, Time now);
  void AnnounceProblems(const ObservedState& round, kube::Client& client, Time now);
  void AnnounceLacks(const ObservedState& round, kube::Client& client, Time now);
  void AnnounceOffer(const ObservedState& round, const Status& offered, kube::Client& client,
                     Time now);
  Status ReportHealth(const ObservedState& round, kube::Client& client, Time now);
  Status Perform(const device::Operation& operation, const ObservedState& round);
  void Measure(const ObservedState& round) const;
  void Say(kube::Client& client, const cluster::Node& node, kube::EventType type,
           std::string_view reason, std::string_view message, Time now);

  AgentConfig config_;
  std::string node_;
  const gpu::Catalogue& catalogue_;
  device::Backend& backend_;
  kubelet::PodResources& pod_resources_;
  kubelet::DevicePlugin& device_plugin_;
  AgentExtras extras_;
  kube::EventRecorder events_{"nos-agent"};
  Holders holders_;  // as last observed
  LastRead last_read_;
  Drains drains_;
  Failures failures_;
  Node written_;  // our last write, newer than the cache
  // The offer that the kubelet has confirmed.
  std::optional<std::vector<kubelet::OfferedDevice>> offered_;
  int lags_ = 0;                // consecutive calls with a lagging kubelet
  int looks_ = 0;               // checks whether the kubelet has adopted this offer
  bool offer_changed_ = false;  // the node does not show the new offer yet
  // For each UUID that has left the offer: the pods that were being admitted at that time.
  std::map<std::string, std::set<std::string>> awaited_by_;
  std::set<std::string> resources_;  // resources that were ever offered
  // By resource: the count that we last wrote into the node.
  std::map<std::string, int64_t> figures_;
  std::string plan_;                      // plan id of the spec, as last seen
  std::string announced_;                 // the last result published as an Event
  std::vector<std::string> problems_;     // published as Events
  std::vector<MpsViolation> told_lacks_;  // published as Events
  std::string offer_trouble_;             // published as an Event
  // UUIDs of divided instances whose last part is about to be destroyed: their daemons are stopped
  // first.
  std::set<std::string> ending_;
  std::set<std::string> leaving_;  // UUIDs of GPUs whose daemons were asked to stop
  std::set<int> no_mig_;           // GPUs of a hybrid node on which MIG mode cannot be enabled
  ResetPauses reset_pauses_;
  // UUIDs of GPUs with a pending MIG mode from before this agent started, while resets are not
  // allowed: the pending mode is cancelled. No value: not observed yet.
  std::optional<std::set<std::string>> stale_pending_modes_;
};

}  // namespace nos::agent
