#include "study/openb/fgd.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace nos::study {
namespace {

using scheduling::packing::Fits;
using scheduling::packing::kWholeGpu;
using scheduling::packing::Node;
using scheduling::packing::PodKind;
using scheduling::packing::Score;

constexpr double kTypicalShare = 0.95;

int64_t IdleMilli(const Node& node) {
  return std::accumulate(node.gpu_milli.begin(), node.gpu_milli.end(), int64_t{0});
}

int64_t FragmentFor(const Node& node, const PodKind& pod) {
  if (pod.gpus == 0 || !Fits(node, pod)) return IdleMilli(node);
  int64_t fragment = 0;
  for (const int left : node.gpu_milli) fragment += left < pod.milli ? left : 0;
  return fragment;
}

int32_t ScoreAfter(const Node& before, double fragmentation, const PodKind& pod,
                   const std::vector<int>& devices, std::span<const TypicalPod> typical) {
  Node after = before;
  Take(after, pod, devices);
  const double fall = (fragmentation - Fragmentation(after, typical)) / kWholeGpu;
  return static_cast<int32_t>(100 / (1 + std::exp(-fall)));
}

}  // namespace

std::vector<TypicalPod> TypicalPods(std::span<const PodKind> trace) {
  std::map<PodKind, int64_t> counts;
  for (PodKind kind : trace) {
    kind.memory_mib = 0;
    ++counts[kind];
  }
  std::vector<std::pair<int64_t, PodKind>> sorted;
  sorted.reserve(counts.size());
  for (const auto& [kind, count] : counts) sorted.emplace_back(count, kind);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  const double enough = kTypicalShare * static_cast<double>(trace.size());
  std::vector<TypicalPod> typical;
  double covered = 0;
  for (const auto& [count, kind] : sorted) {
    if (covered >= enough) break;
    typical.push_back({kind, static_cast<double>(count)});
    covered += static_cast<double>(count);
  }
  for (TypicalPod& pod : typical) pod.share /= covered;
  return typical;
}

double Fragmentation(const Node& node, std::span<const TypicalPod> typical) {
  double fragmentation = 0;
  for (const TypicalPod& pod : typical) {
    fragmentation += pod.share * static_cast<double>(FragmentFor(node, pod.kind));
  }
  return fragmentation;
}

std::optional<Score> FgdScore(const Node& node, const PodKind& pod,
                              std::span<const TypicalPod> typical) {
  if (!Fits(node, pod)) return std::nullopt;
  const double before = Fragmentation(node, typical);
  if (pod.gpus != 1) {
    return Score{-ScoreAfter(node, before, pod, FirstDevices(node, pod), typical)};
  }
  Score best{1};
  for (size_t i = 0; i < node.gpu_milli.size(); ++i) {
    if (node.gpu_milli[i] < pod.milli) continue;
    const int device = static_cast<int>(i);
    const int32_t cost = -ScoreAfter(node, before, pod, {device}, typical);
    if (cost < best.cost) best = {cost, device};
  }
  return best;
}

}  // namespace nos::study
