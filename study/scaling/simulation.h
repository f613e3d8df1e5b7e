// Simulates scaling with demand: the cost of nodes for a trace of jobs, and how long jobs wait, if
// nodes are added for jobs without capacity and removed when unneeded. docs/simulate-scaling.md
// describes the simulation, and how policies are compared at equal waiting time.
//
//   ScalingOptions options;
//   options.policy = ScalingPolicy::kRepartition;
//   NOS_ASSIGN(ScalingReport report, RunScaling(BurstJobs({}), options));
//
// Pure: equal options give equal reports. The invariant checker (checker.h) verifies every run.
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
  kUnschedulable,  // nodes for unschedulable pods, GPUs with a static layout (unschedulable.h)
  kUnschedulablePacking,  // the same, with a kube-scheduler that prefers full nodes
  kRepartition,           // nos: repartitions GPUs, and requests nodes where that is not enough
  kRepartitionScaleDown,  // also moves jobs off nodes in little use and removes these
  kAll,                   // also moves jobs for pending ones
};
// "unschedulable", "unschedulable+packing", "repartition", "repartition+scale-down", "all".
std::string_view ScalingPolicyName(ScalingPolicy policy);
// Accepts deprecated names, too. Error: kInvalid listing the names.
Result<ScalingPolicy> ParseScalingPolicy(std::string_view name);
const std::vector<ScalingPolicy>& ScalingPolicies();
// True for the policies that nos is compared with.
bool IsBaseline(ScalingPolicy policy);

// Nodes with two and with eight GPUs, and 16 cpu and 128 GiB per GPU.
std::vector<ScalingPool> DefaultScalingPools();

struct ScalingOptions {
  std::vector<ScalingPool> pools = DefaultScalingPools();
  ScalingPolicy policy = ScalingPolicy::kRepartition;
  std::string layout = "whole";  // of the baselines: see StaticLayouts
  double window = 600;           // seconds: a node unneeded for this long is removed
  double start_seconds = 300, restart_seconds = 60, repartition_seconds = 10;
  std::function<void(size_t ended)> on_progress;
};

struct ScalingReport {
  ScalingPolicy policy = ScalingPolicy::kRepartition;
  std::string layout;  // "" for nos
  double window = 0;
  uint64_t seed = 0;           // seed of the study
  size_t jobs = 0;             // jobs that have run, each once
  size_t left_out = 0;         // jobs that fit on no node of any pool
  double asked_gpu_hours = 0;  // requested by jobs: the cost if no GPU were ever idle
  double node_hours = 0;       // from request to removal
  double cost = 0;             // GPU-hours of the nodes
  double mean_wait = 0,
         p95_wait = 0;  // seconds between arrival and end in which the job did not run
  int max_nodes = 0;
  int moves = 0;
};

// Error: kInvalid for invalid options, kInternal if the invariant checker finds a violation.
Result<ScalingReport> RunScaling(std::span<const ScalingJob> jobs, const ScalingOptions& options);

}  // namespace nos::study
