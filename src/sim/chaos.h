// A small random cluster under a random workload while everything that can go wrong does, from one
// seed; then a time without faults in which every pod that can run must get to run.
//
//   ChaosReport report = RunChaos({.seed = 17});
//   if (!report.ok()) fmt::print("{}", FormatChaosReport(report));
//
// The same seed gives the same run, event by event. Safe to call from several threads at once.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "sim/world/events/faults.h"

namespace nos::sim {

struct ChaosOptions {
  uint64_t seed = 1;
  // 0: drawn from the seed (1 to 4 nodes of 1 to 4 GPUs, 10 to 30 pods).
  int nodes = 0, gpus = 0, pods = 0;
  // The scheduler has GPUs cut for the pods it places; the partitioner is there, too.
  bool scheduler_cuts = false;
  // The first node's GPUs are shared by MPS, and those of half of the others.
  bool mps = false;
  // The first node's GPUs are each used in their own way, and those of half of the others.
  bool hybrid = false;
  // Agents of those reset GPUs that change MIG mode with a reset only, and many are such.
  bool resets = false;
  Duration faults_last = std::chrono::minutes(5);
  // Once faults have stopped: when some pod could run, a pod is bound at least this often.
  Duration bound = std::chrono::minutes(4);
  // Called for every line of the event log as it happens.
  std::function<void(std::string_view line)> on_event = {};
  // Some nodes are of pools that grow and shrink, and fail to; half of the pods may be moved.
  bool pools = false;
};

struct ChaosReport {
  uint64_t seed = 0;
  bool scheduler_cuts = false, mps = false, hybrid = false;
  std::vector<std::string> violations;  // empty: all promises held
  int nodes = 0, gpus = 0;
  int pods = 0;                                 // asked for
  int succeeded = 0, running = 0, pending = 0;  // at the end; pending: they cannot run
  int gangs = 0, whole = 0;                     // whole: enough of them have a place at the end
  int recreated = 0;                            // pods refused by a kubelet and created again
  Duration time{};                              // virtual
  uint64_t steps = 0, events = 0, hash = 0;     // hash: of the whole event log
  // When a promise was broken: some of the last events, and who waits, and what nodes look like.
  std::vector<std::string> last_events, state;
  bool resets = false, pools = false;
  int evictions = 0;      // that the autoscaler has asked for
  int made = 0;           // nodes of pools
  double node_hours = 0;  // of those
  bool ok() const { return violations.empty(); }
};

ChaosReport RunChaos(const ChaosOptions& options);

// One line when all is well; else what was broken, the last events, and how to see it again.
std::string FormatChaosReport(const ChaosReport& report);

}  // namespace nos::sim
