// The agent of one node: offers its MIG devices to the kubelet, cuts the GPUs as the node's spec
// asks, and reports what is there.
//
// One device operation a call, everything observed afresh before it. Before an instance is
// destroyed
//  1. the node's allocatable stops counting it, so that no scheduler sends another pod for it;
//  2. a moment later, if no pod bound to the node needs it, it leaves the kubelet's offer;
//  3. it is destroyed if then neither the kubelet's pod-resources nor a bound pod needs it.
// 3 waits for the pods that were on their way in when it left the offer: the kubelet may have
// chosen it for one of them. The agent writes the node's allocatable itself, as the kubelet would
// at its next sync, which comes up to 10 s after the offer (nodeStatusUpdateFrequency). The plan id
// is acknowledged when the plan is applied or has come to an end otherwise; what could not be
// applied is in cluster::kPlanResult and in an Event. One owner thread.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/metrics.h"
#include "agent/node/drains.h"
#include "agent/node/failures.h"
#include "agent/node/mps_needs.h"
#include "agent/node/devices.h"
#include "agent/node_modes.h"
#include "reconcile/plan_result.h"
#include "reconcile/reconciler.h"
#include "device/actuator.h"
#include "device/backend.h"
#include "device/health.h"
#include "device/mps_control.h"
#include "gpu/catalogue.h"
#include "gpu/modes.h"
#include "kube/event_recorder.h"
#include "kubelet/device_plugin.h"
#include "kubelet/pod_resources.h"

namespace nos::agent {

struct AgentConfig {
  // Looks at devices and kubelet this often even if no event calls: neither of them notifies.
  Duration poll = std::chrono::seconds(10);
  // While the kubelet still counts devices to pods that have ended, or has not taken over what it
  // has read: pauses that grow from the one to the other.
  Duration first_look = std::chrono::milliseconds(10);
  Duration catch_up = std::chrono::seconds(1);
  // Between the node's new figure and taking devices away: for schedulers that have not seen it
  // yet.
  Duration settle = std::chrono::milliseconds(200);
  // The same where the agent may not write that figure, and the kubelet never does.
  Duration drain_timeout = std::chrono::seconds(15);
  // So long a GPU that cannot be read counts as what it was.
  Duration unreadable = std::chrono::seconds(5);
  // A failing operation is retried with growing pauses; after so many failures the plan counts as
  // ended without it (retries go on).
  int failures_before_giving_up = 5;
  Duration first_pause = std::chrono::milliseconds(500);
  Duration longest_pause = std::chrono::seconds(60);
  // A GPU that could not be reset keeps its mode so long: the first time, and at most.
  Duration first_reset_pause = std::chrono::minutes(1);
  Duration longest_reset_pause = std::chrono::hours(1);
};

// What an agent may have besides; null: it goes without.
struct AgentExtras {
  const device::HealthBoard* health = nullptr;
  Metrics* metrics = nullptr;
  // The backend shares GPUs by MPS where the node's label asks for that.
  bool shares_gpus = false;
  device::MpsControl* daemons = nullptr;  // of GPUs that are shared
  MpsNeeds mps_needs{};                   // of pods that get shares
  // The backend gives GPUs whole, and in so many time slices (0: none), where the node's label asks
  // for hybrid; only with a plugin of our own.
  bool gives_whole = false;
  int time_slices = 0;
  ResetRule resets = ResetRule::kNever;  // of GPUs of such nodes
  // Shares are Nebuly's plugin's, which numbers them (agent/nebuly_plugin.h).
  bool nebuly_shares = false;
  // Into which MIG instances may be divided there, if GPUs are shared by MPS.
  std::vector<gpu::InstancePart> parts{};
};

// The node's condition that tells whether a reboot would change the MIG mode of some GPU.
inline constexpr std::string_view kRebootRequired = "nos.nebuly.com/RebootRequired";
// The node's condition that tells whether its GPUs are well: "True", or "False" and what is wrong.
inline constexpr std::string_view kGpusHealthy = "nos.nebuly.com/GpusHealthy";

class Agent final : public reconcile::Reconciler {
 public:
  // All references and pointers must outlive this.
  Agent(AgentConfig config, std::string node, const gpu::Catalogue& catalogue,
        device::Backend& backend, kubelet::PodResources& pod_resources,
        kubelet::DevicePlugin& device_plugin, AgentExtras extras = {});

  // Key: the node's name. Needs a view of this node and of the pods bound to it (ForNode).
  reconcile::Outcome Reconcile(const std::string& key, const reconcile::View& view, kube::Client& client,
                    const Clock& clock) override;

  // Before the offer ends with the process: no scheduler is to send pods that the kubelet would
  // refuse for want of a plugin. Whoever offers next counts the devices again.
  Status Leave(const reconcile::View& view, kube::Client& client);

 private:
  using Node = std::shared_ptr<const cluster::Node>;
  using Pods = std::vector<std::shared_ptr<const cluster::Pod>>;
  // What one call works with.
  struct Round {
    Node node;
    NodeDevices devices;
    bool managed = false;
    std::vector<device::Target> targets;
    std::set<std::string> keep;                                 // UUIDs not to be destroyed
    std::map<std::string, std::string> unwanted;                // UUID -> resource: free, and to go
    std::map<std::string, std::set<std::string>> on_their_way;  // pods, by resource
    std::vector<gpu::Obstacle> unreadable;                   // parts of the spec
    std::vector<MpsLack> lacks;                                 // of pods with shares
    bool kubelet_lags = false;           // it tells what does not agree with the pods
    std::optional<Duration> look_again;  // whether the kubelet has taken over the offer
    // Something to do, for a pod on its way in or a GPU that cannot be read at the moment.
    bool waits = false;
  };

