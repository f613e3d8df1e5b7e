#include "planning/bound.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace nos::planning {
namespace {

constexpr int kRounds = 60;

// Linear-programming duality: give every slice and every resource a price, not below 0. Whatever
// the prices, a plan's pods cannot be worth more than all GPUs and nodes together can give, so
//
//   pods placed <= most that the GPUs give + free resources' worth + sum over pods max(0, 1 -
//   price)
//
// A few dozen rounds of subgradient descent look for prices that make the right side small.
class DualBound {
 public:
  // Only these classes on only these nodes.
  DualBound(const Problem& problem, GpuStates& states, const std::vector<int>& classes,
            const std::vector<bool>& nodes)
      : problem_(problem), states_(states), classes_(classes) {
    free_.assign(problem.dimensions, 0);
    demand_.assign(Size(), 0);
    for (const int c : classes) AddDemand(problem.classes[c]);
    for (size_t n = 0; n < problem.nodes.size(); ++n) {
      if (nodes[n]) AddNode(static_cast<int>(n));
    }
  }

  double Best() {
    double best = 0;
    for (const int c : classes_) best += problem_.classes[c].count;
    best_prices_.assign(Size(), 0);
    for (std::vector<double> prices : Starts()) {
      double start_best = best;
      for (int round = 0; round < kRounds; ++round) {
        std::vector<double> gradient(Size());
        const double value = Evaluate(prices, &gradient);
        if (value < best) best_prices_ = prices;
        best = std::min(best, value);
        if (round > kRounds / 4 && best >= start_best) break;  // this start leads nowhere
        Descend(prices, gradient, value, round);
      }
    }
    return best;
  }

  // At the prices of the best bound.
  double PriceOf(const PodClass& cls) const { return PriceOf(cls, best_prices_); }

 private:
  size_t Size() const { return problem_.slices.size() + problem_.dimensions; }

  void AddDemand(const PodClass& cls) {
    for (const SliceCount& s : cls.slices) demand_[s.slice] += double{1} * s.count * cls.count;
    for (size_t r = 0; r < problem_.dimensions; ++r) {
      demand_[problem_.slices.size() + r] += static_cast<double>(cls.requests[r]) * cls.count;
    }
  }

  void AddNode(int node) {
    const ProblemNode& where = problem_.nodes[node];
    // Slices that are counted as resources there cannot be priced as slices.
    if (where.slices_as_resources) plain_ = true;
    for (size_t r = 0; r < problem_.dimensions; ++r) {
      free_[r] += static_cast<double>(std::max<int64_t>(0, problem_.FreeOf(node)[r]));
    }
    for (int g = where.first_gpu; g < where.first_gpu + where.gpu_count; ++g) {
      const ProblemGpu& gpu = problem_.gpus[g];
      const uint64_t kept = states_.KeptFree(gpu.model, gpu.used, gpu.free);
      const uint64_t usable = (gpu.recut ? ~uint64_t{0} : kept) & ~gpu.blocked;
      ++gpus_[states_.Intern({gpu.model, gpu.used, 0, usable})];
    }
  }

  // Prices of one kind alone: slots, slices of at least some size, one resource.
  std::vector<std::vector<double>> Starts() const {
    std::vector<std::vector<double>> starts;
    const size_t slices = plain_ ? 0 : problem_.slices.size();
    if (slices > 0) {
      std::vector<double>& by_size = starts.emplace_back(Size(), 0.0);
      for (size_t s = 0; s < slices; ++s) by_size[s] = problem_.slices[s].size / 840.0;
    }
    for (size_t s = 0; s < slices; ++s) {
      std::vector<double>& at_least = starts.emplace_back(Size(), 0.0);
      for (size_t t = 0; t < slices; ++t) {
        at_least[t] = problem_.slices[t].size >= problem_.slices[s].size ? 1.0 : 0.0;
      }
    }
    for (size_t r = 0; r < problem_.dimensions; ++r) {
      const double demand = demand_[problem_.slices.size() + r];
      if (demand <= free_[r]) continue;  // not scarce
      std::vector<double>& one = starts.emplace_back(Size(), 0.0);
      double pods = 0;
      for (const int c : classes_) pods += problem_.classes[c].count;
      one[problem_.slices.size() + r] = pods / demand;
    }
    return starts;
  }

  double PriceOf(const PodClass& cls, const std::vector<double>& prices) const {
    double price = 0;
    for (const SliceCount& s : cls.slices) price += s.count * prices[s.slice];
    for (size_t r = 0; r < problem_.dimensions; ++r) {
      price += static_cast<double>(cls.requests[r]) * prices[problem_.slices.size() + r];
    }
    return price;
  }

