// Tracks the plans of each node: plans not yet acknowledged, nodes that do not acknowledge or whose
// patches are refused, and GPUs that could not be partitioned.
//
// A plan is in flight while the plan id in the node's spec annotations differs from the one in its
// status annotations. After the deadline the node counts as silent: that is reported once, and its
// GPUs back off for a time that doubles with each silence in a row. A GPU that its agent could not
// partition backs off in the same way, and so does a node for which the API server refuses plans.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "cluster/objects.h"
#include "reconcile/back_off_table.h"
#include "reconcile/plan_result.h"

namespace nos::controllers {

// The event that happened to a plan since the last call.
struct PlanNotice {
  enum class Kind { kApplied, kPartial, kSilent } kind = Kind::kApplied;
  std::string node, plan;
  std::vector<gpu::Obstacle> obstacles;  // for kPartial
  Duration waited{};                     // for kSilent
};

class PendingPlans {
 public:
  // `pauses.base` is also the deadline for an acknowledgement.
  explicit PendingPlans(BackOff pauses)
      : ack_deadline_(pauses.base), silences_(pauses), gpus_(pauses), refusals_(pauses) {}

  using Nodes = std::vector<std::shared_ptr<const cluster::Node>>;
  // Forgets nodes that are not in `nodes` or not managed.
  std::vector<PlanNotice> Update(const Nodes& nodes, Time now);

  // Records that a plan has been written to the node.
  void Sent(const std::string& node, const std::string& plan, Time now);
  // Records that a plan could not be written. Returns true if the node backs off now. After a
  // conflict it does not, because the node has to be read and planned for again, unless conflicts
  // come in a row.
  bool Refused(const std::string& node, Code why, Time now);

  // True if a plan is not acknowledged yet: the requested layout is assumed to be the actual one.
  bool InFlight(const std::string& node) const;
  // True if the GPU must not be repartitioned now.
  bool Resting(const std::string& node, int gpu, Time now) const;
  // The next time at which the answers above change without further input.
  std::optional<Time> NextChange(Time now) const;

 private:
  struct State {
    std::string plan;  // not acknowledged
    Time since{};
    bool silent = false;
    std::string processed;  // the last plan whose result has been processed
  };

  std::optional<PlanNotice> Waiting(const std::string& node, const std::string& plan, State& state,
                                    Time now);
  std::optional<PlanNotice> Acknowledged(const cluster::Node& node, const std::string& plan,
                                         State& state, Time now);
  bool HasFailedGpus(const std::string& node) const;
  void ForgetGpus(const std::string& node);

  const Duration ack_deadline_;
  std::map<std::string, State> states_;  // by node, as the keys below
  reconcile::BackOffTable<> silences_;
  reconcile::BackOffTable<std::pair<std::string, int>> gpus_;
  reconcile::BackOffTable<> refusals_;  // nodes that refused their last plan
};

}  // namespace nos::controllers
