#include "planning/optimize/search.h"

#include <algorithm>
#include <optional>
#include <span>

#include "planning/optimize/exact.h"
#include "planning/optimize/greedy.h"
#include "planning/optimize/group_bound.h"
#include "planning/optimize/improve.h"
#include "planning/optimize/realise.h"
#include "planning/optimize/swap.h"
#include "planning/optimize/tidy.h"

namespace nos::planning {
namespace {

constexpr int kMaxProofs = 8;  // levels that are proven one by one
// Limit in steps (GpuStates::work) for work that is necessary even after the time limit.
constexpr int64_t kMaxLateWork = 3'000'000;
constexpr int64_t kMaxWorkOnPossible = 10'000'000;
constexpr size_t kMaxLateClasses = 2000;  // above this, no program is built after the time limit
constexpr int kNearbyNodes = 16;          // on which a pod is tried after the time limit

// By class: true if some node could take one of its pods now. Classes that are not checked, because
// of the time or work limit, count as possible.
std::vector<bool> FindPossible(const Problem& problem, GpuStates& states,
                               const std::function<bool()>& out_of_time) {
  std::vector<bool> possible(problem.classes.size());
  const int64_t start = states.work();
  Draft empty(problem, states, Draft::Free::kKeep);
  std::vector<std::vector<int>> by_shape(problem.shapes.size());
  for (size_t c = 0; c < problem.classes.size(); ++c) {
    if (problem.classes[c].count == 0) continue;  // classes without pods
    by_shape[problem.classes[c].shape].push_back(static_cast<int>(c));
  }
  for (size_t s = 0; s < by_shape.size(); ++s) {
    std::vector<int> left = by_shape[s];  // classes without a node so far
    if (out_of_time() || states.work() - start > kMaxWorkOnPossible) {
      for (const int c : left) possible[c] = true;
      continue;
    }
    const int row = problem.shapes[s].allowed;
    for (int n = 0; n < static_cast<int>(problem.nodes.size()) && !left.empty(); ++n) {
      if (!problem.allowed[row][n] || !empty.Covers(problem.shapes[s].min_requests, n)) continue;
      if (!empty.HasRoom(static_cast<int>(s), n).value_or(true)) continue;
      std::erase_if(left, [&](int c) {
        possible[c] = empty.HasResources(c, n);
        return possible[c];
      });
    }
  }
  return possible;
}

class Searcher {
 public:
  Searcher(const Problem& problem, GpuStates& states, const std::function<bool()>& out_of_time)
      : problem_(problem), states_(states), out_of_time_(out_of_time) {}

  SearchResult Run() {
    // 1. Leave out classes that fit nowhere: they would only cost time.
    const std::vector<bool> possible = FindPossible(problem_, states_, out_of_time_);
    for (size_t c = 0; c < possible.size(); ++c) {
      if (!possible[c]) continue;
      candidates_.push_back(static_cast<int>(c));
      wanted_ += problem_.classes[c].count;
    }
    // 2. Maximize the score without regard to changes, because a pod served outweighs any number of
    //    changes.
    int bound = 0;
    const Draft best = FindBest(&bound);
    bool complete = !TimeIsUp();
    // 3. Reduce changes for exactly these pods.
    Draft tidy = Tidy(best, out_of_time_, Patience(), &complete);
    // 4. Try pending pods again: consolidation may have freed capacity for them.
    if (!proven_ && !TimeIsUp()) {
      PlaceRest(tidy, Ordered(problem_, candidates_, Order::kLargestFirst));
    }
    // 5. Reduce changes further: swap equal pods, then move slices to better starts on their GPU.
    if (!SwapForFewerChanges(tidy, candidates_, out_of_time_)) complete = false;
    for (size_t n = 0; n < problem_.nodes.size() && !TimeIsUp(); ++n) {
      Rearrange(tidy, static_cast<int>(n));
    }
    // Fewer changes do not affect `complete` unless the search was interrupted.
    const int most = std::max(bound, tidy.placed());
    return {std::move(tidy), most, proven_ && complete && !cut_short_};
  }

