// Compares policies of the scaling simulation on the same jobs, over several seeds, and their cost
// at equal waiting time.
//
//   ScalingStudyOptions options;
//   options.equal_waiting = true;
//   NOS_ASSIGN(ScalingStudy study, RunScalingStudy(options));
//   std::cout << ToText(study);
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codec/json.h"
#include "study/scaling/simulation.h"

namespace nos::study {

// The openb trace if given, else bursts.
struct ScalingTrace {
  std::optional<OpenbFile> openb;
  OpenbWindow window;   // of openb; seed n starts n - 1 windows later
  BurstOptions bursts;  // uses the seed of the study
};

struct ScalingStudyOptions {
  ScalingTrace trace;
  ScalingOptions run;  // its policy, layout and progress are ignored
  std::vector<ScalingPolicy> policies = ScalingPolicies();
  std::string layout;  // of the baselines; "": all layouts
  uint64_t seed = 1;   // the first seed
  int seeds = 1;       // 1..1000
  // Also runs each policy with other windows, and compares at equal waiting time. Needs a baseline.
  bool equal_waiting = false;
  std::function<void(const std::string& text)> on_progress;
};

// Seconds. The window of `run` is tried in addition.
inline constexpr double kWindowsTried[] = {120, 300, 600, 1200, 2400};

// A policy of nos and the baselines with one seed. The untuned side uses the window of the options
// (and, if it is the baseline, the cheapest combination of placement and layout). The tuned side
// uses its cheapest run whose jobs do not wait longer.
struct ScalingPair {
  ScalingPolicy policy = ScalingPolicy::kRepartition;
  bool nos_is_tuned = true;
  uint64_t seed = 0;
  std::optional<ScalingReport> baseline, nos;  // nullopt: it waits longer with every window

  bool complete() const { return baseline && nos; }
  // The share of the cost that nos saves; negative if it costs more. REQUIRES: complete().
  double Saved() const { return baseline->cost > 0 ? 1 - nos->cost / baseline->cost : 0; }
};

// Sorted by policy, tuned side, and seed. `window`: of the untuned side.
std::vector<ScalingPair> PairsAtEqualWaiting(std::span<const ScalingReport> runs, double window);

struct ScalingStudy {
  std::string trace;  // "bursts", or the file name
  double window = 0;  // of the options
  std::vector<ScalingReport> runs;
  std::vector<ScalingPair> pairs;
};

// Error: the error of RunScaling, with the policy; kInvalid: no seeds, no policies, no baseline.
Result<ScalingStudy> RunScalingStudy(const ScalingStudyOptions& options);

// trace, window; runs[]: policy, layout, window, seed, jobs, leftOut, askedGpuHours, nodeHours,
// cost, meanWaitSeconds, p95WaitSeconds, mostNodes, moves; pairs[]: policy, tuned, seed, saved
// (null if one side has no run), baseline, nos (as in runs, or null).
Json ToJson(const ScalingStudy& study);
// Tables, at most 100 columns wide: means over seeds of the runs with the window of the options,
// then the pairs.
std::string ToText(const ScalingStudy& study);

}  // namespace nos::study
