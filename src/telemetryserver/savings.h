// What repartitioning was worth: the pods of a past time in the same queue on GPUs that are never
// repartitioned.
//
//   NOS_ASSIGN(const Savings savings, SavingsOf(past, catalogue));
//   savings.alternatives[0].gpus.middle   // GPUs that whole-GPU scheduling would have needed
//
// Two alternatives: each pod has whole GPUs, and each GPU has a MIG layout (or equal shares) that
// never changes. Both are given what a real cluster lacks: starts cost no time, CPU and memory of
// nodes never end, nodes do not matter, and the static layouts are chosen with knowledge of the
// demand. So the figures are lower bounds.
//
// Pure, and deterministic.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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
  // Number of GPUs, in the proportions that there were, with which the pods would have waited no
  // longer than they did; not less than there were.
  Spread gpus{};
  bool enough =
      true;  // false: not even kMaxGrowth times the GPUs suffice, and `gpus` is that limit
  // Of the static layouts on the same GPUs, chosen for all pods: number of GPUs by layout.
  std::vector<std::pair<std::string, int64_t>> layouts{};
};
inline constexpr std::string_view kWholeGpus = "whole", kStaticLayouts = "static";

struct Savings {
  telemetry::Millis from = 0, to = 0;
  int64_t gpus = 0;      // that existed in the time
  double gpu_hours = 0;  // for which they did
  // As it was: pods that requested GPUs, those of them that ran, and how long all waited together.
  size_t pods = 0, started = 0;
  double waiting_hours = 0;
  telemetry::Millis median_wait = 0, p95_wait = 0;  // of those that ran
  size_t unknown_runs = 0;  // pods that never ran: their run times are drawn from similar pods
  size_t left_out = 0;      // pods that were deleted before they ran, or that no GPU can serve
  std::vector<Alternative> alternatives{};  // empty: there were no GPUs or no pods
};

inline constexpr int kSavingsReplays = 7;
inline constexpr int64_t kMaxGrowth = 16;

// Each replay draws the unknown run times from those of similar pods. All but the first one choose
// the static layouts for a demand in which each pod has a random weight (Bayesian bootstrap, Rubin
// 1981).
Savings SavingsOf(const Past& past, const gpu::Catalogue& catalogue);

}  // namespace nos::telemetryserver
