// The partitioner: decides how the GPUs of all managed nodes are cut, from the pods that wait.
//
// It gathers pods that the scheduler could not place (PodScheduled=False, Unschedulable) and that
// ask for MIG slices, waits for a short window so that one plan serves many, plans
// (planning::MakePlan), and patches the nodes that change with their new layouts and a plan id. The
// node's agent cuts the GPUs and acknowledges. Until then the node keeps its asked layout as the
// assumed one and is not re-cut; a node that stays silent past the deadline is taken as its status
// says and left alone for a while, longer each time; so is one whose patch is refused. Slices
// planned for a pod are kept for it until it is bound or a deadline passes.
//
// Pods that their quota would not let in are not planned for (planned_quotas.h), and told so with
// reason Quota.
//
// Of a gang (gangs.h) enough pods get slices, or none, where the runner watches who belongs
// together (WatchingGangs); a promise to one of them holds while enough of it have one or a node.
//
// Spec annotations that no agent could act on are taken off a node as soon as it is looked at
// (repairs.h).
//
// What it decided is in decisions() and in Events on nodes and pods. A pod that it could not help
// has the condition kPartitionedCondition with a machine-readable reason. One owner thread.
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
#include "controllers/partitioner/flights.h"
#include "controllers/partitioner/repairs.h"
#include "controllers/pending/claims.h"
#include "controllers/pending/planned_quotas.h"
#include "controllers/pending/telling.h"
#include "controllers/planned_gangs.h"
#include "gpu/catalogue.h"
#include "planning/planner.h"
#include "reconcile/pace.h"
#include "reconcile/reconciler.h"

namespace nos::scheduling {
class Framework;
}

namespace nos::controllers {

struct PartitionerConfig {
  planning::Objective objective = planning::Objective::kPods;
  // A plan is made when no pod has joined for `batch_idle`, at the latest `batch_timeout` after the
  // first one.
  Duration batch_idle = std::chrono::milliseconds(300);
  Duration batch_timeout = std::chrono::seconds(3);
  Duration plan_budget = std::chrono::seconds(5);  // the planner returns its best by then
  Duration ack_deadline = std::chrono::seconds(60);
  Duration claim_deadline = std::chrono::seconds(60);  // planned, yet not bound
  Duration starvation_after = std::chrono::minutes(10);
  Duration longest_pause = std::chrono::minutes(10);  // limit of every growing pause
  size_t writes_per_call = 50;  // conditions and Events, or nodes repaired, before the next look
  Duration repair_pause = std::chrono::seconds(1);  // of a node after its first repair
  size_t remembered_decisions = 1000;
  // Schedulers that have GPUs cut themselves, by name: their pods are none of its business.
  std::set<std::string, std::less<>> cutting_schedulers = {};
};

// One GPU whose cutting was decided, or something noteworthy about a node.
struct Decision {
  uint64_t sequence = 0;  // 1, 2, ...
  Time time;
  std::string plan_id, node;
  int gpu = -1;                   // -1: about the node
  std::string before, after;      // "3g.20gb@4,1g.5gb@0"
  std::vector<std::string> pods;  // for which ("ns/name")
  std::string note;  // "" for a plan; else "applied", "partial: ...", "no answer for 60s", ...
};

class Partitioner final : public reconcile::Reconciler {
 public:
  // The frameworks, `catalogue` and `metrics` (null: none are kept) must outlive this.
  Partitioner(PartitionerConfig config, scheduling::FrameworkChoice frameworks,
              const gpu::Catalogue& catalogue, Metrics* metrics = nullptr);

  // Key: kClusterKey.
  reconcile::Outcome Reconcile(const std::string& key, const reconcile::View& view,
                               kube::Client& client, const Clock& clock) override;

  const std::deque<Decision>& decisions() const { return decisions_; }
  // The last plan's verdict on each pod it was asked about, by "ns/name".
  const std::map<std::string, planning::PodOutcome>& verdicts() const {
    return telling_.verdicts().all();
  }

 private:
  using Pod = std::shared_ptr<const cluster::Pod>;
  using Node = std::shared_ptr<const cluster::Node>;

  std::vector<Node> NodesNow(const reconcile::View& view);
  void Learn(const std::vector<Node>& nodes, const reconcile::View& view, Time now);
  bool RepairSpecs(const std::vector<Node>& nodes, kube::Client& client, const Clock& clock);
  void TakeRepair(const Repairs::Found& found, const Result<Json>& answer, Time now);
  void Keep(const Json& written);
  void TakeIn(const FlightNotice& notice, Time now);
  std::vector<Pod> Waiting(const reconcile::View& view, Time now) const;
  bool News(const reconcile::View& view, Time now) const;
  Time PlanDue(const reconcile::View& view, Time now);
  reconcile::Outcome Rest(Time until, Time now) const;

  // Those are not planned for whom their quotas would not let in; they are told so.
  planning::Plan PlanWithinQuotas(const GangedPods& waiting, const reconcile::View& view,
                                  const cluster::ClusterSnapshot& snapshot,
                                  planning::PlanOptions options);
  void DropClaimsBeyondQuota(const reconcile::View& view, const cluster::ClusterSnapshot& picture);
  void TellOfQuota(const Pod& pod, const quota::Refusal& refusal, Time now);
  void PlanFor(const std::vector<Node>& nodes, const reconcile::View& view, kube::Client& client,
               const Clock& clock);
  cluster::ClusterSnapshot Picture(const std::vector<Node>& nodes, const reconcile::View& view,
                                   Time now);
  static bool IsEmptied(const std::string& node, const reconcile::View& view);
  void ClaimForNominated(const reconcile::View& view, Time now);
  void HonourClaims(cluster::ClusterSnapshot& snapshot, const reconcile::View& view);
  bool CarryOut(planning::Plan plan, const cluster::ClusterSnapshot& snapshot, kube::Client& client,
                const Clock& clock);
  void Announce(const planning::PlannedNode& planned, const cluster::NodeInfo& info,
                const std::string& plan_id, Time now);
  void TakeRefusal(const std::string& node, const Status& why, Time now);
  void Record(Decision decision);
  void Measure(const planning::Plan& plan, Duration took) const;

  PartitionerConfig config_;
  const scheduling::FrameworkChoice frameworks_;
  const gpu::Catalogue& catalogue_;
  Metrics* metrics_;
  Flights flights_;
  bool gives_whole_ = false;  // some node makes instances of whole GPUs
  Claims claims_;
  Batch batch_;
  Repairs repairs_;
  reconcile::Pace repairing_;
  // By node, what an Event last said of refused plans, and when; of the last kSayAgain.
  std::map<std::string, std::pair<Code, Time>> refusals_said_;
  Telling telling_;
  std::map<std::string, Node> written_;  // newer than what the cache shows
  // Of the caches, at the last plan.
  uint64_t pods_version_ = 0, nodes_version_ = 0, around_version_ = 0;
  Time replan_at_{};  // even if the caches do not change
  std::deque<Decision> decisions_;
  uint64_t last_sequence_ = 0;
};

}  // namespace nos::controllers
