#include "study/scaling/simulation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <numeric>
#include <utility>

#include "study/scaling/checker.h"
#include "study/scaling/nos_scaler.h"
#include "study/scaling/unschedulable.h"

namespace nos::study {
namespace {

constexpr std::array kNames = {
    std::pair{ScalingPolicy::kUnschedulable, std::string_view("unschedulable")},
    std::pair{ScalingPolicy::kUnschedulablePacking, std::string_view("unschedulable+packing")},
    std::pair{ScalingPolicy::kRepartition, std::string_view("repartition")},
    std::pair{ScalingPolicy::kRepartitionScaleDown, std::string_view("repartition+scale-down")},
    std::pair{ScalingPolicy::kAll, std::string_view("all")},
};
// Accepted for one more minor version.
constexpr std::array kDeprecatedNames = {
    std::pair{ScalingPolicy::kRepartition, std::string_view("recut")},
    std::pair{ScalingPolicy::kRepartitionScaleDown, std::string_view("recut+scale-down")},
};
constexpr double kMaxSeconds = 7 * 86'400;  // limit of each duration
constexpr double kHour = 3600;

Status Check(const ScalingOptions& options) {
  if (options.pools.empty()) return Invalid("there are no pools");
  for (const ScalingPool& pool : options.pools) {
    if (pool.gpus < 1 || pool.gpus > 64) return Invalid("a node must have 1 to 64 GPUs");
    if (pool.max < 1 || pool.cpu_milli < 1 || pool.memory_mib < 1) {
      return Invalid(fmt::format("pool {}: max, cpu and memory must be above 0", pool.name));
    }
  }
  const std::pair<double, const char*> times[] = {
      {options.window, "window"},
      {options.start_seconds, "start-seconds"},
      {options.restart_seconds, "restart-seconds"},
      {options.repartition_seconds, "repartition-seconds"}};
  for (const auto& [seconds, name] : times) {
    if (!(seconds >= 0 && seconds <= kMaxSeconds)) {
      return Invalid(fmt::format("{} must be 0 to {}", name, kMaxSeconds));
    }
  }
  return Status::Ok();
}

bool FitsOn(const ScalingJob& job, const ScalingPool& pool) {
  return job.cpu_milli <= pool.cpu_milli && job.memory_mib <= pool.memory_mib &&
         job.gpus <= pool.gpus;
}

double At95(std::vector<double> values) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const auto rank =
      static_cast<size_t>(std::ceil(0.95 * static_cast<double>(values.size()) - 1e-9));
  return values[std::max<size_t>(rank, 1) - 1];
}

ScalingReport ReportOf(const Stage& stage, std::span<const ScalingJob> jobs,
                       const ScalingOptions& options) {
  ScalingReport report;
  report.policy = options.policy;
  if (IsBaseline(options.policy)) report.layout = options.layout;
  report.window = options.window;
  report.jobs = stage.ended();
  for (const ScalingJob& job : jobs) {
    report.asked_gpu_hours += job.duration / kHour * SlotsOf(job) / ScalingModel().slots();
  }
  for (const StageNode& node : stage.nodes()) {
    const double hours = (node.gone - node.asked) / kHour;
    report.node_hours += hours;
    report.cost += hours * stage.options().pools[node.pool].gpus;
  }
  const std::vector<double>& waits = stage.waits();
  report.mean_wait = std::accumulate(waits.begin(), waits.end(), 0.0) /
                     static_cast<double>(std::max<size_t>(waits.size(), 1));
  report.p95_wait = At95(waits);
  report.max_nodes = stage.max_nodes();
  report.moves = stage.moves();
  return report;
}

}  // namespace

std::string_view ScalingPolicyName(ScalingPolicy policy) {
  return std::ranges::find(kNames, policy, [](const auto& entry) { return entry.first; })->second;
}

Result<ScalingPolicy> ParseScalingPolicy(std::string_view name) {
  for (const auto& [policy, text] : kNames) {
    if (text == name) return policy;
  }
  for (const auto& [policy, text] : kDeprecatedNames) {
    if (text == name) return policy;
  }
  return Invalid(fmt::format(
      "unknown policy \"{}\"; there are unschedulable, unschedulable+packing, repartition, "
      "repartition+scale-down and all",
      name));
}

const std::vector<ScalingPolicy>& ScalingPolicies() {
  static const std::vector<ScalingPolicy> kPolicies = {
      ScalingPolicy::kUnschedulable, ScalingPolicy::kUnschedulablePacking,
      ScalingPolicy::kRepartition, ScalingPolicy::kRepartitionScaleDown, ScalingPolicy::kAll};
  return kPolicies;
}

bool IsBaseline(ScalingPolicy policy) {
  return policy == ScalingPolicy::kUnschedulable || policy == ScalingPolicy::kUnschedulablePacking;
}

std::vector<ScalingPool> DefaultScalingPools() {
  return {{"two", 2, 32'000, 262'144, 1000}, {"eight", 8, 128'000, 1'048'576, 1000}};
}

Result<ScalingReport> RunScaling(std::span<const ScalingJob> jobs, const ScalingOptions& options) {
  NOS_RETURN_IF_ERROR(Check(options));
  std::vector<ScalingJob> fitting;
  std::ranges::copy_if(jobs, std::back_inserter(fitting), [&](const ScalingJob& job) {
    return std::ranges::any_of(options.pools,
                               [&](const ScalingPool& pool) { return FitsOn(job, pool); });
  });
  StageOptions on{options.pools, options.start_seconds, options.restart_seconds,
                  options.on_progress};
  const bool is_nos = !IsBaseline(options.policy);
  StaticLayout layout;
  if (!is_nos) {
    NOS_ASSIGN(layout, FindStaticLayout(options.layout));
    on.pools = StaticPools(options.pools, layout);
  }
  Stage stage(fitting, on);
  const std::unique_ptr<Scaler> scaler =
      is_nos ? MakeNosScaler(stage, {options.policy != ScalingPolicy::kRepartition,
                                     options.policy == ScalingPolicy::kAll, options.window,
                                     options.repartition_seconds})
             : MakeUnschedulableScaler(stage, layout, options.window,
                                       options.policy == ScalingPolicy::kUnschedulablePacking);
  NOS_RETURN_IF_ERROR(stage.Run(*scaler));
  if (const auto fault = FindFault(fitting, on, stage.log())) return Internal(ToText(*fault));
  ScalingReport report = ReportOf(stage, fitting, options);
  report.left_out = jobs.size() - fitting.size();
  return report;
}

}  // namespace nos::study
