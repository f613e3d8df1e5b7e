// Reports NodePools whose spec cannot be read. The autoscaler keeps the last valid state of such a
// pool; one that was never valid gets the condition Ready=False with reason Invalid.
//
//   UnreadablePools unreadable(config.pool_sync_interval, events);
//   unreadable.Observe(cycle, context);
//   if (const std::string why = unreadable.ProblemOf("a100"); !why.empty()) ...
//
// Owned by one thread.
#pragma once

#include <map>
#include <string>

#include "cluster/context.h"
#include "controllers/autoscaler/cycle.h"
#include "controllers/autoscaler/scaling_events.h"

namespace nos::controllers {

class UnreadablePools {
 public:
  // `again`: pause after a condition that could not be written. `events` must outlive this.
  UnreadablePools(Duration again, ScalingEvents& events) : again_(again), events_(events) {}

  // Takes the problems that the caches have found. `context` holds the last valid pools.
  void Observe(const ScalingCycle& cycle, const cluster::ClusterContext& context);
  // The problem with the pool's spec, for its status; "": none.
  std::string ProblemOf(const std::string& pool) const;

 private:
  struct Problem {
    std::string why;
    bool published = false;  // in its status
    Time again{};            // if publishing failed: no attempt before this time
  };
  const Duration again_;
  ScalingEvents& events_;
  std::map<std::string, Problem> problems_;  // by pool
};

}  // namespace nos::controllers
