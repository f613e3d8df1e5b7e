// Several policies of the scaling simulation on the same jobs, over seeds, and what they cost at
// equal waiting time.
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

// Bursts, or the openb trace where there is one.
struct ScalingTrace {
  std::optional<OpenbFile> openb;
  OpenbWindow window;   // of openb; seed n begins n - 1 windows later
  BurstOptions bursts;  // its seed is the study's
};

struct ScalingStudyOptions {
  ScalingTrace trace;
  ScalingOptions run;  // its policy, layout and progress do not matter
  std::vector<ScalingPolicy> policies = ScalingPolicies();
  std::string layout;  // of the baselines; "": each there is
  uint64_t seed = 1;   // the first
  int seeds = 1;       // 1..1000
  // Each policy also with other windows, and pairs at equal waiting. Needs a baseline.
  bool equal_waiting = false;
  std::function<void(const std::string& text)> on_progress;
};

// Seconds. The window of `run` is one more.
inline constexpr double kWindowsTried[] = {120, 300, 600, 1200, 2400};

// One policy of nos beside the baselines, of one seed. Of the one that is tuned the cheapest run is
// taken whose jobs wait no longer than the other's; the other has the window of the options (and,
// if it is the baseline, the way to place pods and the layout that are cheapest with it).
struct ScalingPair {
  ScalingPolicy policy = ScalingPolicy::kRecut;
  bool nos_is_tuned = true;
  uint64_t seed = 0;
  std::optional<ScalingReport> baseline, nos;  // none: whatever the window, it waits longer

  bool complete() const { return baseline && nos; }
  // The part of the cost that nos saves; below 0: it costs more. REQUIRES: complete().
  double Saved() const { return baseline->cost > 0 ? 1 - nos->cost / baseline->cost : 0; }
};

// By policy, who is tuned, and seed. `window`: of those that are not tuned.
std::vector<ScalingPair> PairsAtEqualWaiting(std::span<const ScalingReport> runs, double window);

struct ScalingStudy {
  std::string trace;  // "bursts", or the file's name
  double window = 0;  // of the options
  std::vector<ScalingReport> runs;
  std::vector<ScalingPair> pairs;
};

// Error: RunScaling's, with the policy; kInvalid: no seeds, no policies, nothing to compare with.
Result<ScalingStudy> RunScalingStudy(const ScalingStudyOptions& options);

// trace, window; runs[]: policy, layout, window, seed, jobs, leftOut, askedGpuHours, nodeHours,
// cost, meanWaitSeconds, p95WaitSeconds, mostNodes, moves; pairs[]: policy, tuned, seed, saved
// (null where nothing waits as little), baseline, nos (as in runs, or null).
Json ToJson(const ScalingStudy& study);
// Tables for people, at most 100 columns wide: means over seeds, of the runs with the window of the
// options; then the pairs.
std::string ToText(const ScalingStudy& study);

}  // namespace nos::study
