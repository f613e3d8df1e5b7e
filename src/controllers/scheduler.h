// Binds pods to nodes, as kube-scheduler does. It takes pending pods by priority, then by age,
// filters and scores nodes with the framework of the pod's profile, and binds the pod. An
// unschedulable pod gets the condition PodScheduled=False, Unschedulable with the reason. It is
// tried again only after a cluster event that could make it schedulable.
//
// If the framework includes the GpuPartitioning plugin, a pod may be placed on a node whose MIG
// instances do not exist yet. Exact instances are then reserved for the pod, the node's agent is
// asked to create them (partition_requests.h), and the pod is bound when the kubelet offers them.
//
// From the decision to the binding a pod is assumed on its node and its resources are reserved.
// Every failure on the way releases them. A bound pod stays reserved until the watch shows it. If a
// Bind call is not answered, the pod is read back from the API server.
//
//   Scheduler scheduler(config, {{"nos-scheduler", &framework}}, catalogue, threads);
//   reconcile::Runner runner(scheduler, transport, {.watch_context = true});
//   while (runner.Step(clock)) {
//   }                     // then wait for runner.NextDue() or for threads.wake
//   scheduler.Retire();   // leadership is lost; a successor may start once IsQuiet()
//
// Owned by one thread, which makes all decisions. API calls run on Workers if there are any.
// Without Workers the owner makes them itself, one after the other, in a reproducible order.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/back_off.h"
#include "controllers/gangs.h"
#include "controllers/scheduler/attempt_metrics.h"
#include "controllers/scheduler/binding_cycle.h"
#include "controllers/scheduler/departed_pods.h"
#include "controllers/scheduler/gang_bindings.h"
#include "controllers/scheduler/gang_placer.h"
#include "controllers/scheduler/partition_requests.h"
#include "controllers/scheduler/pod_placer.h"
#include "controllers/scheduler/preemption/agent_waits.h"
#include "controllers/scheduler/preemption/foreign_nominations.h"
#include "controllers/scheduler/preemption/nominations.h"
#include "controllers/scheduler/preemption/preemptor.h"
#include "controllers/scheduler/preemption/terminating_pods.h"
#include "controllers/scheduler/profile.h"
#include "controllers/scheduler/status_reporter.h"
#include "dra/device_index.h"
#include "gpu/catalogue.h"
#include "kube/workers.h"
#include "reconcile/reconciler.h"
#include "scheduling/engine.h"
#include "scheduling/queue.h"

namespace nos::controllers {

struct SchedulerConfig {
  scheduling::QueueOptions queue;
  // Back-off before a pod is read back whose binding was not answered.
  BackOff asks{std::chrono::seconds(1), std::chrono::seconds(10)};
  // How long a node's agent may take to report that the instances of evicted pods are free.
  Duration agent_timeout = std::chrono::seconds(30);
  // After the start: how long a binding that an earlier leader sent may take to be seen. Leases
  // expire after 15 s, and a request that was sent before is answered or lost soon after.
  Duration takeover_timeout = std::chrono::seconds(30);
  size_t decisions_per_call = 500;  // then new events are handled
  size_t max_bindings = 256;        // in flight
  // Limit of pods that wait for PreBind. Beyond it, a pod that would have to wait is requeued.
  size_t max_preparing = 10'000;
  PartitionRequests::Options partition_requests{};
  // Most GPUs are partitioned by then.
  Duration report_partitioning_after = std::chrono::seconds(10);
  // Conditions, and as many Events, written per call. Fewer while pods are being bound: bindings
  // take precedence at the API server, too.
  size_t reports_per_call = 16;
  size_t reports_beside_bindings = 2;
  size_t remedies_per_call = 1;  // kinds of pods for which a remedy is searched
  // How often remedies are searched while pods are to be decided or are being bound.
  Duration remedies_beside_bindings_every = std::chrono::seconds(1);
  // Limit of pending conditions. Beyond it, the condition is written at the pod's next refusal.
  size_t max_reports = 100'000;
  // Time from a pod's first refusal to its first Event FailedScheduling. The condition comes at
  // once.
  Duration warn_after = std::chrono::seconds(30);
  // Time from a refusal in the words of the pod's condition to a new search of its remedy.
  Duration refresh_remedies_after = std::chrono::seconds(30);
};

// Makes the scheduler leave its API calls to other threads.
struct SchedulerThreads {
  kube::Workers* binders = nullptr;
  kube::Workers* reporter = nullptr;  // with one thread
  std::function<void()> wake{};       // called from any thread when Reconcile has something to do
};

class Scheduler final : public reconcile::Reconciler {
 public:
  // Frameworks, catalogue and metrics (null: none are kept) must outlive this object. The workers
  // must outlive the calls posted to them. `devices`: what a stand-by knows of the cluster's
  // devices, by the same catalogue; null: nothing.
  Scheduler(SchedulerConfig config, std::vector<SchedulerProfile> profiles,
            const gpu::Catalogue& catalogue, const SchedulerThreads& threads = {},
            Metrics* metrics = nullptr, std::shared_ptr<dra::DeviceIndex> devices = nullptr);
  ~Scheduler() override;

