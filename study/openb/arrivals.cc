#include "study/openb/arrivals.h"

#include <fmt/format.h>

namespace nos::study {
namespace {

using scheduling::packing::PodKind;

constexpr size_t kMaxArrivals = 2'000'000;

}  // namespace

int64_t RequestedMilli(const PodKind& pod) { return int64_t{pod.gpus} * pod.milli; }

Result<std::vector<PodKind>> ArrangeArrivals(std::span<const PodKind> trace, int64_t target_milli,
                                             Random random) {
  std::vector<PodKind> pods(trace.begin(), trace.end());
  random.Shuffle(pods);
  int64_t total = 0;
  for (const PodKind& pod : pods) total += RequestedMilli(pod);
  while (total > target_milli) {
    std::swap(pods[random.Below(pods.size())], pods.back());
    total -= RequestedMilli(pods.back());
    pods.pop_back();
  }
  while (pods.size() <= kMaxArrivals) {
    const PodKind& pod = trace[random.Below(trace.size())];
    if (total + pod.milli > target_milli) return pods;
    total += RequestedMilli(pod);
    pods.push_back(pod);
  }
  return Invalid(
      fmt::format("inflation: more than {} pods would arrive; use a smaller one", kMaxArrivals));
}

}  // namespace nos::study
