// Which nodes have a plan under way, which have stopped answering or take no plan, and which GPUs
// failed to be cut.
//
// A plan is under way while the node's spec plan differs from its status plan. After the deadline
// the node counts as silent: it is reported once, and its GPUs rest for a pause that doubles with
// every silence in a row. A GPU that its agent could not cut rests likewise, and so does a node for
// which the API server refuses plans.
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
#include "reconcile/plan_result.h"
#include "kube/work_queue.h"

namespace nos::controllers {

// What happened to a plan since the last look.
struct FlightNotice {
  enum class Kind { kApplied, kPartial, kSilent } kind = Kind::kApplied;
  std::string node, plan;
  std::vector<gpu::Obstacle> obstacles;  // kPartial
  Duration waited{};                        // kSilent
};

class Flights {
 public:
  // `pauses.base` is also the deadline for an answer.
  explicit Flights(kube::BackOff pauses) : pauses_(pauses) {}

  using Nodes = std::vector<std::shared_ptr<const cluster::Node>>;
  // Nodes that are not among these, or not managed (any more), are forgotten.
  std::vector<FlightNotice> Update(const Nodes& nodes, Time now);

  // A plan was just written to the node.
  void Sent(const std::string& node, const std::string& plan, Time now);
  // A plan could not be written. Returns whether the node rests now: after a conflict it does not,
  // for it is to be read and planned for again, unless conflicts come in a row.
  bool Refused(const std::string& node, Code why, Time now);

  // A plan is under way: what is asked is taken as what will be.
  bool InFlight(const std::string& node) const;
  // Must not be re-cut now.
  bool Resting(const std::string& node, int gpu, Time now) const;
  // When the answers to these questions next change by time alone.
  std::optional<Time> NextChange(Time now) const;

 private:
  struct Pause {
    int failures = 0;
    Time until{};
  };
  struct State {
    std::string plan;  // not acknowledged
    Time since{};
    bool silent = false;
    Pause silence;
    std::string judged;  // the last plan whose result has been taken in
    std::map<int, Pause> gpus;
  };

  std::optional<FlightNotice> Waiting(const std::string& plan, State& state, Time now);
  std::optional<FlightNotice> Landed(const cluster::Node& node, const std::string& plan,
                                     State& state, Time now);
  void Extend(Pause& pause, Time now) const;

  kube::BackOff pauses_;
  std::map<std::string, State> states_;
  std::map<std::string, Pause> refusals_;  // of nodes that did not take their last plan
};

}  // namespace nos::controllers