  // Key: kClusterKey. Needs Listers::changes.
  reconcile::ReconcileResult Reconcile(const std::string& key, const reconcile::Listers& view,
                                       kube::Client& client, const Clock& clock) override;

  // Stops all further decisions, because another replica takes over. Pods with a node whose binding
  // was not started are left to that replica.
  void Retire() { retired_ = true; }
  // True if a successor sees everything in the API server: no Bind call, eviction or patch of a
  // plan for an agent is in flight. Bound pods count as in flight until the watch shows them.
  bool IsQuiet() const {
    return bindings_.size() == bindings_.preparing() && !terminating_.HasEvicted() &&
           partition_requests_.AreShown(engine_.snapshot());
  }

  const scheduling::SchedulingQueue& queue() const { return queue_; }
  // Pods that have a node, but are not yet seen as bound there.
  size_t bindings() const { return bindings_.size(); }
  // Pods without object for which GPUs are held (DepartedPods).
  size_t departed() const { return departed_.size(); }
  // The cluster as the scheduler assumes it, including reservations for pods not yet bound.
  const cluster::ClusterSnapshot& snapshot() const { return engine_.snapshot(); }

 private:
  using Pod = std::shared_ptr<const cluster::Pod>;
  using Node = std::shared_ptr<const cluster::Node>;

  // Counts pods that came and left, to know when precomputed inputs of scores are outdated.
  struct Churn {
    size_t changes = 1, pods = 0;
  };

  BindingCycle::Callbacks BindingCallbacks();
  void ApplyWatchEvents(const reconcile::Listers& view, Time now);
  void ApplyEverything(const reconcile::Listers& view, Time now);
  void ApplyNode(const Node& before, const Node& after, Time now);
  void ApplyPod(const Pod& before, const Pod& after, Time now);
  // Forgets what is known of a pod that is not pending any more. `gone`: it is deleted or replaced.
  void OnNotPending(const Pod& pod, bool gone, Time now);
  void Enqueue(const Pod& before, const Pod& pod, const SchedulerProfile& profile, Time now);
  void NotifyQueue(const Pod& before, const Pod& after, Time now);
  void CollectResults(Time now);
  // Schedules the pod again after a failure. The capacity that it held may help other pods.
  void OnRollback(const BindingCycle::Rollback& rollback, Time now);
  void ExpireTimeouts(Time now);
  void ExpireNodeBackoff(Time now);
  void RetryForOverdue(Time now);
  void Released(const std::vector<Pod>& departed, Time now);
  void PrecomputeIfDue();
  bool HasRoomForDecisions() const;
  void ScheduleOne(const Pod& pod, kube::Client& client, Time now);
  void Refuse(const Pod& pod, const scheduling::Diagnosis& diagnosis, kube::Client& client,
              Time now);
  // No effect if the pod has a node.
  void RetryNominated(const std::string& node);
  void TryAgain(const std::string& key, Time now);
  StatusReporter::Load Load() const { return {queue_.ready() > 0, bindings_.IsBinding()}; }
  reconcile::ReconcileResult Rest(Time now) const;

  const SchedulerConfig config_;
  const Profiles profiles_;
  scheduling::Engine engine_;
  scheduling::SchedulingQueue queue_;
  PartitionRequests partition_requests_;
  Gangs gangs_;
  SchedulerMetrics metrics_;
  BindingCycle bindings_;
  TerminatingPods terminating_;
  DepartedPods departed_;
  AgentWaits waits_;
  Nominations nominations_;
  ForeignNominations foreign_;
  Preemptor preemptor_;
  StatusReporter status_;
  PodPlacer placer_;
  GangPlacer gang_placer_;
  GangBindings gang_bindings_;
  Churn churn_;
  bool retired_ = false;
};

}  // namespace nos::controllers
