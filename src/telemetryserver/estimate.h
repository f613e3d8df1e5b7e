// Estimates when pending pods that request GPU slices will start.
//
//   state.SetEstimates(EstimateStarts(state, catalogue));
//
// Pure functions. The simulation advances from one release of a slice to the next. A holder
// releases its slice
//   - at its deletion deadline if it is being deleted ("reclaim");
//   - when similar pods ended, if enough ended before ("history"): the median of those that ran
//     longer than this one has run so far;
// otherwise at an unknown time. Pending pods are placed by priority, then by pending time.
// Placement takes the usual time of a plan ("plan", if no slice must be released first), and a
// placed pod runs as long as similar pods did.
//
// Affinity, taints and quotas are ignored: a pod that they keep pending starts later than
// estimated. A pod with scheduling gates, or one that no node can ever take according to its
// scheduler, has no estimate and takes no place.
#pragma once

#include <map>
#include <string>

#include "gpu/catalogue.h"
#include "telemetryserver/state.h"

namespace nos::telemetryserver {

inline constexpr std::string_view kByPlan = "plan", kByReclaim = "reclaim", kByHistory = "history";
inline constexpr std::string_view kNoHistory = "no history";
inline constexpr std::string_view kTooMany = "too many pods wait";
inline constexpr std::string_view kGated = "scheduling gates hold the pod";
inline constexpr std::string_view kNoNode = "no node of the cluster can ever run the pod";
// Maximum number of estimated pods, in order; minimum number of runs that form a history.
inline constexpr size_t kMaxEstimated = 100, kMinRuns = 3;

// Estimate for each pod that is pending for a GPU, by uid.
std::map<std::string, Estimate> EstimateStarts(const State& state, const gpu::Catalogue& catalogue);

// Estimated total run time of a pod that has run for `age`; 0: unknown.
telemetry::Millis TypicalRun(const std::deque<telemetry::Millis>& runs, telemetry::Millis age);

}  // namespace nos::telemetryserver
