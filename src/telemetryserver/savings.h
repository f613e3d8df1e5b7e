// Estimates what repartitioning was worth: puts the pods of a past time into one queue on GPUs that
// are never repartitioned.
//
//   NOS_ASSIGN(const Savings savings, SavingsOf(past, catalogue, out_of_time));
//   savings.alternatives[0].gpus.middle   // GPUs that whole-GPU scheduling would have needed
//
// Two alternatives: each pod has whole GPUs, and each GPU has a MIG layout (or equal shares) that
// never changes. An estimate. In favour of the alternatives: starts cost no time, CPU and memory of
// nodes never end, nodes do not matter, and the static layouts are chosen with knowledge of the
// demand. Against them: nothing is evicted, and layouts are chosen by a simple rule.
//
// Deterministic, except for `out_of_time`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/function_ref.h"
#include "base/status.h"
#include "gpu/catalogue.h"
#include "telemetryserver/savings/past.h"

namespace nos::telemetryserver {

// Over several replays of one alternative.
struct Spread {
  double low = 0, middle = 0, high = 0;  // smallest, median and largest
};

struct Alternative {
  std::string_view name;  // "whole", "static"
  // On the same GPUs at the same times:
  Spread waiting_hours{};  // of all pods together
  Spread started{};        // pods
  // Mean number of GPUs, in the proportions that there were, with which the pods would have waited
  // no longer than they did; not less than there were.
  Spread gpus{};
  // False: not even kMaxGrowth times the GPUs suffice, and `gpus` is that limit.
  bool enough = true;
  // Number of the same GPUs by layout, as chosen for all pods.
  std::vector<std::pair<std::string, int64_t>> layouts{};
};
inline constexpr std::string_view kWholeGpus = "whole", kStaticLayouts = "static";

struct Savings {
  telemetry::Millis from = 0, to = 0;
  double gpus = 0;       // mean number
  double gpu_hours = 0;  // for which they were reported
  // Measured: pods that requested GPUs, those of them that ran, and the sum of all waiting.
  size_t pods = 0, started = 0;
  double waiting_hours = 0;
  telemetry::Millis median_wait = 0, p95_wait = 0;  // of those that started in the time
  size_t unknown_runs = 0;  // pods that never ran: their run times are drawn from similar pods
  size_t left_out = 0;      // Past::left_out, and pods that no GPU can serve
  std::vector<Alternative> alternatives{};  // empty: there were no GPUs or no pods
};

inline constexpr int kSavingsReplays = 7;
inline constexpr int64_t kMaxGrowth = 16;

// Each replay draws the unknown run times from those of similar pods. All but the first one choose
// the static layouts for a demand in which each pod has a random weight (Bayesian bootstrap, Rubin
// 1981).
// Error: kInvalid: the time has too many kinds of GPUs or requests, or it takes too long.
Result<Savings> SavingsOf(const Past& past, const gpu::Catalogue& catalogue,
                          FunctionRef<bool()> out_of_time);

}  // namespace nos::telemetryserver