 private:
  bool TimeIsUp() {
    if (out_of_time_()) cut_short_ = true;
    return cut_short_;
  }

  // Stops only after the time limit and another kMaxLateWork steps from now.
  std::function<bool()> Patience() {
    return [this, start = states_.work()] {
      return TimeIsUp() && states_.work() - start > kMaxLateWork;
    };
  }

  // Returns the most valuable plan found, without regard to changes.
  Draft FindBest(int* bound) {
    *bound = wanted_;
    // 1. All pods at once, keeping free instances: the usual case.
    Draft gentle(problem_, states_, Draft::Free::kKeep);
    proven_ = PlaceAll(gentle, problem_.levels, Patience());
    if (proven_) return gentle;
    // 2. All pods at once, with free instances as empty space; then the exact solver for small
    //    problems.
    Draft tight = NewTight();
    if (!TimeIsUp()) {
      proven_ = PlaceAll(tight, problem_.levels, out_of_time_);
      if (proven_) return tight;
      if (auto exact = SolveExactly(problem_, states_, candidates_)) {
        *bound = exact->most_pods;
        proven_ = true;
        return std::move(exact->draft);
      }
    }
    // 3. Not all pods fit, and the problem is big.
    return FindInOverload(bound);
  }

  // Builds several plans, and improves the best unless it is proven optimal.
  Draft FindInOverload(int* bound) {
    if (TimeIsUp() && candidates_.size() > kMaxLateClasses) {
      return LevelByLevel(NewTight(), 0, {Ordered(problem_, candidates_, Order::kLargestFirst)});
    }
    // 1. The upper bound; its prices give one more order of classes.
    const PooledProgram pooled(problem_, states_, candidates_);
    const Bound proven = pooled.UpperBound();
    *bound = proven.pods;
    const std::vector<std::vector<int>> orders = AllOrders(proven.prices);
    // 2. Constructions, the cheapest to compute first. Each further step runs only while the bound
    //    is not reached.
    Draft best = LevelByLevel(NewTight(), 0, orders);
    const auto prefer = [&](Draft other) {
      if (other.score() > best.score()) best = std::move(other);
    };
    proven_ = NothingIsBetter(pooled, best);
    if (!proven_ && problem_.levels > 1 && !TimeIsUp()) prefer(FirstLevelsAtOnce(orders));
    if (!proven_ && !TimeIsUp()) {
      Draft other = NewTight();
      pooled.Fill(other, FirstOpenLevel(best), out_of_time_);
      if (!TimeIsUp()) PlaceRest(other, orders.back());
      prefer(std::move(other));
      proven_ = NothingIsBetter(pooled, best);
    }
    // 3. Local search from the best construction.
    if (!proven_ && !TimeIsUp()) {
      ImproveByLevels(best, orders);
      proven_ = NothingIsBetter(pooled, best);
    }
    return best;
  }

  // Improves the higher levels first, as if the lower ones did not exist, then all together.
  void ImproveByLevels(Draft& best, const std::vector<std::vector<int>>& orders) {
    int rounds = 0;
    for (int level = FirstOpenLevel(best); level + 1 < problem_.levels; ++level) {
      if (++rounds > kMaxProofs || TimeIsUp()) break;
      const std::vector<int> classes = ClassesOf(0, level + 1);
      if (AllPlaced(best, classes)) continue;
      Draft upper = best;
      for (uint32_t p = 0; p < upper.pods().size(); ++p) {
        const PlacedPod& pod = upper.pods()[p];
        if (pod.alive && problem_.classes[pod.cls].level > level) upper.Remove(p);
      }
      if (!Improve(upper, classes, orders, out_of_time_)) cut_short_ = true;
      PlaceRest(upper, orders.back());
      if (upper.score() > best.score()) best = std::move(upper);
    }
    if (!TimeIsUp() && !Improve(best, candidates_, orders, out_of_time_)) cut_short_ = true;
  }

  bool AllPlaced(const Draft& draft, const std::vector<int>& classes) const {
    return std::all_of(classes.begin(), classes.end(),
                       [&](int c) { return draft.PlacedOf(c) == problem_.classes[c].count; });
  }

