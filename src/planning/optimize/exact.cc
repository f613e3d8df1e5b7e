#include "planning/optimize/exact.h"

#include <algorithm>
#include <bit>

#include "planning/model/radix.h"
#include "planning/optimize/realise.h"

namespace nos::planning {
namespace {

constexpr size_t kMaxSets = size_t{1} << 16;      // sets of pods, or of slices
constexpr size_t kMaxNodeSets = size_t{1} << 19;  // nodes x sets of pods
constexpr size_t kMaxPairs = 4'000'000;           // pairs of sets that are compared

// Marks all vectors that are less than or equal to a marked one.
void CloseDownwards(const Radix& radix, std::vector<bool>& marked) {
  for (size_t d = 0; d < radix.digits(); ++d) {
    for (size_t v = marked.size(); v-- > 0;) {
      if (marked[v] && radix.Digit(v, d) > 0) marked[v - radix.stride(d)] = true;
    }
  }
}

// The maximal vectors of a downward closed set.
std::vector<size_t> MaximalOf(const Radix& radix, const std::vector<bool>& marked) {
  std::vector<size_t> maximal;
  for (size_t v = 0; v < marked.size(); ++v) {
    if (!marked[v]) continue;
    bool covered = false;
    for (size_t d = 0; d < radix.digits() && !covered; ++d) {
      covered = radix.Digit(v, d) < radix.limit(d) && marked[v + radix.stride(d)];
    }
    if (!covered) maximal.push_back(v);
  }
  return maximal;
}

class ExactSolver {
 public:
  ExactSolver(const Problem& problem, GpuStates& states, const std::vector<int>& candidates)
      : problem_(problem),
        draft_(problem, states, Draft::Free::kKeep),
        classes_(candidates),
        pods_(PodLimits(problem, candidates), kMaxSets),
        slices_(SliceLimits(problem, candidates), kMaxSets) {}

  std::optional<ExactResult> Run() {
    if (pods_.size() == 0 || slices_.size() == 0) return std::nullopt;
    if (pods_.size() * problem_.nodes.size() > kMaxNodeSets) return std::nullopt;
    reach_.emplace_back(pods_.size());
    reach_[0][0] = true;
    for (size_t n = 0; n < problem_.nodes.size(); ++n) {
      if (!AddNode(static_cast<int>(n))) return std::nullopt;
    }
    if (!Build(Best())) return std::nullopt;
    return ExactResult{std::move(draft_), MostPods()};
  }

 private:
  static std::vector<int> PodLimits(const Problem& problem, const std::vector<int>& classes) {
    std::vector<int> limits;
    limits.reserve(classes.size());
    for (const int c : classes) limits.push_back(problem.classes[c].count);
    return limits;
  }
  static std::vector<int> SliceLimits(const Problem& problem, const std::vector<int>& classes) {
    std::vector<int> limits(problem.slices.size());
    for (const int c : classes) {
      for (const SliceCount& s : problem.classes[c].slices) {
        limits[s.slice] += s.count * problem.classes[c].count;
      }
    }
    return limits;
  }

  // The vectors of slices that the GPUs of the node can provide together. Empty if there are too
  // many.
  std::vector<bool> SlicesOf(int node) {
    std::vector<int> most;
    for (size_t s = 0; s < problem_.slices.size(); ++s) most.push_back(slices_.limit(s));
    std::vector<bool> can(slices_.size());
    can[0] = true;
    std::vector<size_t> front = {0};
    const ProblemNode& where = problem_.nodes[node];
    for (int g = where.first_gpu; g < where.first_gpu + where.gpu_count; ++g) {
      std::vector<bool> next(slices_.size());
      const auto sets = draft_.states().sets().Within(draft_.gpu(g), most);
      if (!sets) return {};
      for (const Counts& set : *sets) {
        size_t number = 0;
        for (size_t s = 0; s < set.size(); ++s) {
          number += std::min<size_t>(set[s], slices_.limit(s)) * slices_.stride(s);
        }
        for (const size_t v : front) next[slices_.Add(v, number)] = true;
        pairs_ += front.size();
      }
      CloseDownwards(slices_, next);
      front = MaximalOf(slices_, next);
      can = std::move(next);
    }
    return can;
  }