  // The bound at these prices, and how it changes with each.
  double Evaluate(const std::vector<double>& prices, std::vector<double>* gradient) {
    double value = 0;
    const size_t slices = problem_.slices.size();
    for (const auto& [state, count] : gpus_) {
      const Counts* most = nullptr;
      double most_worth = -1;
      for (const Counts& set : states_.MaximalSets(state)) {
        double worth = 0;
        for (size_t s = 0; s < slices; ++s) worth += prices[s] * set[s];
        if (worth <= most_worth) continue;
        most_worth = worth;
        most = &set;
      }
      value += count * most_worth;
      for (size_t s = 0; s < slices; ++s) (*gradient)[s] += count * double{1} * (*most)[s];
    }
    for (size_t r = 0; r < problem_.dimensions; ++r) {
      value += prices[slices + r] * free_[r];
      (*gradient)[slices + r] += free_[r];
    }
    for (const int c : classes_) {
      const PodClass& cls = problem_.classes[c];
      const double gain = 1 - PriceOf(cls, prices);
      if (gain <= 0) continue;
      value += gain * cls.count;
      for (const SliceCount& s : cls.slices)
        (*gradient)[s.slice] -= double{1} * s.count * cls.count;
      for (size_t r = 0; r < problem_.dimensions; ++r) {
        (*gradient)[slices + r] -= static_cast<double>(cls.requests[r]) * cls.count;
      }
    }
    return value;
  }

  // Steps are taken in units of demand, since cpu and bytes differ by nine orders of magnitude.
  void Descend(std::vector<double>& prices, const std::vector<double>& gradient, double value,
               int round) const {
    // A price that is 0 and wants to fall stays.
    const auto frozen = [&](size_t i) {
      return demand_[i] <= 0 || (plain_ && i < problem_.slices.size()) ||
             (prices[i] <= 0 && gradient[i] > 0);
    };
    double norm = 0, pods = 0;
    for (size_t i = 0; i < prices.size(); ++i) {
      if (!frozen(i)) norm += std::pow(gradient[i] / demand_[i], 2);
    }
    if (norm <= 0) return;
    for (const int c : classes_) pods += problem_.classes[c].count;
    const double step = 0.3 * value / std::sqrt(norm) / (1 + 0.2 * round);
    for (size_t i = 0; i < prices.size(); ++i) {
      if (frozen(i)) continue;
      prices[i] = std::max(0.0, prices[i] - step * gradient[i] / demand_[i] / demand_[i]);
    }
  }

  const Problem& problem_;
  GpuStates& states_;
  const std::vector<int>& classes_;
  std::map<GpuStateId, int> gpus_;  // states and how many GPUs are in them
  std::vector<double> free_, demand_, best_prices_;
  bool plain_ = false;
};

// Node by node: no more pods than the scarcest resource allows if all asked the least.
int64_t ByNode(const Problem& problem, const std::vector<int>& classes,
               const std::vector<bool>& nodes) {
  std::vector<int64_t> least(problem.dimensions, kPlenty);
  int64_t pods = 0;
  for (const int c : classes) {
    pods += problem.classes[c].count;
    for (size_t r = 0; r < least.size(); ++r) {
      least[r] = std::min(least[r], problem.classes[c].requests[r]);
    }
  }
  int64_t sum = 0;
  for (size_t n = 0; n < problem.nodes.size(); ++n) {
    if (!nodes[n]) continue;
    int64_t here = pods;
    for (size_t r = 0; r < least.size(); ++r) {
      if (least[r] <= 0) continue;
      here =
          std::min(here, std::max<int64_t>(0, problem.FreeOf(static_cast<int>(n))[r]) / least[r]);
    }
    sum += here;
  }
  return std::min(sum, pods);
}

// Fills `prices` of the classes if it is not null.
int64_t BoundOn(const Problem& problem, GpuStates& states, const std::vector<int>& classes,
                const std::vector<bool>& nodes, std::vector<double>* prices = nullptr) {
  DualBound dual(problem, states, classes, nodes);
  const double best = dual.Best();
  if (prices != nullptr) {
    for (const int c : classes) (*prices)[c] = dual.PriceOf(problem.classes[c]);
  }
  const double rounded = std::floor(best + 1e-6 * (1 + best));  // against rounding errors
  return std::min(ByNode(problem, classes, nodes), static_cast<int64_t>(rounded));
}

constexpr size_t kMostRows = 16;

}  // namespace

Bound UpperBound(const Problem& problem, GpuStates& states, const std::vector<int>& candidates) {
  Bound result{0, std::vector<double>(problem.classes.size())};
  if (candidates.empty()) return result;
  int64_t all = 0;
  std::vector<bool> anywhere(problem.nodes.size());
  std::map<int, std::vector<int>> by_row;
  for (const int c : candidates) {
    const PodClass& cls = problem.classes[c];
    all += cls.count;
    by_row[cls.allowed].push_back(c);
    const std::vector<bool>& allowed = problem.allowed[cls.allowed];
    for (size_t n = 0; n < anywhere.size(); ++n) anywhere[n] = anywhere[n] || allowed[n];
  }
  int64_t bound = std::min(all, BoundOn(problem, states, candidates, anywhere, &result.prices));
  result.pods = static_cast<int>(bound);
  if (by_row.size() == 1 || by_row.size() > kMostRows) return result;
  // Pods that may only go to some nodes compete for those alone.
  int64_t by_rows = 0;
  for (const auto& [row, classes] : by_row) {
    int64_t pods = 0;
    for (const int c : classes) pods += problem.classes[c].count;
    const int64_t here = std::min(pods, BoundOn(problem, states, classes, problem.allowed[row]));
    bound = std::min(bound, all - pods + here);
    by_rows += here;
  }
  result.pods = static_cast<int>(std::min(bound, by_rows));
  return result;
}

}  // namespace nos::planning