  static bool WantsMps(const cluster::Node& node);
  bool IsHybrid(const cluster::Node& node) const;
  Division DivisionOf(const cluster::Node& node, Time now);
  bool IsNoted(const device::Operation& operation, const Round& round) const;
  static bool OnlyTakesBack(const device::Operation& operation, const Round& round);
  void FindLeftNotes(const Round& round);
  std::optional<device::Operation> NextTakeBack(
      const Round& round, const std::function<bool(const device::Operation&)>& deferred) const;
  Status ApplyOrReset(const device::Operation& operation, const Round& round);
  void KeepMode(const device::Operation& operation, const Status& error, const Round& round,
                Time now);
  gpu::Obstacle BadSpec(const cluster::Gpu& gpu, const Round& round) const;
  Status ReportReboot(const Round& round, kube::Client& client, Time now);
  std::vector<device::GpuInfo> InfosToSwitch(const Round& round, Time now) const;
  Node NodeNow(const reconcile::View& view);
  Result<Round> Assess(Node node, const Pods& pods, Time now);
  void LeaveOldModes(Round& round);
  std::set<std::string> WereShared(const Round& round) const;
  std::optional<device::Operation> NextPutBack(
      const Round& round, const std::function<bool(const device::Operation&)>& deferred) const;
  std::set<int> NotTakenOver(const Round& round) const;
  void KeepDaemons(Round& round);
  void AddDividedInstances(Round& round, std::vector<device::MpsGpu>& served,
                           std::set<std::string>& undecided);
  void WithholdUnserved(Round& round) const;
  bool MustEndDaemon(const device::Operation& operation, Round& round);
  bool IsServed(const std::string& gpu_uuid) const;
  bool IsBeingServed(int gpu) const;
  void ReadTargets(Round& round);
  void MatchTargets(Round& round) const;
  std::set<std::string> GivenUp(const Round& round) const;
  Status Offer(Round& round, kube::Client& client, Time now);
  bool InOffer(const std::string& uuid) const;
  std::map<std::string, int64_t> CountsFor(const Round& round) const;
  Status ShowCounts(Round& round, kube::Client& client, const Clock& clock);
  Result<bool> OfferTaken(Round& round);
  Status LookPastCaches(Round& round, kube::Client& client, Time now);
  bool Draining(const std::string& uuid, Time now) const;
  bool IsAwaited(const std::string& uuid, const Round& round, Time now) const;
  bool LeftAlone(const device::Operation& operation, const Round& round) const;
  bool MustWait(const device::Operation& operation, Round& round, Time now) const;
  device::Progress Decide(Round& round, Time now);
  Result<bool> StillFree(const device::Operation& operation, Round& round, kube::Client& client,
                         Time now);
  reconcile::Outcome Act(const device::Operation& operation, Round& round, kube::Client& client,
              const Clock& clock);
  reconcile::Outcome Rest(const device::Progress& progress, const Round& round, bool offered,
               kube::Client& client, Time now);
  reconcile::PlanResult ResultOf(const device::Progress& progress, const Round& round) const;
  Status Report(const Round& round, const std::optional<reconcile::PlanResult>& result, kube::Client& client);
  void Announce(const Round& round, const reconcile::PlanResult& result, kube::Client& client, Time now);
  void AnnounceProblems(const Round& round, kube::Client& client, Time now);
  void AnnounceLacks(const Round& round, kube::Client& client, Time now);
  void AnnounceOffer(const Round& round, const Status& offered, kube::Client& client, Time now);
  Status ReportHealth(const Round& round, kube::Client& client, Time now);
  Status Perform(const device::Operation& operation, const Round& round);
  void Measure(const Round& round) const;
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
  Holders holders_;  // as last seen
  LastRead last_read_;
  Drains drains_;
  Failures failures_;
  Node written_;                                                // newer than what the cache shows
  std::optional<std::vector<kubelet::OfferedDevice>> offered_;  // what the kubelet has confirmed
  int lags_ = 0;                                                // looks at a kubelet that lags
  int looks_ = 0;                                               // at the kubelet, for this offer
  bool offer_changed_ = false;                                  // and the node does not show it yet
  // By UUID of what has left the offer: pods that were on their way in.
  std::map<std::string, std::set<std::string>> awaited_by_;
  std::set<std::string> resources_;         // ever offered
  std::map<std::string, int64_t> figures_;  // by resource: what we last wrote into the node
  std::string plan_;                        // the spec's, as last seen
  std::string announced_;                   // the last result in an Event
  std::vector<std::string> problems_;       // announced
  std::vector<MpsLack> told_lacks_;         // announced
  std::string offer_trouble_;               // announced
  // Divided instances, by UUID, whose last part is about to be destroyed: their daemons end before.
  std::set<std::string> ending_;
  std::set<std::string> leaving_;  // GPUs, by UUID, whose daemons have been told to end
  std::set<int> no_mig_;           // GPUs of a hybrid node whose MIG mode could not be switched on
  ResetPauses reset_pauses_;
  // UUIDs of GPUs for which a MIG mode has waited since before this agent, which may not reset
  // them: to be taken back. Nothing: it has not looked yet.
  std::optional<std::set<std::string>> left_notes_;
};

}  // namespace nos::agent
