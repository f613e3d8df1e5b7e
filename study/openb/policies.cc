#include "study/openb/policies.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "study/openb/fgd.h"
#include "study/openb/scheduler_placer.h"

namespace nos::study {
namespace {

using scheduling::packing::Choice;
using scheduling::packing::Fits;
using scheduling::packing::Node;
using scheduling::packing::Packer;
using scheduling::packing::PodKind;
using scheduling::packing::Score;
using scheduling::packing::ScoreMemo;

using Nodes = std::vector<Node>;

constexpr std::array<std::pair<OpenbPolicy, std::string_view>, 5> kNames = {{
    {OpenbPolicy::kNos, "nos"},
    {OpenbPolicy::kNosScheduler, "nos-scheduler"},
    {OpenbPolicy::kBestFit, "best-fit"},
    {OpenbPolicy::kRandom, "random"},
    {OpenbPolicy::kFgd, "fgd"},
}};

class NosPlacer : public OpenbPlacer {
 public:
  explicit NosPlacer(const Nodes& nodes) : packer_(nodes) {}

  std::optional<Choice> Choose(const PodKind& pod) override {
    packer_.Precompute(pod);
    return packer_.Choose(pod);
  }
  void Placed(const PodKind& pod, const Choice& choice) override { packer_.Place(pod, choice); }

 private:
  Packer packer_;
};

class RandomPlacer : public OpenbPlacer {
 public:
  RandomPlacer(const Nodes& nodes, Random random) : nodes_(nodes), random_(random) {}

  std::optional<Choice> Choose(const PodKind& pod) override {
    std::vector<size_t> feasible;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (Fits(nodes_[i], pod)) feasible.push_back(i);
    }
    if (feasible.empty()) return std::nullopt;
    const size_t node = feasible[random_.Below(feasible.size())];
    return Choice{node, Devices(nodes_[node], pod)};
  }
  void Placed(const PodKind&, const Choice&) override {}

 private:
  std::vector<int> Devices(const Node& node, const PodKind& pod) {
    std::vector<int> devices;
    for (size_t i = 0; pod.gpus > 0 && i < node.gpu_milli.size(); ++i) {
      if (node.gpu_milli[i] >= pod.milli) devices.push_back(static_cast<int>(i));
    }
    random_.Shuffle(devices);
    devices.resize(pod.gpus);
    std::sort(devices.begin(), devices.end());
    return devices;
  }

  const Nodes& nodes_;
  Random random_;
};

// A policy whose score for a node depends on that node and the pod only.
class ScoringPlacer : public OpenbPlacer {
 public:
  explicit ScoringPlacer(const Nodes& nodes) : nodes_(nodes), memo_(nodes.size()) {}

  std::optional<Choice> Choose(const PodKind& pod) override {
    const auto best = memo_.Lowest(
        pod, [&](size_t node) { return ScoreNode(nodes_[node], pod); },
        [](size_t) { return true; });
    if (!best) return std::nullopt;
    if (best->score.device >= 0) return Choice{best->node, {best->score.device}};
    return Choice{best->node, FirstDevices(nodes_[best->node], pod)};
  }
  void Placed(const PodKind&, const Choice& choice) override { memo_.Touch(choice.node); }

 protected:
  virtual std::optional<Score> ScoreNode(const Node& node, const PodKind& pod) const = 0;

 private:
  const Nodes& nodes_;
  ScoreMemo memo_;
};

class BestFitPlacer : public ScoringPlacer {
 public:
  using ScoringPlacer::ScoringPlacer;

 protected:
  // The published score is int(100 (1 - left)), then stretched so that the range is 0 to 100, which
  // does not change the order. CPU and GPU have equal weights, relative to 128 cores and 8 GPUs.
  std::optional<Score> ScoreNode(const Node& node, const PodKind& pod) const override {
    if (!Fits(node, pod)) return std::nullopt;
    const int64_t idle = std::accumulate(node.gpu_milli.begin(), node.gpu_milli.end(), int64_t{0});
    const double left =
        0.5 * static_cast<double>(node.cpu_milli) / 128000 + 0.5 * static_cast<double>(idle) / 8000;
    return Score{-static_cast<int32_t>(100 * (1 - left)), pod.gpus == 1 ? Tightest(node, pod) : -1};
  }

 private:
  static int Tightest(const Node& node, const PodKind& pod) {
    int best = -1;
    for (int i = 0; i < static_cast<int>(node.gpu_milli.size()); ++i) {
      if (node.gpu_milli[i] < pod.milli) continue;
      if (best < 0 || node.gpu_milli[i] < node.gpu_milli[best]) best = i;
    }
    return best;
  }
};

class FgdPlacer : public ScoringPlacer {
 public:
  FgdPlacer(const Nodes& nodes, std::span<const PodKind> pods)
      : ScoringPlacer(nodes), typical_(TypicalPods(pods)) {}

 protected:
  std::optional<Score> ScoreNode(const Node& node, const PodKind& pod) const override {
    return FgdScore(node, pod, typical_);
  }

 private:
  std::vector<TypicalPod> typical_;
};

}  // namespace

std::string_view OpenbPolicyName(OpenbPolicy policy) {
  return std::find_if(kNames.begin(), kNames.end(),
                      [&](const auto& entry) { return entry.first == policy; })
      ->second;
}

Result<OpenbPolicy> ParseOpenbPolicy(std::string_view name) {
  for (const auto& [policy, text] : kNames) {
    if (text == name) return policy;
  }
  return Invalid(
      fmt::format("no policy '{}'; there are nos, nos-scheduler, best-fit, random and fgd", name));
}

std::unique_ptr<OpenbPlacer> MakeOpenbPlacer(OpenbPolicy policy, const Nodes& nodes,
                                             std::span<const PodKind> pods, Random random) {
  switch (policy) {
    case OpenbPolicy::kNosScheduler:
      return MakeSchedulerPlacer(nodes);
    case OpenbPolicy::kBestFit:
      return std::make_unique<BestFitPlacer>(nodes);
    case OpenbPolicy::kRandom:
      return std::make_unique<RandomPlacer>(nodes, random);
    case OpenbPolicy::kFgd:
      return std::make_unique<FgdPlacer>(nodes, pods);
    case OpenbPolicy::kNos:
      break;
  }
  return std::make_unique<NosPlacer>(nodes);
}

}  // namespace nos::study
