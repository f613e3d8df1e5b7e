#include "planning/scaling/greedy_node_mix.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

namespace nos::planning {
namespace {

constexpr int kMaxCopies = 1024;  // pods per node; larger counts are treated as equal
constexpr int kRounds = 4;
// With many classes a mix takes longer, and another round improves it less.
constexpr size_t kManyClasses = 2000;
constexpr int kRoundsOfMany = 2;
constexpr int kMaxMisses = 8;  // classes that do not fit before the search starts to skip classes
constexpr int kMaxLateFills = 500;  // after the time limit

// At least 1, because prices are divisors.
double PriceOf(const NodeType& type) {
  return static_cast<double>(std::max<int64_t>(type.price, 1));
}

}  // namespace

GreedyNodeMix::GreedyNodeMix(const Problem& types, const std::vector<NodeType>& node_types,
                             GpuStates& states, const std::function<bool()>& out_of_time)
    : types_(types),
      node_types_(node_types),
      out_of_time_(out_of_time),
      draft_(types, states, Draft::Free::kKeep) {
  FindAlone();
  SetWorths();
}

int GreedyNodeMix::ByResources(const PodClass& cls, int type) const {
  int64_t most = kMaxCopies;
  for (size_t r = 0; r < types_.dimensions; ++r) {
    if (cls.requests[r] <= 0) continue;
    most = std::min(most, std::max<int64_t>(0, types_.FreeOf(type)[r]) / cls.requests[r]);
  }
  return static_cast<int>(most);
}

// Counts by slices only.
int GreedyNodeMix::Copies(int shape, int cls, int type) {
  if (types_.shapes[shape].slices.empty() || types_.nodes[type].slices_as_resources) {
    return kMaxCopies;
  }
  const int slices = draft_.states().packings().InternSlices(types_.shapes[shape].slices);
  const auto [at, fresh] = copies_.try_emplace({slices, type}, 0);
  int& copies = at->second;
  if (!fresh) return copies;
  const size_t mark = draft_.Mark();
  while (copies < kMaxCopies && draft_.FindSlices(shape, type, &devices_)) {
    draft_.Place(cls, type, devices_);
    ++copies;
  }
  draft_.Rollback(mark);
  return copies;
}

void GreedyNodeMix::FindAlone() {
  const int types = static_cast<int>(types_.nodes.size());
  alone_.assign(types_.classes.size() * types_.nodes.size(), 0);
  std::vector<std::vector<int>> of_shape(types_.shapes.size());
  for (size_t c = 0; c < types_.classes.size(); ++c) {
    of_shape[types_.classes[c].shape].push_back(static_cast<int>(c));
  }
  for (size_t s = 0; s < of_shape.size(); ++s) {
    if (of_shape[s].empty()) continue;
    for (int t = 0; t < types; ++t) {
      if (!types_.allowed[types_.shapes[s].allowed][t]) continue;
      const int copies = Copies(static_cast<int>(s), of_shape[s].front(), t);
      if (copies == 0) continue;
      for (const int c : of_shape[s]) {
        alone_[c * types_.nodes.size() + t] = std::min(copies, ByResources(types_.classes[c], t));
      }
    }
  }
}

bool GreedyNodeMix::Fits(int cls) const {
  for (size_t t = 0; t < node_types_.size(); ++t) {
    const bool open = node_types_[t].Free() + node_types_[t].room > 0;
    if (open && Alone(cls, static_cast<int>(t)) > 0) return true;
  }
  return false;
}

void GreedyNodeMix::SetWorths() {
  worth_.assign(types_.classes.size(), 0);
  double dearest = 1;
  for (const NodeType& type : node_types_) dearest = std::max(dearest, PriceOf(type));
  for (size_t c = 0; c < worth_.size(); ++c) {
    double least = std::numeric_limits<double>::infinity();
    bool fits_there = false;
    for (size_t t = 0; t < node_types_.size(); ++t) {
      const int copies = Alone(static_cast<int>(c), static_cast<int>(t));
      const bool open = node_types_[t].Free() + node_types_[t].room > 0;
      if (copies == 0 || !open) continue;
      if (node_types_[t].IsThere()) {
        fits_there = true;
      } else {
        least = std::min(least, PriceOf(node_types_[t]) / copies);
      }
    }
    // Pods that fit on an existing node but on no new one are placed first. Pods that fit nowhere
    // have infinite worth but are never in `wanted`.
    worth_[c] = fits_there ? std::min(least, dearest + 1) : least;
  }
}

// Sets the worth of each class to its share of the price of its nodes, in proportion to the
// previous worths. Classes on free nodes only keep theirs.
void GreedyNodeMix::Relearn(const Bins& bins) {
  std::vector<double> paid(worth_.size());
  std::vector<int> times(worth_.size());
  for (const Bin& bin : bins) {
    if (!bin.paid || bin.assignments.empty()) continue;
    double all = 0;
    for (const BinAssignment& assignment : bin.assignments) all += worth_[assignment.cls];
    for (const BinAssignment& assignment : bin.assignments) {
      paid[assignment.cls] += PriceOf(node_types_[bin.type]) * worth_[assignment.cls] / all;
      ++times[assignment.cls];
    }
  }
  for (size_t c = 0; c < worth_.size(); ++c) {
    if (times[c] > 0) worth_[c] = (worth_[c] + paid[c] / times[c]) / 2;
  }
}

Bins GreedyNodeMix::Cover(const std::vector<int>& wanted) {
  const int rounds = wanted.size() > kManyClasses ? kRoundsOfMany : kRounds;
  Bins best;
  std::vector<int64_t> best_score;
  GrowthCost best_cost;
  for (int round = 0; round < rounds; ++round) {
    Bins bins = CoverOnce(wanted);
    Relearn(bins);
    TakeOutBrokenGangs(types_, bins);
    DropEmpty(bins);
    const std::vector<int64_t> score = ScoreOf(types_, PlacedOf(bins, wanted.size()));
    const GrowthCost cost = CostOf(bins, node_types_);
    if (round == 0 || score > best_score || (score == best_score && cost < best_cost)) {
      best = std::move(bins);
      best_score = score;
      best_cost = cost;
    }
    if (out_of_time_()) break;
  }
  return best;
}

void GreedyNodeMix::Start(const std::vector<int>& wanted) {
  left_ = wanted;
  version_ = 0;
  queues_.assign(types_.shapes.size(), {});
  order_.clear();
  for (size_t c = 0; c < left_.size(); ++c) {
    if (left_[c] > 0) queues_[types_.classes[c].shape].push_back(static_cast<int>(c));
  }
  const auto more_worth = [&](int a, int b) {
    return worth_[a] != worth_[b] ? worth_[a] > worth_[b] : a < b;
  };
  for (size_t s = 0; s < queues_.size(); ++s) {
    if (queues_[s].empty()) continue;
    std::ranges::sort(queues_[s], more_worth);
    order_.push_back(static_cast<int>(s));
  }
  std::ranges::sort(
      order_, [&](int a, int b) { return more_worth(queues_[a].front(), queues_[b].front()); });
}

Bins GreedyNodeMix::CoverOnce(const std::vector<int>& wanted) {
  Start(wanted);
  Bins bins;
  const size_t types = node_types_.size();
  for (size_t t = 0; t < types; ++t) {
    for (int left = node_types_[t].Free(); left > 0;) {
      Filling filling = Fill(static_cast<int>(t));
      if (filling.bin.assignments.empty()) break;
      filling.bin.paid = false;
      const int times = Times(filling.bin, left);
      Take(filling.bin, times, bins);
      left -= times;
    }
  }
  std::vector<int> room;
  room.reserve(node_types_.size());
  for (const NodeType& type : node_types_) room.push_back(type.room);
  std::vector<Filling> fillings(types);
  // The gain of a filling only decreases as pods are served, so only the best outdated filling has
  // to be recomputed.
  while (true) {
    int best = -1;
    for (size_t t = 0; t < types; ++t) {
      if (room[t] <= 0) continue;
      Filling& filling = fillings[t];
      if (filling.version < 0) filling = Fill(static_cast<int>(t));
      if (filling.bin.assignments.empty()) continue;
      if (best < 0 || Gain(filling) > Gain(fillings[best])) best = static_cast<int>(t);
    }
    if (best < 0 || MustStop()) return bins;
    if (fillings[best].version != version_) {
      fillings[best] = Fill(best);
      continue;
    }
    const int times = Times(fillings[best].bin, room[best]);
    Take(fillings[best].bin, times, bins);
    room[best] -= times;
  }
}

double GreedyNodeMix::Gain(const Filling& filling) const {
  return filling.worth / PriceOf(node_types_[filling.bin.type]);
}

bool GreedyNodeMix::MustStop() const { return fills_ > kMaxLateFills && out_of_time_(); }

GreedyNodeMix::Filling GreedyNodeMix::Fill(int type) {
  ++fills_;
  Filling filling{{type, true, {}}, 0, version_};
  const size_t mark = draft_.Mark();
  for (const int s : order_) {
    if (queues_[s].empty() || !types_.allowed[types_.shapes[s].allowed][type]) continue;
    if (draft_.Covers(types_.shapes[s].min_requests, type)) FillWith(s, type, filling);
  }
  draft_.Rollback(mark);
  return filling;
}

// Classes are sorted by size: after several that do not fit, the step to the next tried class
// grows.
void GreedyNodeMix::FillWith(int shape, int type, Filling& filling) {
  const std::vector<int>& classes = queues_[shape];
  int misses = 0;
  size_t step = 1;
  for (size_t i = 0; i < classes.size();) {
    const int c = classes[i];
    int put = 0;
    for (; put < left_[c] && draft_.HasResources(c, type); ++put) {
      if (!draft_.Find(shape, type, &devices_)) return;  // then no other pod of this shape fits
      draft_.Place(c, type, devices_);
      BinAssignment& assignment = filling.bin.assignments.emplace_back(BinAssignment{c, devices_});
      for (Device& device : assignment.devices) device.gpu -= types_.nodes[type].first_gpu;
      filling.worth += worth_[c];
    }
    if (put > 0) {
      misses = 0;
      step = 1;
    } else if (++misses > kMaxMisses) {
      step *= 2;
    }
    const size_t next = i + step;
    i = next >= classes.size() && i + 1 < classes.size() ? classes.size() - 1 : next;
  }
}

// Number of equal nodes that the unserved pods fill.
int GreedyNodeMix::Times(const Bin& bin, int most) const {
  std::map<int, int> counts;
  for (const BinAssignment& assignment : bin.assignments) ++counts[assignment.cls];
  for (const auto& [cls, count] : counts) most = std::min(most, left_[cls] / count);
  return std::max(most, 1);
}

void GreedyNodeMix::Take(const Bin& bin, int times, Bins& bins) {
  bins.insert(bins.end(), static_cast<size_t>(times), bin);
  for (const BinAssignment& assignment : bin.assignments) left_[assignment.cls] -= times;
  for (const BinAssignment& assignment : bin.assignments) {
    if (left_[assignment.cls] > 0) continue;
    std::erase(queues_[types_.classes[assignment.cls].shape], assignment.cls);
  }
  ++version_;
}

std::vector<BinAssignment> GreedyNodeMix::Together(int type, const std::vector<int>& pods) {
  std::vector<BinAssignment> assignments;
  const size_t mark = draft_.Mark();
  for (const int c : pods) {
    const bool fits = Alone(c, type) > 0 && draft_.HasResources(c, type) &&
                      draft_.Find(types_.classes[c].shape, type, &devices_);
    if (!fits) {
      assignments.clear();
      break;
    }
    draft_.Place(c, type, devices_);
    BinAssignment& assignment = assignments.emplace_back(BinAssignment{c, devices_});
    for (Device& device : assignment.devices) device.gpu -= types_.nodes[type].first_gpu;
  }
  draft_.Rollback(mark);
  return assignments;
}

}  // namespace nos::planning
