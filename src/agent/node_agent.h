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
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/claim_interface.h"
#include "agent/conditions.h"
#include "agent/device_rules.h"
#include "agent/loop/device_offer.h"
#include "agent/loop/operation_runner.h"
#include "agent/loop/status_reporter.h"
#include "agent/node/observed_state.h"
#include "agent/node/observer.h"
#include "agent/sharing_modes.h"
#include "base/metrics.h"
#include "device/actuator.h"
#include "device/backend.h"
#include "device/health.h"
#include "gpu/catalogue.h"
#include "kubelet/device_plugin.h"
#include "kubelet/pod_cgroups.h"
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
  // Times of IsNeeded: for schedulers, and the limit for bound pods. Kubernetes kills the process
  // 30 seconds after it was asked to end.
  Duration leave_settle = std::chrono::seconds(1);
  Duration leave_limit = std::chrono::seconds(15);
};

// Optional parts of an agent. Null disables the part.
struct AgentExtras {
  const device::GpuHealth* health = nullptr;
  Metrics* metrics = nullptr;
  // Rules of a device plugin that names its devices itself. Null: it offers any device.
  const DeviceRules* rules = nullptr;
  SharingModes modes = AllSharingModes();
  // Condition kDeviceHandover of the device plugin; no function: none.
  std::function<std::optional<reconcile::WantedCondition>()> handover{};
  // Cgroups of pods, which show whether a deleted pod has ended.
  kubelet::PodCgroups* cgroups = nullptr;
  // Serves ResourceClaims on nodes with label cluster::kInterfaceLabel.
  ClaimInterface* claims = nullptr;
};

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
  // After Leave, with a current view: true while the process has to serve the kubelet. Schedulers
  // need time to see the counts, and a pod that is bound already fails for good if no plugin
  // answers when the kubelet admits it. Ends after a limit, because a kubelet may admit nothing.
  bool IsNeeded(const reconcile::Listers& view, Duration since_leave) const;

 private:
  using Pods = std::vector<std::shared_ptr<const cluster::Pod>>;

  Result<ObservedState> Assess(std::shared_ptr<const cluster::Node> node, const Pods& pods,
                               Time now);
  void ReadTargets(ObservedState& round) const;
  bool LeavesToClaims(const cluster::Node& node) const;
  bool IsFreeOfPods(const ObservedState& round, Time now) const;
  reconcile::ReconcileResult RestForClaims(const ObservedState& round, kube::Client& client,
                                           Time now);
  std::set<int> NotTakenOver(const ObservedState& round) const;
  bool Recovers(int gpu) const;
  gpu::Obstacle BadSpec(const cluster::Gpu& gpu, const NodeDevices& devices) const;
  Status ReadUncached(ObservedState& round, kube::Client& client, Time now);
  Status OfferDevices(ObservedState& round, kube::Client& client, Time now);
  Status UpdateAllocatable(ObservedState& round, kube::Client& client, const Clock& clock);
  reconcile::ReconcileResult Act(const device::Operation& operation, ObservedState& round,
                                 kube::Client& client, const Clock& clock);
  reconcile::ReconcileResult Rest(const device::Progress& progress, const ObservedState& round,
                                  bool offered, kube::Client& client, Time now);
  Status Report(const ObservedState& round, const std::optional<reconcile::PlanResult>& result,
                kube::Client& client, Time now);
  bool HandoverFails() const;
  Status ReportHandover(const cluster::Node& node, kube::Client& client, Time now);
  std::vector<cluster::Gpu> ReportedGpus(const ObservedState& round) const;
  reconcile::PlanResult ResultOf(const device::Progress& progress,
                                 const ObservedState& round) const;

  const AgentConfig config_;
  const gpu::Catalogue& catalogue_;
  const AgentExtras extras_;
  const DeviceRules& rules_;
  Observer observer_;
  const SharingModes& modes_;
  DeviceOffer offer_;
  OperationRunner runner_;
  StatusReporter reporter_;
  std::string plan_;  // plan id of the spec, as last seen
  int lags_ = 0;      // consecutive calls with a lagging kubelet
};

}  // namespace nos::agent
