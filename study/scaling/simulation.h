// Scaling with demand: what nodes a trace of jobs costs, and how long its jobs wait, when nodes are
// added for whom no place is left and removed when they are not needed. docs/simulate-scaling.md
// says what is simulated, and how policies are compared at equal waiting time.
//
//   ScalingOptions options;
//   options.policy = ScalingPolicy::kRecut;
//   NOS_ASSIGN(ScalingReport report, RunScaling(BurstJobs({}), options));
//
// Pure: equal options give equal reports. Every run is checked by the judge (judge.h).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "study/scaling/stage.h"

namespace nos::study {

enum class ScalingPolicy {
  kUnschedulable,         // nodes for unschedulable pods, GPUs cut once (unschedulable.h)
  kUnschedulablePacking,  // the same, with a kube-scheduler that prefers full nodes
  kRecut,                 // nos: GPUs are cut anew, nodes asked for where that is not enough
  kRecutScaleDown,        // and nodes in little use are emptied onto others
  kAll,                   // and jobs move for others that wait
};
// "unschedulable", "unschedulable+packing", "recut", "recut+scale-down", "all".
std::string_view ScalingPolicyName(ScalingPolicy policy);
// Error: kInvalid listing the names.
Result<ScalingPolicy> ParseScalingPolicy(std::string_view name);
const std::vector<ScalingPolicy>& ScalingPolicies();
// Whether it is what nos is compared with.
bool IsBaseline(ScalingPolicy policy);

// Nodes of two and of eight GPUs, with 16 cpu and 128 GiB for each.
std::vector<ScalingPool> DefaultScalingPools();

struct ScalingOptions {
  std::vector<ScalingPool> pools = DefaultScalingPools();
  ScalingPolicy policy = ScalingPolicy::kRecut;
  std::string layout = "whole";  // of the baselines: StaticLayouts
  double window = 600;           // seconds for which a node is not needed before it goes
  double start_seconds = 300, restart_seconds = 60, cut_seconds = 10;
  std::function<void(size_t ended)> on_progress;
};

struct ScalingReport {
  ScalingPolicy policy = ScalingPolicy::kRecut;
  std::string layout;  // "" for nos
  double window = 0;
  uint64_t seed = 0;                   // of the study
  size_t jobs = 0;                     // that have run, each once
  size_t left_out = 0;                 // that fit on no node of any pool
  double asked_gpu_hours = 0;          // by jobs: what the nodes would cost if none were ever idle
  double node_hours = 0;               // from asking until it goes
  double cost = 0;                     // GPU-hours of the nodes
  double mean_wait = 0, p95_wait = 0;  // seconds between coming and ending without running
  int most_nodes = 0;
  int moves = 0;
};

// Error: kInvalid for options that make no sense, kInternal when the judge objects.
Result<ScalingReport> RunScaling(std::span<const ScalingJob> jobs, const ScalingOptions& options);

}  // namespace nos::study
