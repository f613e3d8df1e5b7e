#include "planning/scaling/exhaustive_node_mix.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "planning/scaling/consolidate_nodes.h"
#include "planning/translation/gangs.h"

namespace nos::planning {
namespace {

constexpr int kMaxNodes = 12;    // per mix
constexpr int kMaxPods = 60;     // in `wanted`
constexpr int kMaxClasses = 12;  // in `wanted`
constexpr size_t kMaxMixes = 4000;
constexpr int kMaxSearches = 400;

struct Mix {
  GrowthCost cost;
  std::vector<int> counts;  // paid nodes, by type
  friend auto operator<=>(const Mix&, const Mix&) = default;
};

class CheapestFinder {
 public:
  CheapestFinder(const Problem& types, const std::vector<NodeType>& node_types,
                 const GreedyNodeMix& coverer, GpuStates& states, const std::vector<int>& wanted,
                 bool all, const std::function<bool()>& out_of_time)
      : types_(types),
        node_types_(node_types),
        coverer_(coverer),
        states_(states),
        wanted_(wanted),
        all_(all),
        out_of_time_(out_of_time) {}

  bool Find(Bins& bins) {
    const std::vector<int64_t> target = ScoreOf(types_, PlacedOf(bins, wanted_.size()));
    limit_ = CostOf(bins, node_types_);
    const int pods = std::accumulate(wanted_.begin(), wanted_.end(), 0);
    max_nodes_ = std::min(kMaxNodes, pods);  // each node holds at least one pod
    more_would_do_ = pods > kMaxNodes;
    counts_.assign(node_types_.size(), 0);
    AddMixes(0, {});
    std::ranges::sort(mixes_);
    int searches = 0;
    for (const Mix& mix : mixes_) {
      if (!MayServe(mix)) continue;
      if (out_of_time_() || ++searches > kMaxSearches) return false;
      Bins tried = BinsOf(mix);
      const bool complete = SearchOn(types_, states_, wanted_, out_of_time_, tried);
      if (ScoreOf(types_, PlacedOf(tried, wanted_.size())) >= target) {
        DropEmpty(tried);
        UseFreeFirst(node_types_, tried);
        bins = std::move(tried);
        return proven_;
      }
      proven_ = proven_ && complete;
    }
    return proven_;
  }

 private:
  // Adds all mixes with the current counts for types before `type` and any counts for the rest.
  void AddMixes(size_t type, GrowthCost cost) {
    if (mixes_.size() >= kMaxMixes) {
      proven_ = false;
      return;
    }
    if (type == node_types_.size()) {
      mixes_.push_back({cost, counts_});
      return;
    }
    for (int count = 0;; ++count) {
      counts_[type] = count;
      AddMixes(type + 1, cost);
      if (count == node_types_[type].room) break;
      cost.price += node_types_[type].price;
      ++cost.nodes;
      if (!(cost < limit_)) break;
      if (cost.nodes > max_nodes_) {
        if (more_would_do_) proven_ = false;
        break;
      }
    }
    counts_[type] = 0;
  }

  // A quick necessary condition on resources, if everything must be served.
  bool MayServe(const Mix& mix) const {
    if (!all_) return true;
    const auto number = [&](size_t t) { return mix.counts[t] + node_types_[t].Free(); };
    for (size_t r = 0; r < types_.dimensions; ++r) {
      double free = 0, asked = 0;
      for (size_t t = 0; t < node_types_.size(); ++t) {
        free += static_cast<double>(types_.FreeOf(static_cast<int>(t))[r]) * number(t);
      }
      for (size_t c = 0; c < wanted_.size(); ++c) {
        asked += static_cast<double>(types_.classes[c].requests[r]) * wanted_[c];
      }
      if (asked > free) return false;
    }
    for (size_t c = 0; c < wanted_.size(); ++c) {
      // Not valid for pods with several slices: counting them one by one may waste capacity, so
      // more may fit than Alone() says.
      if (types_.shapes[types_.classes[c].shape].slice_count > 1) continue;
      int64_t most = 0;  // number of pods if no others existed
      for (size_t t = 0; t < node_types_.size(); ++t) {
        most += int64_t{coverer_.Alone(static_cast<int>(c), static_cast<int>(t))} * number(t);
      }
      if (most < wanted_[c]) return false;
    }
    return true;
  }

  Bins BinsOf(const Mix& mix) const {
    Bins bins;
    for (size_t t = 0; t < node_types_.size(); ++t) {
      for (int i = 0; i < node_types_[t].Free(); ++i) bins.push_back({static_cast<int>(t), false});
      for (int i = 0; i < mix.counts[t]; ++i) bins.push_back({static_cast<int>(t), true});
    }
    return bins;
  }

  const Problem& types_;
  const std::vector<NodeType>& node_types_;
  const GreedyNodeMix& coverer_;
  GpuStates& states_;
  const std::vector<int>& wanted_;
  const bool all_;
  const std::function<bool()>& out_of_time_;
  GrowthCost limit_;
  int max_nodes_ = 0;
  bool more_would_do_ = false;
  std::vector<int> counts_;
  std::vector<Mix> mixes_;
  bool proven_ = true;
};

}  // namespace

bool IsSmall(const std::vector<NodeType>& node_types, const std::vector<int>& wanted) {
  int64_t free = 0;
  for (const NodeType& type : node_types) free += type.Free();
  const auto classes = std::ranges::count_if(wanted, [](int count) { return count > 0; });
  const int pods = std::accumulate(wanted.begin(), wanted.end(), 0);
  return free <= kMaxNodes && classes <= kMaxClasses && pods <= kMaxPods;
}

bool FindCheapestNodeMix(const Problem& types, const std::vector<NodeType>& node_types,
                         const GreedyNodeMix& coverer, GpuStates& states,
                         const std::vector<int>& wanted, bool all,
                         const std::function<bool()>& out_of_time, Bins& bins) {
  return CheapestFinder(types, node_types, coverer, states, wanted, all, out_of_time).Find(bins);
}

bool SearchOn(const Problem& types, GpuStates& states, const std::vector<int>& wanted,
              const std::function<bool()>& out_of_time, Bins& bins) {
  Problem problem = WithNodes(types, TypesOf(bins));
  for (size_t c = 0; c < wanted.size(); ++c) problem.classes[c].count = wanted[c];
  const StagedResult result = SearchWithGangs(problem, states, 0, out_of_time);
  Unload(result.draft, bins);
  return result.complete;
}

}  // namespace nos::planning
