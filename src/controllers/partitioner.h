// The partitioner decides how the GPUs of all managed nodes are partitioned, from the pending pods.
//
// It collects pods that the scheduler could not place (PodScheduled=False, Unschedulable) and that
// request MIG slices. It waits for a short time so that one plan serves many pods, plans
// (planning::MakePlan), and patches the changed nodes with their new layouts and a plan id. The
// agent of a node repartitions its GPUs and acknowledges the plan. Until then the requested layout
// is assumed to be the layout of the node, and the node gets no other plan. If the acknowledgement
// does not arrive before the deadline, the node counts as its status reports it and backs off; so
// does a node whose patch is refused. Each back-off in a row is longer. Slices planned for a pod
// stay reserved for it until the pod is bound or a deadline passes.
//
// A pod that a scheduler has nominated to a node from which others are leaving is not planned for
// until they have left. The GPUs that are to serve it are kept for it (pending/awaited_gpus.h).
//
// Pods that their quota does not admit are not planned for (plan_within_quotas.h). Their condition
// has the reason Quota.
//
// A gang (gangs.h) gets slices for enough of its members, or none, provided that the runner watches
// the kinds that define gangs (WatchingGangs). The reservation of a member stays valid while enough
// members have a reservation or a node.
//
// Spec annotations that no agent can carry out are removed from a node when they are first seen
// (repairs.h).
//
// Decisions are published in decisions() and in Events on nodes and pods. A pod that the
// partitioner cannot help gets the condition kPartitionedCondition with a machine-readable reason.
// Owned by one thread.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/metrics.h"
#include "cluster/snapshot.h"
#include "controllers/partitioner/batch.h"
#include "controllers/partitioner/pending_plans.h"
#include "controllers/partitioner/repairs.h"
#include "controllers/pending/event_queue.h"
#include "controllers/pending/planned_quotas.h"
#include "controllers/pending/slice_reservations.h"
#include "controllers/plan_within_quotas.h"
#include "controllers/planned_gangs.h"
#include "gpu/catalogue.h"
#include "planning/plan.h"
#include "reconcile/pace.h"
#include "reconcile/read_your_writes.h"
#include "reconcile/reconciler.h"

namespace nos::scheduling {
class Framework;
}

namespace nos::controllers {

struct PartitionerConfig {
  planning::Objective objective = planning::Objective::kPods;
  // A plan is made when no pod has joined the batch for `batch_idle`, at the latest `batch_timeout`
  // after its first pod.
  Duration batch_idle = std::chrono::milliseconds(300);
  Duration batch_timeout = std::chrono::seconds(3);
  // Time limit of one planning run; the best plan found by then is used.
  Duration plan_timeout = std::chrono::seconds(5);
  Duration plan_ack_timeout = std::chrono::seconds(60);
  // Lifetime of a slice reservation if the pod is not bound.
  Duration slice_reservation_timeout = std::chrono::seconds(60);
  Duration hold_after = std::chrono::minutes(10);
  Duration max_pause = std::chrono::minutes(10);  // upper limit of every back-off
  size_t writes_per_call = 50;  // conditions and Events, or repaired nodes, before control returns
  Duration repair_pause = std::chrono::seconds(1);  // back-off of a node after its first repair
  size_t remembered_decisions = 1000;
  // Names of schedulers that have GPUs partitioned for their own pods. The partitioner ignores
  // these pods.
  std::set<std::string, std::less<>> partitioning_schedulers = {};
};

// The planned partitioning of one GPU, or an occurrence on a node.
struct Decision {
  uint64_t sequence = 0;  // 1, 2, ...
  Time time;
  std::string plan_id, node;
  int gpu = -1;                   // -1: the whole node
  std::string before, after;      // "3g.20gb@4,1g.5gb@0"
  std::vector<std::string> pods;  // pods that get the new slices ("ns/name")
  std::string note;  // "" for a plan; else "applied", "partial: ...", "no answer for 60s", ...
};

class Partitioner final : public reconcile::Reconciler {
 public:
  // The frameworks, `catalogue` and `metrics` must outlive this. A null `metrics` disables metrics.
  Partitioner(const PartitionerConfig& config, scheduling::FrameworkChoice frameworks,
              const gpu::Catalogue& catalogue, Metrics* metrics = nullptr);

