// Runs a small random cluster with a random workload and all kinds of faults, all drawn from one
// seed. Then a period without faults follows, in which every pod that can run must get to run.
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
  // The scheduler has GPUs repartitioned for the pods that it schedules; the partitioner runs too.
  bool scheduler_partitions = false;
  // MPS shares the GPUs of the first node and of half of the others.
  bool mps = false;
  // The first node and half of the others are hybrid: each of their GPUs has its own sharing mode.
  bool hybrid = false;
  // Hybrid nodes' agents reset GPUs whose MIG mode changes only with a reset, and most GPUs are of
  // that kind.
  bool resets = false;
  Duration faults_last = std::chrono::minutes(5);
  // After the faults: while some pod could run, a pod must be bound at least once in this time.
  Duration bound = std::chrono::minutes(4);
  // Called with every line of the event log as it is written.
  std::function<void(std::string_view line)> on_event = {};
  // Some nodes belong to pools that the autoscaler scales and that fail to scale; half of the pods
  // may be moved.
  bool pools = false;
  // A driver of Dynamic Resource Allocation serves the first node and half of the others, most pods
  // claim its devices, and drivers and claims have faults of their own.
  bool claims = false;
  // Pods of a namespace whose min is nearly the whole cluster, beside a tenant who borrows it and
  // does not want to give it back (ChaosTenant).
  bool hostile_tenant = false;
  // One node more, whose agent's token is stolen (StolenNode). Pods that must not come to it are
  // served all the while.
  bool stolen_node = false;
  // Calls to the driver for some GPUs do not return, for a while or until the end (LostDevices).
  // Pods that the other GPUs can serve are served all the while.
  bool lost_device = false;
};

struct ChaosReport {
  uint64_t seed = 0;
  bool scheduler_partitions = false, mps = false, hybrid = false;
  std::vector<std::string> violations;  // empty: all invariants held
  int nodes = 0, gpus = 0;
  int pods = 0;                                 // submitted
  int succeeded = 0, running = 0, pending = 0;  // at the end; pending: pods that cannot run
  int gangs = 0, whole = 0;  // whole: gangs with enough scheduled members at the end
  int recreated = 0;         // pods that a kubelet refused and that were created again
  Duration time{};           // virtual time
  uint64_t steps = 0, events = 0, hash = 0;  // hash: over the whole event log
  // After a violation: the last events; the pending pods and the nodes.
  std::vector<std::string> last_events, state;
  bool resets = false, pools = false;
  int evictions = 0;      // requested by the autoscaler
  int made = 0;           // nodes created for pools
  double node_hours = 0;  // of those nodes
  bool claims = false;
  int allocated = 0;  // claims that got devices
  bool hostile_tenant = false;
  int reclaimed = 0;  // pods of the hostile tenant that were evicted
  bool stolen_node = false;
  int forged = 0;  // writes of the thief
  bool lost_device = false;
  int hangs = 0;      // calls that agents have given up
  bool late = false;  // one of the violations: min of a quota was not met in time
  bool ok() const { return violations.empty(); }
};

ChaosReport RunChaos(const ChaosOptions& options);

// One line on success; otherwise the violations, the last events, and a command that reproduces
// them.
std::string FormatChaosReport(const ChaosReport& report);

}  // namespace nos::sim