  // The first level with a pending pod.
  int FirstOpenLevel(const Draft& draft) const {
    int first = problem_.levels;
    for (const int c : candidates_) {
      const PodClass& cls = problem_.classes[c];
      if (draft.PlacedOf(c) < cls.count) first = std::min(first, cls.level);
    }
    return first;
  }

  // True if, for every level with pending pods, the levels up to it are provably served as well as
  // possible.
  bool NothingIsBetter(const PooledProgram& pooled, const Draft& draft) {
    std::vector<int64_t> value(problem_.levels), waiting(problem_.levels);
    for (const int c : candidates_) {
      const PodClass& cls = problem_.classes[c];
      value[cls.level] += cls.value * draft.PlacedOf(c);
      waiting[cls.level] += cls.count - draft.PlacedOf(c);
    }
    int64_t so_far = 0;
    int proofs = 0;
    for (int level = 0; level < problem_.levels; ++level) {
      so_far += value[level];
      if (waiting[level] == 0) continue;
      if (++proofs > kMaxProofs || TimeIsUp()) return false;
      if (static_cast<double>(so_far) < pooled.MostValue(level)) return false;
    }
    return true;
  }

  // Free instances count as empty space and all GPUs are open: only capacity matters, not changes.
  Draft NewTight() const {
    Draft draft(problem_, states_, Draft::Free::kIgnore);
    for (size_t g = 0; g < problem_.gpus.size(); ++g) draft.Open(static_cast<int>(g));
    return draft;
  }

  std::vector<int> ClassesOf(int first_level, int end_level) const {
    std::vector<int> classes;
    for (const int c : candidates_) {
      const int level = problem_.classes[c].level;
      if (level >= first_level && level < end_level) classes.push_back(c);
    }
    return classes;
  }

  // Places all pods of the levels before `end_level`. False if one does not fit or `stop` returns
  // true.
  bool PlaceAll(Draft& draft, int end_level, const std::function<bool()>& stop) const {
    Greedy greedy(draft);
    for (const int c : Ordered(problem_, ClassesOf(0, end_level), Order::kLargestFirst)) {
      if (stop()) return false;
      if (greedy.Place(c, problem_.classes[c].count) < problem_.classes[c].count) return false;
    }
    return true;
  }

  std::vector<std::vector<int>> AllOrders(const std::vector<double>& prices) const {
    std::vector<std::vector<int>> orders;
    for (const Order order : kOrders) orders.push_back(Ordered(problem_, candidates_, order));
    orders.push_back(OrderedByPrice(problem_, candidates_, prices));
    return orders;
  }

  // Places the longest prefix of levels that fits completely in one pass, then the other levels one
  // by one.
  Draft FirstLevelsAtOnce(const std::vector<std::vector<int>>& orders) {
    int whole = 0, partly = problem_.levels;
    Draft draft = NewTight();
    while (whole + 1 < partly && !TimeIsUp()) {
      const int middle = (whole + partly) / 2;
      Draft attempt = NewTight();
      if (!PlaceAll(attempt, middle, out_of_time_)) {
        partly = middle;
        continue;
      }
      whole = middle;
      draft = std::move(attempt);
    }
    return LevelByLevel(std::move(draft), whole, orders);
  }

  Draft LevelByLevel(Draft draft, int first_level, const std::vector<std::vector<int>>& orders) {
    // Candidates by level and order.
    std::vector<std::vector<std::vector<int>>> by_level(problem_.levels);
    for (auto& level : by_level) level.resize(orders.size());
    for (size_t o = 0; o < orders.size(); ++o) {
      for (const int c : orders[o]) by_level[problem_.classes[c].level][o].push_back(c);
    }
    Greedy greedy(draft);
    const std::function<bool()> patience =
        Patience();  // a plan is needed even after the time limit
    for (int level = first_level; level < problem_.levels; ++level) {
      if (!by_level[level][0].empty()) PlaceLevel(draft, greedy, level, by_level[level], patience);
    }
    return draft;
  }

