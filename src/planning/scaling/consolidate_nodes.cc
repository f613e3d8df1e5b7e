#include "planning/scaling/consolidate_nodes.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

namespace nos::planning {
namespace {

constexpr int64_t kMaxLooks = 3'000'000;  // checks of a node for a pod

class Thinner {
 public:
  Thinner(const Problem& types, const std::vector<NodeType>& node_types, GreedyNodeMix& coverer,
          GpuStates& states, const std::function<bool()>& out_of_time)
      : types_(types),
        node_types_(node_types),
        coverer_(coverer),
        states_(states),
        out_of_time_(out_of_time) {}

  // True if any node was emptied.
  bool EmptySome(Bins& bins) {
    const Problem problem = WithNodes(types_, TypesOf(bins));
    Draft draft = Load(problem, states_, bins);
    std::vector<bool> open(bins.size(), true);
    bool any = false;
    for (const int n : LeastForItsPriceFirst(bins)) {
      if (out_of_time_() || looks_ > kMaxLooks) break;
      if (!bins[n].paid || !Empty(draft, n, open)) continue;
      open[n] = false;
      any = true;
    }
    Unload(draft, bins);
    DropEmpty(bins);
    return any;
  }

  void TakeCheaper(Bins& bins) {
    std::vector<int> room;
    room.reserve(node_types_.size());
    for (const NodeType& type : node_types_) room.push_back(type.room);
    for (const Bin& bin : bins) room[bin.type] -= bin.paid ? 1 : 0;
    std::vector<int> cheapest(node_types_.size());
    std::iota(cheapest.begin(), cheapest.end(), 0);
    std::ranges::stable_sort(cheapest, {}, [&](int t) { return node_types_[t].price; });
    std::map<std::pair<int, std::vector<int>>, std::vector<BinAssignment>> known;
    for (const int n : LeastForItsPriceFirst(bins)) {
      Bin& bin = bins[n];
      if (!bin.paid || bin.assignments.empty()) continue;
      const std::vector<int> pods = PodsOf(bin);
      for (const int t : cheapest) {
        if (out_of_time_() || node_types_[t].price >= node_types_[bin.type].price) break;
        if (room[t] <= 0) continue;
        const auto [at, fresh] = known.try_emplace({t, pods});
        if (fresh) at->second = coverer_.Together(t, pods);
        if (at->second.empty()) continue;
        ++room[bin.type];
        --room[t];
        bin = {t, true, at->second};
        break;
      }
    }
  }

 private:
  double WorthOn(const Bin& bin) const {
    double worth = 0;
    for (const BinAssignment& assignment : bin.assignments)
      worth += coverer_.WorthOf(assignment.cls);
    return worth;
  }

  std::vector<int> LeastForItsPriceFirst(const Bins& bins) const {
    std::vector<std::pair<double, int>> order;
    for (size_t n = 0; n < bins.size(); ++n) {
      const auto price = static_cast<double>(std::max<int64_t>(node_types_[bins[n].type].price, 1));
      order.emplace_back(WorthOn(bins[n]) / price, static_cast<int>(n));
    }
    std::ranges::sort(order);
    std::vector<int> nodes;
    nodes.reserve(order.size());
    for (const auto& [gain, n] : order) nodes.push_back(n);
    return nodes;
  }

  // Sorts by worth, highest first.
  void Sort(std::vector<int>& classes) const {
    std::ranges::sort(classes, [&](int a, int b) {
      const double left = coverer_.WorthOf(a), right = coverer_.WorthOf(b);
      return left != right ? left > right : a < b;
    });
  }
  std::vector<int> PodsOf(const Bin& bin) const {
    std::vector<int> classes;
    classes.reserve(bin.assignments.size());
    for (const BinAssignment& assignment : bin.assignments) classes.push_back(assignment.cls);
    Sort(classes);
    return classes;
  }

  // Moves all its pods to other open nodes. False, with all pods back, if one does not fit.
  bool Empty(Draft& draft, int node, const std::vector<bool>& open) {
    const size_t mark = draft.Mark();
    std::vector<int> classes;
    const std::vector<uint32_t> pods = draft.PodsOn(node);
    for (const uint32_t p : pods) {
      if (!draft.pods()[p].alive) continue;
      classes.push_back(draft.pods()[p].cls);
      draft.Remove(p);
    }
    Sort(classes);
    for (const int c : classes) {
      if (PlaceElsewhere(draft, c, node, open)) continue;
      draft.Rollback(mark);
      return false;
    }
    return true;
  }

  bool PlaceElsewhere(Draft& draft, int cls, int from, const std::vector<bool>& open) {
    const int shape = types_.classes[cls].shape;
    for (int n = 0; n < static_cast<int>(open.size()); ++n) {
      ++looks_;
      if (n == from || !open[n] || !draft.HasResources(cls, n)) continue;
      looks_ += draft.problem().shapes[shape].slice_count;
      if (!draft.Find(shape, n, &devices_)) continue;
      draft.Place(cls, n, devices_);
      return true;
    }
    return false;
  }

  const Problem& types_;
  const std::vector<NodeType>& node_types_;
  GreedyNodeMix& coverer_;
  GpuStates& states_;
  const std::function<bool()>& out_of_time_;
  int64_t looks_ = 0;
  std::vector<Device> devices_;
};

}  // namespace

Bins ConsolidateNewNodes(const Problem& types, const std::vector<NodeType>& node_types,
                         GreedyNodeMix& coverer, GpuStates& states, Bins bins,
                         const std::function<bool()>& out_of_time) {
  Thinner thinner(types, node_types, coverer, states, out_of_time);
  thinner.EmptySome(bins);
  thinner.TakeCheaper(bins);
  thinner.EmptySome(bins);
  return bins;
}

void UseFreeFirst(const std::vector<NodeType>& node_types, Bins& bins) {
  std::vector<int> free;
  free.reserve(node_types.size());
  for (const NodeType& type : node_types) free.push_back(type.Free());
  for (Bin& bin : bins) bin.paid = bin.assignments.empty() || free[bin.type]-- <= 0;
}

}  // namespace nos::planning
