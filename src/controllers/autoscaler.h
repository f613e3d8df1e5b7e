// The autoscaler adds nodes for pending pods that no repartitioning of GPUs can place, removes idle
// nodes, and moves running pods where that frees capacity for a pending pod.
//
// One call of Reconcile does the following, in this order:
//   1. It reads the wanted node count of each NodePool, counts existing and starting nodes, records
//      the node template of pools whose spec does not describe one (cluster/node_template.h), and
//      closes a pool for a while if its nodes do not arrive (pools/state.h).
//   2. It continues relocations and node removals in progress (relocations.h).
//   3. It takes the pods that have been unschedulable for `settle` and that their quotas admit,
//   runs
//      the planner (MakePlan), and keeps the pods that no plan places.
//   4. It cancels the removal of nodes that could run one of these pods.
//   5. With `moves`, it moves pods to free capacity for them (planning/moves.h), within budgets.
//   6. It requests nodes for the remaining pods (planning/growth.h).
//   7. If no pod is left unplaced, it drains nodes that have been removable for `shrink_after`
//      (planning/shrink.h).
//
// Decisions are published in the pool's status and conditions, in Events on pools, nodes and pods,
// in decisions(), and in metrics. State that must survive a crash is stored in the cluster: in the
// status of pools, in the annotations that relocations write, and in the scaled objects. Owned by
// one thread.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/metrics.h"
#include "controllers/autoscaler/scaling_signal.h"
#include "controllers/pool_scaling.h"
#include "controllers/relocations.h"
#include "gpu/catalogue.h"
#include "planning/growth.h"
#include "planning/plan.h"
#include "reconcile/reconciler.h"
#include "reconcile/runner.h"
#include "scheduling/framework_choice.h"

namespace nos::controllers {

// Source component of the autoscaler's Events.
inline constexpr const char* kAutoscalerName = "nos-autoscaler";
// Condition of a NodePool's status. It is False if the pool cannot be planned with or its
// infrastructure does not answer (reasons Invalid, NoTemplate, ScaleFailed, NotDelivered).
inline constexpr const char* kPoolReady = "Ready";
inline constexpr const char* kNoTemplate = "NoTemplate";
// Condition that the autoscaler sets on a pending pod. True: nodes are starting or pods are moving
// for it (reason kNodesComing or kRelocatingPods). False: the reason is a code of
// scheduling/reasons.h that says why the autoscaler does nothing for the pod.
inline constexpr const char* kScalingCondition = "nos.nebuly.com/Scaling";
inline constexpr const char* kNodesComing = "NodesComing";
inline constexpr const char* kRelocatingPods = "RelocatingPods";

struct AutoscalerConfig {
  planning::Objective objective = planning::Objective::kPods;
  bool shrink = true, moves = false;
  // A pod counts as demand after it has been unschedulable for this long. Until then the
  // partitioner may still place it by repartitioning.
  Duration settle = std::chrono::seconds(10);
  Duration plan_timeout = std::chrono::seconds(5);
  // Interval between reads of a pool's wanted node count.
  Duration pool_sync_interval = std::chrono::seconds(30);
  // A node is late after twice its pool's startSeconds, but not before this time.
  Duration min_provision_timeout = std::chrono::minutes(2);
  // How long a pool that did not deliver stays closed; doubles with each failure in a row.
  Duration backoff = std::chrono::minutes(5);
  Duration max_backoff = std::chrono::hours(1);
  // Stabilisation: a node is removed only if it has been removable for this long without a break
  // and no pool has grown during this time.
  Duration shrink_after = std::chrono::minutes(10);
  double utilization_threshold = 0.5;  // planning::ShrinkOptions
  int max_concurrent_drains = 3;       // concurrent drains
  Duration removal_timeout =
      std::chrono::minutes(15);  // time after which a removal is reported as overdue
  // Time a pod must be unschedulable before pods are moved for it.
  Duration move_after = std::chrono::minutes(1);
  int max_moves_per_pod = 3;                                 // moves for one pod
  int max_moves_per_hour = 20, max_moves_per_namespace = 5;  // limits for one hour
  size_t remembered_decisions = 1000;
  RelocationConfig relocations;
  SignalConfig signal;
};

// One decision, for the log, telemetry and tests.
struct ScalingDecision {
  uint64_t sequence = 0;  // 1, 2, ...
  Time time{};
  std::string action{};  // "grow", "shrink", "move", "call-off", "close", "keep"
  std::string pool{}, node{};
  int count = 0;                    // nodes, or moved pods
  std::vector<std::string> pods{};  // pods served by this decision or affected by it ("ns/name")
  std::string message{};            // one sentence for a person
};

class Autoscaler final : public reconcile::Reconciler {
 public:
  // The frameworks, `catalogue` and `metrics` must outlive this. A null `metrics` disables metrics.
  Autoscaler(AutoscalerConfig config, scheduling::FrameworkChoice frameworks,
             const gpu::Catalogue& catalogue, PoolScaling scaling = PoolScaling(),
             Metrics* metrics = nullptr);
  ~Autoscaler() override;

  // Key: kClusterKey. REQUIRES: view.context.
  reconcile::ReconcileResult Reconcile(const std::string& key, const reconcile::Listers& view,
                                       kube::Client& client, const Clock& clock) override;

  const std::deque<ScalingDecision>& decisions() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// Options for the runner: watches all kinds of the cluster context.
reconcile::RunnerOptions WatchingForAutoscaler(reconcile::RunnerOptions options = {});

}  // namespace nos::controllers