  // Marks all sets that extend `set` by classes from index `from` and fit on the node.
  void Enumerate(int node, size_t from, size_t set, size_t slices, std::vector<int64_t>& asked) {
    holds_[set] = true;
    for (size_t i = from; i < classes_.size(); ++i) {
      const PodClass& cls = problem_.classes[classes_[i]];
      if (!problem_.allowed[cls.allowed][node]) continue;
      if (pods_.Digit(set, i) == pods_.limit(i)) continue;
      size_t more = slices;
      for (const SliceCount& s : cls.slices) more += s.count * slices_.stride(s.slice);
      if (!problem_.nodes[node].slices_as_resources && !can_[more]) continue;
      for (size_t r = 0; r < asked.size(); ++r) asked[r] += cls.requests[r];
      if (draft_.Covers(asked, node)) Enumerate(node, i, set + pods_.stride(i), more, asked);
      for (size_t r = 0; r < asked.size(); ++r) asked[r] -= cls.requests[r];
    }
  }

  bool AddNode(int node) {
    can_ = SlicesOf(node);
    if (can_.empty()) return false;
    holds_.assign(pods_.size(), false);
    std::vector<int64_t> asked(problem_.dimensions);
    Enumerate(node, 0, 0, 0, asked);
    const std::vector<size_t>& sets = node_sets_.emplace_back(MaximalOf(pods_, holds_));
    const std::vector<size_t> before = MaximalOf(pods_, reach_.back());
    pairs_ += sets.size() * before.size();
    if (pairs_ > kMaxPairs) return false;
    std::vector<bool> reach(pods_.size());
    for (const size_t a : before) {
      for (const size_t b : sets) reach[pods_.Add(a, b)] = true;
    }
    CloseDownwards(pods_, reach);
    reach_.push_back(std::move(reach));
    return true;
  }

  std::vector<int64_t> ScoreOf(size_t set) const {
    std::vector<int64_t> score(problem_.levels);
    for (size_t i = 0; i < classes_.size(); ++i) {
      const PodClass& cls = problem_.classes[classes_[i]];
      score[cls.level] += pods_.Digit(set, i) * (cls.value * kValueUnit + 1);
    }
    return score;
  }

  int SlicesOf(size_t set) const {
    int slices = 0;
    for (size_t i = 0; i < classes_.size(); ++i) {
      const PodClass& cls = problem_.classes[classes_[i]];
      slices += pods_.Digit(set, i) * problem_.shapes[cls.shape].slice_count;
    }
    return slices;
  }

  // The first of the best sets that has the fewest slices: apart from reused free instances it
  // needs the fewest changes.
  size_t Best() const {
    size_t best = 0;
    std::vector<int64_t> best_score = ScoreOf(0);
    for (const size_t set : MaximalOf(pods_, reach_.back())) {
      std::vector<int64_t> score = ScoreOf(set);
      if (score < best_score || (score == best_score && SlicesOf(set) >= SlicesOf(best))) continue;
      best = set;
      best_score = std::move(score);
    }
    return best;
  }

  int MostPods() const {
    int most = 0;
    for (const size_t set : MaximalOf(pods_, reach_.back())) {
      int pods = 0;
      for (size_t i = 0; i < classes_.size(); ++i) pods += pods_.Digit(set, i);
      most = std::max(most, pods);
    }
    return most;
  }

  // Walks back from the last node and places on each node its part of the set.
  bool Build(size_t set) {
    for (size_t n = problem_.nodes.size(); n-- > 0;) {
      const auto it = std::find_if(node_sets_[n].begin(), node_sets_[n].end(), [&](size_t taken) {
        return reach_[n][pods_.Subtract(set, taken)];
      });
      if (it == node_sets_[n].end()) return false;
      const size_t rest = pods_.Subtract(set, *it);
      std::vector<int> pods;
      for (size_t i = 0; i < classes_.size(); ++i) {
        pods.insert(pods.end(), pods_.Digit(set, i) - pods_.Digit(rest, i), classes_[i]);
      }
      if (!PlaceTogether(draft_, static_cast<int>(n), pods)) return false;
      set = rest;
    }
    return true;
  }

  const Problem& problem_;
  Draft draft_;
  const std::vector<int> classes_;
  const Radix pods_, slices_;
  std::vector<bool> can_, holds_;               // of the current node
  std::vector<std::vector<size_t>> node_sets_;  // by node: maximal sets of pods that fit
  std::vector<std::vector<bool>> reach_;        // after n nodes: sets of pods that can be placed
  size_t pairs_ = 0;
};

}  // namespace

std::optional<ExactResult> SolveExactly(const Problem& problem, GpuStates& states,
                                        const std::vector<int>& candidates) {
  return ExactSolver(problem, states, candidates).Run();
}

}  // namespace nos::planning