  // Places the pods of a level in the order that serves most.
  void PlaceLevel(Draft& draft, Greedy& greedy, int level,
                  const std::vector<std::vector<int>>& orders,
                  const std::function<bool()>& patience) {
    const size_t mark = draft.Mark();
    int64_t best = -1, whole = 0;
    for (const int c : orders[0]) {
      whole += problem_.classes[c].count * (problem_.classes[c].value * kValueUnit + 1);
    }
    const std::function<bool()> stop = [&] { return TimeIsUp(); };
    const size_t first = draft.pods().size();
    std::vector<Assignment> best_pods;
    size_t best_order = 0, last = 0;
    for (size_t o = 0; o < orders.size(); ++o) {
      if (best >= 0 && (orders[o].size() == 1 || best == whole || TimeIsUp())) break;
      draft.Rollback(mark);
      const size_t done = PlaceInOrder(greedy, orders[o], o == 0 ? patience : stop);
      if (o == 0) PlaceNearby(draft, greedy, std::span(orders[0]).subspan(done));
      last = o;
      if (draft.score()[level] <= best) continue;
      best = draft.score()[level];
      best_order = o;
      best_pods = PodsFrom(draft, first);
    }
    if (last == best_order) return;
    draft.Rollback(mark);
    for (const Assignment& a : best_pods) draft.Place(a.cls, a.node, a.devices);
  }

  struct Assignment {
    int cls = 0, node = 0;
    std::vector<Device> devices;
  };
  static std::vector<Assignment> PodsFrom(const Draft& draft, size_t first) {
    std::vector<Assignment> pods;
    pods.reserve(draft.pods().size() - first);
    for (size_t p = first; p < draft.pods().size(); ++p) {
      const auto devices = draft.DevicesOf(draft.pods()[p]);
      pods.push_back({draft.pods()[p].cls, draft.pods()[p].node, {devices.begin(), devices.end()}});
    }
    return pods;
  }

  // Used after the time limit: tries each pod on the next few nodes only.
  void PlaceNearby(const Draft& draft, Greedy& greedy, std::span<const int> classes) {
    const int nodes = static_cast<int>(problem_.nodes.size());
    if (classes.empty()) return;
    const int64_t from = haste_from_.value_or(states_.work());
    haste_from_ = from;
    for (const int c : classes) {
      for (int tries = 0; tries < std::min(nodes, kNearbyNodes);) {
        if (states_.work() - from > kMaxLateWork) return;
        if (draft.PlacedOf(c) == problem_.classes[c].count) break;
        if (greedy.PlaceOn(c, nearby_)) continue;
        nearby_ = (nearby_ + 1) % nodes;
        ++tries;
      }
    }
  }

  // Places pending pods level by level, each level in the given order.
  void PlaceRest(Draft& draft, std::vector<int> classes) const {
    std::stable_sort(classes.begin(), classes.end(), [&](int a, int b) {
      return problem_.classes[a].level < problem_.classes[b].level;
    });
    Greedy greedy(draft);
    for (const int c : classes) greedy.Place(c, problem_.classes[c].count - draft.PlacedOf(c));
  }

  // Returns the number of classes handled before `stop` returned true.
  size_t PlaceInOrder(Greedy& greedy, const std::vector<int>& classes,
                      const std::function<bool()>& stop) const {
    for (size_t i = 0; i < classes.size(); ++i) {
      if (stop()) return i;
      greedy.Place(classes[i], problem_.classes[classes[i]].count);
    }
    return classes.size();
  }

  const Problem& problem_;
  GpuStates& states_;
  const std::function<bool()>& out_of_time_;
  std::vector<int> candidates_;
  int wanted_ = 0;  // pods that could be placed on their own
  bool cut_short_ = false;
  std::optional<int64_t> haste_from_;  // states_.work() at the first hurried level
  int nearby_ = 0;                     // next node to try in PlaceNearby
  bool proven_ = false;                // no plan serves the levels better, in their order
};

}  // namespace

SearchResult Search(const Problem& problem, GpuStates& states,
                    const std::function<bool()>& out_of_time) {
  return Searcher(problem, states, out_of_time).Run();
}

}  // namespace nos::planning
