#pragma once

#include <optional>

#include "controllers/autoscaler.h"
#include "controllers/partitioner.h"
#include "controllers/scheduler.h"
#include "scheduling/plugin.h"
#include "sim/world/events/faults.h"
#include "sim/world/node/machine.h"

namespace nos::sim {

struct WorldOptions {
  uint64_t seed = 1;
  Time start = Time(std::chrono::seconds(1'767'225'600));  // 2026-01-01T00:00:00Z
  FaultRates faults;
  Duration faults_last{};  // from the start
  MachineTimes times;
  controllers::PartitionerConfig partitioner;
  controllers::SchedulerConfig scheduler;
  // The component that repartitions GPUs for pods: the partitioner only, or primarily the
  // scheduler.
  scheduling::PartitionedBy partitioned_by = scheduling::PartitionedBy::kPartitioner;
  std::optional<Duration> nodes_return;   // time from a node's deletion to its return; nullopt: it
                                          // never returns
  std::optional<Duration> keep_finished;  // how long finished pods are kept; nullopt: for ever
  // Draws the order of the actors anew for each round; otherwise the order is fixed.
  bool shuffle = true;
  bool check_invariants = true;
  // Also check that node annotations are readable. Not for tests that write malformed ones on
  // purpose.
  bool check_annotations = false;
  // Runs an autoscaler. The namespace of its placeholders is created, and their image gets a
  // default.
  std::optional<controllers::AutoscalerConfig> autoscaler;
};

}  // namespace nos::sim
