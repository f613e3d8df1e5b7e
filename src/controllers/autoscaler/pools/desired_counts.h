// Reads and writes the number of nodes that each pool's infrastructure should keep: a Scale
// subresource or a webhook (controllers/pool_scaling.h).
//
//   DesiredCounts counts(config, scaling, events);
//   counts.BeginCycle();
//   counts.Read(cycle, pool);                       // at most every config.pool_sync_interval
//   if (pool.memory->MayWrite()) counts.Write(cycle, pool, pool.memory->scale->wanted + 1, {});
//
// After a write the count is read again before the next write. A write without an answer counts as
// done until then, so that no other pool is asked for the same nodes. A webhook that does not
// answer is read less and less often. State is kept in PoolMemory. Owned by one thread.
#pragma once

#include <string>
#include <vector>

#include "controllers/autoscaler.h"
#include "controllers/autoscaler/cycle.h"
#include "controllers/autoscaler/pools/observed.h"
#include "controllers/autoscaler/scaling_events.h"

namespace nos::controllers {

class DesiredCounts {
 public:
  // All must outlive this.
  DesiredCounts(const AutoscalerConfig& config, PoolScaling& scaling, ScalingEvents& events)
      : config_(config), scaling_(scaling), events_(events) {}

  // Each cycle waits for at most one webhook that did not answer before.
  void BeginCycle() { waited_ = false; }
  // Reads the count if it is due. Errors are kept in the pool's memory, and published when they
  // begin.
  void Read(const ScalingCycle& cycle, ObservedPool& pool);
  // Asks for `wanted` nodes and, with a webhook, for the removal of the named ones. Error:
  // kUnavailable: the present count is not known; others as reported by the infrastructure.
  Status Write(const ScalingCycle& cycle, ObservedPool& pool, int32_t wanted,
               const std::vector<std::string>& remove);

 private:
  void NoteAnswer(PoolMemory& memory, Time now);

  const AutoscalerConfig& config_;
  PoolScaling& scaling_;
  ScalingEvents& events_;
  bool waited_ = false;  // a webhook already timed out in this cycle
};

}  // namespace nos::controllers