  // Key: kClusterKey.
  reconcile::ReconcileResult Reconcile(const std::string& key, const reconcile::Listers& view,
                                       kube::Client& client, const Clock& clock) override;

  const std::deque<Decision>& decisions() const { return decisions_; }
  // The outcome of the last plan for each pod in it, by "ns/name".
  const std::map<std::string, planning::PodOutcome>& verdicts() const {
    return events_.verdicts().all();
  }

 private:
  using Pod = std::shared_ptr<const cluster::Pod>;
  using Node = std::shared_ptr<const cluster::Node>;

  void ObserveNodes(const std::vector<Node>& nodes, const reconcile::Listers& view, Time now);
  bool RepairSpecs(const std::vector<Node>& nodes, kube::Client& client, const Clock& clock);
  void TakeRepair(const Repairs::Found& found, const Result<Json>& answer, Time now);
  void Keep(const Json& written);
  void TakeIn(const PlanNotice& notice, Time now);
  std::vector<Pod> Waiting(const reconcile::Listers& view, Time now) const;
  bool News(const reconcile::Listers& view, Time now) const;
  Time PlanDue(const reconcile::Listers& view, Time now);
  reconcile::ReconcileResult Rest(Time until, Time now) const;

  // Excludes pods that their quotas do not admit and publishes the reason on them.
  AdmittedPlan PlanWithinQuotas(const GangedPods& waiting, const reconcile::Listers& view,
                                const cluster::ClusterSnapshot& snapshot,
                                const planning::PlanOptions& options);
  void DropReservationsBeyondQuota(const reconcile::Listers& view,
                                   const cluster::ClusterSnapshot& snapshot);
  void PlanFor(const std::vector<Node>& nodes, const reconcile::Listers& view, kube::Client& client,
               const Clock& clock);
  cluster::ClusterSnapshot SnapshotOf(const std::vector<Node>& nodes,
                                      const reconcile::Listers& view, Time now);
  bool MayPlanFor(const cluster::Pod& nominated, const reconcile::Listers& view) const;
  void ReserveForNominated(const cluster::ClusterSnapshot& snapshot, const reconcile::Listers& view,
                           Time now);
  void ApplyReservations(cluster::ClusterSnapshot& snapshot, const reconcile::Listers& view);
  bool CarryOut(AdmittedPlan admitted, const cluster::ClusterSnapshot& snapshot,
                kube::Client& client, const Clock& clock);
  void Announce(const planning::PlannedNode& planned, const cluster::NodeInfo& info,
                const std::string& plan_id, Time now);
  void TakeRefusal(const std::string& node, const Status& why, Time now);
  void Record(Decision decision);
  void Measure(const planning::Plan& plan, Duration took) const;

  PartitionerConfig config_;
  const scheduling::FrameworkChoice frameworks_;
  const gpu::Catalogue& catalogue_;
  Metrics* metrics_;
  PendingPlans pending_plans_;
  bool gives_whole_ = false;  // a node creates instances of whole GPUs (hybrid partitioning)
  SliceReservations reservations_;
  Batch batch_;
  Repairs repairs_;
  reconcile::Pace repairing_;
  // By node: error code and time of the last Event about a refused plan. Entries older than
  // kMinEventInterval are dropped.
  std::map<std::string, std::pair<Code, Time>> refusals_reported_;
  EventQueue events_;
  reconcile::ReadYourWrites<cluster::Node> written_;
  // Cache versions at the last plan.
  uint64_t pods_version_ = 0, nodes_version_ = 0, context_version_ = 0;
  Time replan_at_{};  // next plan even if the caches do not change
  std::deque<Decision> decisions_;
  uint64_t last_sequence_ = 0;
};

}  // namespace nos::controllers
