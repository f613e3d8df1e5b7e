#include "scheduling/testing/follow.h"

#include <fmt/core.h>

#include <set>

namespace nos::scheduling::testing {
namespace {

using cluster::ClusterSnapshot;
using cluster::NodeInfo;
using cluster::Pod;

class Follower {
 public:
  Follower(const Plugin& plugin, const Pod& pod, ClusterSnapshot snapshot, Random& random)
      : pre_filter_(dynamic_cast<const PreFilterPlugin&>(plugin)),
        filter_(dynamic_cast<const FilterPlugin&>(plugin)),
        scorer_(dynamic_cast<const ScorePlugin&>(plugin)),
        pod_(pod),
        snapshot_(std::move(snapshot)),
        random_(random),
        feasible_(snapshot_.size(), true) {
    Refilter();
    Rescore();
  }

  std::string Step(const std::vector<Pod>& pool) {
    const size_t i = random_.Below(snapshot_.size());
    const NodeInfo& node = snapshot_.node(i);
    const std::string name = node.node->meta.name;
    touched_ = {i};
    if (random_.Below(4) == 0) {
      FlipFeasible(i);
    } else if (!node.pods.empty() && random_.Chance(0.45)) {
      const std::shared_ptr<const Pod> gone = node.pods[random_.Below(node.pods.size())];
      if (!snapshot_.Unbind(*gone, name).ok()) return "cannot unbind";
      Follow(*gone, false, i);
    } else {
      Pod fresh = pool[random_.Below(pool.size())];
      fresh.meta.name = fmt::format("fresh-{}", next_++);
      fresh.node_name = name;
      if (!snapshot_.Bind(std::make_shared<const Pod>(fresh), name).ok()) return "cannot bind";
      Follow(fresh, true, i);
    }
    return Compare();
  }

 private:
  void Refilter() {
    state_ = {};
    skipped_ = pre_filter_.PreFilter(pod_, snapshot_, state_).skip;
    verdicts_ = Verdicts(state_, skipped_);
  }
  void Rescore() {
    score_state_ = {};
    scored_ = scorer_.PreScore(pod_, snapshot_, Feasible(), score_state_);
    scores_ = Scores(score_state_, scored_);
  }

  void FlipFeasible(size_t i) {
    feasible_[i] = !feasible_[i];
    const auto anew = scorer_.UpdateFeasible(snapshot_.node(i), feasible_[i], score_state_);
    if (anew == ScorePlugin::Recompute::kPreScore) Rescore();
    if (anew == ScorePlugin::Recompute::kScores) scores_ = Scores(score_state_, scored_);
  }

  void Follow(const Pod& other, bool came, size_t i) {
    const auto touch = [this](std::string_view key, std::string_view value) {
      for (size_t n = 0; n < snapshot_.size(); ++n) {
        const auto& labels = snapshot_.node(n).node->meta.labels;
        const auto label = labels.find(key);
        if (label != labels.end() && label->second == value) touched_.insert(n);
      }
    };
    const NodeInfo& node = snapshot_.node(i);
    const CycleState before = state_;
    const std::vector<std::string> said = Verdicts(before, false);
    if (!pre_filter_.Update(pod_, other, came, node, state_, touch)) Refilter();
    copied_ = copied_ && said == Verdicts(before, false);
    if (!scorer_.UpdateScore(pod_, other, came, node, score_state_, touch)) Rescore();
  }

  std::string Compare() {
    if (!copied_) return "Update changed a copy of the state";
    CycleState state, score_state;
    const bool skipped = pre_filter_.PreFilter(pod_, snapshot_, state).skip;
    const std::vector<std::string> verdicts = Verdicts(state, skipped);
    const bool scored = scorer_.PreScore(pod_, snapshot_, Feasible(), score_state);
    const std::vector<int64_t> scores = Scores(score_state, scored);
    if (verdicts != Verdicts(state_, skipped_)) return "verdicts of the kept state differ";
    if (scores != Scores(score_state_, scored_)) return "scores of the kept state differ";
    for (size_t n = 0; n < snapshot_.size(); ++n) {
      if (touched_.contains(n)) {
        verdicts_[n] = verdicts[n];
        scores_[n] = scores[n];
      }
      if (verdicts_[n] != verdicts[n]) return "a verdict changed on a node that was not touched";
      if (scores_[n] != scores[n]) return "a score changed on a node that was not touched";
    }
    return "";
  }

  std::vector<std::string> Verdicts(const CycleState& state, bool skipped) const {
    std::vector<std::string> verdicts;
    for (size_t n = 0; n < snapshot_.size(); ++n) {
      const Verdict verdict =
          skipped ? Verdict::Fits() : filter_.Filter(state, pod_, snapshot_.node(n));
      verdicts.push_back(fmt::format("{} {}", static_cast<int>(verdict.kind), verdict.message));
    }
    return verdicts;
  }
  std::vector<int64_t> Scores(const CycleState& state, bool scored) const {
    std::vector<int64_t> scores;
    for (size_t n = 0; n < snapshot_.size(); ++n) {
      scores.push_back(scored ? scorer_.Score(state, pod_, snapshot_.node(n)) : 0);
    }
    return scores;
  }
  std::vector<const NodeInfo*> Feasible() const {
    std::vector<const NodeInfo*> nodes;
    for (size_t n = 0; n < snapshot_.size(); ++n) {
      if (feasible_[n]) nodes.push_back(&snapshot_.node(n));
    }
    return nodes;
  }

  const PreFilterPlugin& pre_filter_;
  const FilterPlugin& filter_;
  const ScorePlugin& scorer_;
  const Pod& pod_;
  ClusterSnapshot snapshot_;
  Random& random_;
  std::vector<bool> feasible_;
  CycleState state_, score_state_;
  bool skipped_ = false, scored_ = false, copied_ = true;
  std::vector<std::string> verdicts_;
  std::vector<int64_t> scores_;
  std::set<size_t> touched_;
  int next_ = 0;
};

}  // namespace

std::string FollowFault(const Plugin& plugin, const Pod& pod, ClusterSnapshot snapshot,
                        const std::vector<Pod>& pool, int steps, Random& random) {
  Follower follower(plugin, pod, std::move(snapshot), random);
  for (int step = 0; step < steps; ++step) {
    const std::string fault = follower.Step(pool);
    if (!fault.empty()) return fmt::format("step {}: {}", step, fault);
  }
  return "";
}

}  // namespace nos::scheduling::testing
