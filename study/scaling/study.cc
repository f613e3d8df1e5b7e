#include "study/scaling/study.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <set>
#include <utility>

#include "study/scaling/unschedulable.h"

namespace nos::study {
namespace {

Result<std::vector<ScalingJob>> JobsOf(const ScalingTrace& trace, uint64_t seed) {
  if (trace.openb) {
    OpenbWindow window = trace.window;
    window.first_day += (static_cast<double>(seed) - 1) * window.days;
    return OpenbJobs(*trace.openb, window);
  }
  BurstOptions bursts = trace.bursts;
  bursts.seed = seed;
  return BurstJobs(bursts);
}

Status Check(const ScalingStudyOptions& options) {
  if (options.seeds < 1 || options.seeds > 1000) return Invalid("seeds must be 1 to 1000");
  if (options.policies.empty()) return Invalid("there are no policies");
  const BurstOptions& bursts = options.trace.bursts;
  const double days = options.trace.openb ? options.trace.window.days : bursts.days;
  if (!(days > 0 && days <= 1000)) return Invalid("days must be above 0, at most 1000");
  if (!(bursts.slices >= 0 && bursts.slices <= 1)) return Invalid("slices must be 0 to 1");
  if (!(bursts.jobs_a_day > 0 && bursts.jobs_a_day <= 100'000)) {
    return Invalid("jobs-a-day must be above 0, at most 100000");
  }
  if (options.equal_waiting && std::ranges::none_of(options.policies, IsBaseline)) {
    return Invalid("equal waiting needs policy unschedulable, or unschedulable+packing");
  }
  // Checked even if no policy uses it.
  return options.layout.empty() ? Status::Ok() : FindStaticLayout(options.layout).status();
}

// The policy with each layout and window.
std::vector<ScalingOptions> RunsOf(const ScalingStudyOptions& options, ScalingPolicy policy) {
  std::vector<std::string> layouts = {options.layout};
  if (!IsBaseline(policy)) {
    layouts = {""};
  } else if (options.layout.empty()) {
    layouts.clear();
    for (const StaticLayout& layout : StaticLayouts()) layouts.push_back(layout.name);
  }
  std::set<double> windows = {options.run.window};
  if (options.equal_waiting) windows.insert(std::begin(kWindowsTried), std::end(kWindowsTried));
  std::vector<ScalingOptions> runs;
  for (const std::string& layout : layouts) {
    for (const double window : windows) {
      ScalingOptions& run = runs.emplace_back(options.run);
      run.policy = policy;
      run.layout = layout;
      run.window = window;
    }
  }
  return runs;
}

std::string NameOf(const ScalingOptions& run) {
  return fmt::format("{}{}{}, window {} s", ScalingPolicyName(run.policy),
                     run.layout.empty() ? "" : " ", run.layout, run.window);
}

using Runs = std::vector<const ScalingReport*>;

// The cheapest run that does not wait longer than the limit.
std::optional<ScalingReport> Cheapest(const Runs& runs, double most_wait) {
  const ScalingReport* best = nullptr;
  for (const ScalingReport* run : runs) {
    if (run->mean_wait > most_wait) continue;
    if (best == nullptr || run->cost < best->cost) best = run;
  }
  return best == nullptr ? std::nullopt : std::optional(*best);
}

std::optional<ScalingReport> CheapestWith(double window, const Runs& runs) {
  Runs with;
  std::ranges::copy_if(runs, std::back_inserter(with),
                       [&](const ScalingReport* run) { return run->window == window; });
  return Cheapest(with, std::numeric_limits<double>::infinity());
}

}  // namespace

std::vector<ScalingPair> PairsAtEqualWaiting(std::span<const ScalingReport> runs, double window) {
  std::set<uint64_t> seeds;
  for (const ScalingReport& run : runs) seeds.insert(run.seed);
  const auto of = [&](uint64_t seed, const auto& is_wanted) {
    Runs found;
    for (const ScalingReport& run : runs) {
      if (run.seed == seed && is_wanted(run.policy)) found.push_back(&run);
    }
    return found;
  };
  std::vector<ScalingPair> pairs;
  for (const ScalingPolicy policy : ScalingPolicies()) {
    if (IsBaseline(policy)) continue;
    for (const bool nos_is_tuned : {true, false}) {
      for (const uint64_t seed : seeds) {
        const Runs ours = of(seed, [&](ScalingPolicy ran) { return ran == policy; });
        const Runs theirs = of(seed, IsBaseline);
        if (ours.empty() || theirs.empty()) continue;
        ScalingPair pair{policy, nos_is_tuned, seed, {}, {}};
        const auto fixed = CheapestWith(window, nos_is_tuned ? theirs : ours);
        auto tuned =
            fixed ? Cheapest(nos_is_tuned ? ours : theirs, fixed->mean_wait) : std::nullopt;
        pair.baseline = nos_is_tuned ? fixed : tuned;
        pair.nos = nos_is_tuned ? tuned : fixed;
        pairs.push_back(std::move(pair));
      }
    }
  }
  return pairs;
}

Result<ScalingStudy> RunScalingStudy(const ScalingStudyOptions& options) {
  NOS_RETURN_IF_ERROR(Check(options));
  ScalingStudy study;
  study.trace = options.trace.openb ? std::string(options.trace.openb->name) : "bursts";
  study.window = options.run.window;
  for (uint64_t seed = options.seed; seed < options.seed + options.seeds; ++seed) {
    NOS_ASSIGN(const std::vector<ScalingJob> jobs, JobsOf(options.trace, seed));
    for (const ScalingPolicy policy : options.policies) {
      for (ScalingOptions& run : RunsOf(options, policy)) {
        const std::string name = NameOf(run);
        run.on_progress = [&](size_t ended) {
          if (!options.on_progress || ended % 64 != 0) return;
          options.on_progress(
              fmt::format("seed {}, {}: {} of {} jobs", seed, name, ended, jobs.size()));
        };
        Result<ScalingReport> report = RunScaling(jobs, run);
        if (!report.ok()) return report.status().Within(fmt::format("seed {}, {}", seed, name));
        report->seed = seed;
        study.runs.push_back(*std::move(report));
      }
    }
  }
  if (options.equal_waiting) study.pairs = PairsAtEqualWaiting(study.runs, study.window);
  return study;
}

}  // namespace nos::study
