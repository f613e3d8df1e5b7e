// When pods that wait for slices of GPUs will start, as far as that can be told from what is known.
//
//   state.SetEstimates(EstimateStarts(state, catalogue));
//
// Pure. From now on time goes from one end to the next: who holds something is gone
//   - by its deadline, if it is being deleted ("reclaim");
//   - when pods like it were, if enough of them have been seen to end ("history"): the median of
//     those that ran longer than this one has run so far;
// else nobody knows when. Whoever fits then comes, those of higher priority and who wait longest
// first, is cut a place for in the time that plans take ("plan", where nobody has to go before),
// and lasts as long as others like it did.
//
// It knows nothing of affinity, taints and quotas: where these keep a pod waiting, it starts later
// than is said here.
#pragma once

#include <map>
#include <string>

#include "gpu/catalogue.h"
#include "telemetryserver/state.h"

namespace nos::telemetryserver {

inline constexpr std::string_view kByPlan = "plan", kByReclaim = "reclaim", kByHistory = "history";
inline constexpr std::string_view kNoHistory = "no history";
inline constexpr std::string_view kTooMany = "too many pods wait";
// Pods that are looked at, in order; and runs that make a history.
inline constexpr size_t kMostEstimated = 100, kLeastRuns = 3;

// Of each pod that waits for a GPU, by uid.
std::map<std::string, Estimate> EstimateStarts(const State& state, const gpu::Catalogue& catalogue);

// How long something that has run for `age` will have run in the end; 0: nobody knows.
telemetry::Millis TypicalRun(const std::deque<telemetry::Millis>& runs, telemetry::Millis age);

}  // namespace nos::telemetryserver
