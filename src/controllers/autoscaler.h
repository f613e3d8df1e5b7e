// The autoscaler: more nodes for pods that no cutting of GPUs can place, fewer when they are idle,
// and pods moved where that serves a pod that waits.
//
// What it does in one call, in this order:
//   1. it reads of each NodePool how many nodes are wanted, counts those that are there and those
//      that are coming, learns what nodes are where their pool does not say it
//      (cluster/node_template.h), and closes a pool for a while whose nodes do not come
//      (pool_state.h);
//   2. it goes on with relocations and with nodes that are on their way out (relocations.h);
//   3. of the pods that have waited for `settle`, it takes those that their quotas would let in,
//      asks the planner (MakePlan), and keeps whom no plan places;
//   4. nodes that are being emptied and could serve one of them are kept;
//   5. with `moves`, it has pods moved for them (planning/moves.h), within budgets;
//   6. it asks for the nodes that serve the rest (planning/growth.h);
//   7. when nobody is left unserved, it empties nodes that could have gone for `shrink_after`
//      (planning/shrink.h).
// Everything is explained: in the pool's status and conditions, in Events on pools, nodes and pods,
// in decisions(), and in metrics. All that must outlive a crash stands in the cluster: the pools'
// status, what relocations write, and the scaled objects themselves. One owner thread.
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
#include "planning/planner.h"
#include "reconcile/reconciler.h"
#include "reconcile/runner.h"
#include "scheduling/framework_choice.h"

namespace nos::controllers {

// Whom its Events are of.
inline constexpr const char* kAutoscalerName = "nos-autoscaler";
// Conditions of a NodePool's status. Ready: False when it cannot be planned with or its
// infrastructure does not answer (reasons Invalid, NoTemplate, ScaleFailed, NotDelivered).
inline constexpr const char* kPoolReady = "Ready";
inline constexpr const char* kNoTemplate = "NoTemplate";
// Condition of a pod that waits, as of the autoscaler. True, with the reason NodesComing or Moving:
// what for; False with a code of planning/growth.h or planner.h: why nothing is done for it.
inline constexpr const char* kScalingCondition = "nos.nebuly.com/Scaling";

struct AutoscalerConfig {
  planning::Objective objective = planning::Objective::kPods;
  bool shrink = true, moves = false;
  // A pod counts when it has been unschedulable for so long: cutting has had its chance.
  Duration settle = std::chrono::seconds(10);
  Duration plan_budget = std::chrono::seconds(5);
  Duration read_again = std::chrono::seconds(30);  // what pools want
  // Nodes are late after their pool's startSeconds, twice, but never before this.
  Duration least_patience = std::chrono::minutes(2);
  Duration close_for = std::chrono::minutes(5);  // a pool that did not deliver; doubles each time
  Duration longest_close = std::chrono::hours(1);
  // Stabilisation: nodes go when they could have gone for so long without a break, and no pool has
  // grown for as long.
  Duration shrink_after = std::chrono::minutes(10);
  double most_use = 0.5;  // planning::ShrinkOptions
  int most_emptied = 3;   // nodes that are emptied at a time
  Duration removal_deadline =
      std::chrono::minutes(15);                      // then the infrastructure is said to be late
  Duration move_after = std::chrono::minutes(1);     // pods move for one that has waited so long
  int most_moves = 3;                                // for one pod
  int moves_per_hour = 20, moves_per_namespace = 5;  // an hour
  size_t remembered_decisions = 1000;
  RelocationConfig relocations;
  SignalConfig signal;
};

// One thing that was decided, for people and telemetry.
struct ScalingDecision {
  uint64_t sequence = 0;  // 1, 2, ...
  Time time{};
  std::string action{};  // "grow", "shrink", "move", "call-off", "close", "keep"
  std::string pool{}, node{};
  int count = 0;                    // nodes, or pods that move
  std::vector<std::string> pods{};  // for which, or which ("ns/name")
  std::string message{};            // one sentence for a person
};

class Autoscaler final : public reconcile::Reconciler {
 public:
  // The frameworks, `catalogue` and `metrics` (null: none are kept) must outlive this.
  Autoscaler(AutoscalerConfig config, scheduling::FrameworkChoice frameworks,
             const gpu::Catalogue& catalogue, PoolScaling scaling = PoolScaling(),
             Metrics* metrics = nullptr);
  ~Autoscaler() override;

  // Key: kClusterKey. REQUIRES: view.around.
  reconcile::Outcome Reconcile(const std::string& key, const reconcile::View& view,
                               kube::Client& client, const Clock& clock) override;

  const std::deque<ScalingDecision>& decisions() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// How its runner watches: all kinds around.
reconcile::RunnerOptions WatchingForAutoscaler(reconcile::RunnerOptions options = {});

}  // namespace nos::controllers
