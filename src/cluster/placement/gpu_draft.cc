#include "cluster/placement/gpu_draft.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <numeric>
#include <set>
#include <utility>

namespace nos::cluster {
namespace {

using gpu::LayoutId;
using gpu::LayoutTable;
using gpu::PlacementId;

constexpr size_t kMaxPaired = 16;  // kinds; a model has ten at most

bool Within(const Share& small, const Share& large) {
  return std::ranges::equal(small, large, std::less_equal());
}

int Weigh(const Share& share, const Share& weights) {
  return std::inner_product(share.begin(), share.end(), weights.begin(), 0);
}

// The shares that fit within no other share of the set.
std::vector<Share> Largest(const std::set<Share>& shares) {
  std::vector<Share> largest;
  for (auto share = shares.rbegin(); share != shares.rend(); ++share) {  // larger shares first
    const bool within =
        std::ranges::any_of(largest, [&](const Share& other) { return Within(*share, other); });
    if (!within) largest.push_back(*share);
  }
  return largest;
}

// Enumerates the maximal additions of instances of some kinds to a layout; each set of placements
// once.
class Filling {
 public:
  Filling(const LayoutTable& table, const std::vector<std::optional<gpu::ProfileId>>& profiles)
      : table_(table), profiles_(profiles), count_(profiles.size()) {
    for (const auto& profile : profiles) asked_ |= profile ? table.PlacementsOf(*profile) : 0;
  }
  std::set<Share> From(LayoutId layout) {
    Visit(layout, asked_);
    return std::move(full_);
  }

 private:
  void Visit(LayoutId layout, uint64_t later) {
    const uint64_t addable = table_.Addable(layout) & asked_;
    if (addable == 0) full_.insert(count_);
    for (uint64_t left = addable & later; left != 0; left &= left - 1) {
      const auto placement = static_cast<PlacementId>(std::countr_zero(left));
      const auto kind = std::ranges::find(profiles_, table_.placements()[placement].profile);
      int& count = count_[static_cast<size_t>(kind - profiles_.begin())];
      ++count;
      Visit(table_.Add(layout, placement), left & (left - 1));
      --count;
    }
  }

  const LayoutTable& table_;
  const std::vector<std::optional<gpu::ProfileId>>& profiles_;
  uint64_t asked_ = 0;
  Share count_;
  std::set<Share> full_;
};

// Enumerates the additions of shares of some kinds to a GPU, up to the requested number of each.
class Sharing {
 public:
  Sharing(const std::vector<std::optional<gpu::ProfileId>>& profiles, const Share& asked)
      : profiles_(profiles), asked_(asked), count_(profiles.size()) {}
  std::set<Share> On(const gpu::Occupancy& on) {
    Visit(0, on);
    return std::move(full_);
  }

 private:
  void Visit(size_t kind, const gpu::Occupancy& on) {
    if (kind == profiles_.size()) {
      full_.insert(count_);
      return;
    }
    gpu::Occupancy with = on;
    for (count_[kind] = 0;; ++count_[kind]) {
      Visit(kind + 1, with);
      const auto& profile = profiles_[kind];
      const auto place = profile ? with.FirstPlace(*profile) : std::nullopt;
      if (!place || count_[kind] == asked_[kind]) break;
      with.Add(*place);
    }
    count_[kind] = 0;
  }

  const std::vector<std::optional<gpu::ProfileId>>& profiles_;
  const Share& asked_;
  Share count_;
  std::set<Share> full_;
};

// Depth-first search over GPUs; on each, the largest useful share first. A remainder that GPUs i..
// cannot serve is recorded, so a remainder that contains it fails there without a search.
class Distribution {
 public:
  Distribution(std::vector<const std::vector<Share>*> gpus, const std::vector<Share>& sizes,
               size_t kinds, int& steps)
      : gpus_(std::move(gpus)),
        weights_(sizes),
        size_(kinds),
        failed_(gpus_.size()),
        shares_(gpus_.size(), Share(kinds)),
        steps_(steps) {
    for (const Share& each : sizes) {
      std::ranges::transform(size_, each, size_.begin(), std::plus());
    }
    AddPairs(kinds);
    FillMost();
  }
  bool Run(const Share& asked) { return Visit(0, asked); }
  const Share& share(size_t gpu) const { return shares_[gpu]; }

 private:
  // Weights for the number of each kind and of any two kinds together: for example, 3g and 4g
  // together are at most two on a GPU.
  void AddPairs(size_t kinds) {
    for (size_t a = 0; a < kinds; ++a) {
      weights_.emplace_back(kinds)[a] = 1;
      for (size_t b = 0; b < a && kinds <= kMaxPaired; ++b) {
        Share& pair = weights_.emplace_back(kinds);
        pair[a] = pair[b] = 1;
      }
    }
  }

  // By weight, the maximum that GPUs i.. can hold.
  void FillMost() {
    most_.assign(gpus_.size() + 1, Share(weights_.size()));
    for (size_t i = gpus_.size(); i-- > 0;) {
      for (size_t w = 0; w < weights_.size(); ++w) {
        int most = 0;
        for (const Share& share : *gpus_[i]) most = std::max(most, Weigh(share, weights_[w]));
        most_[i][w] = most_[i + 1][w] + most;
      }
    }
  }

  bool IsTooMuch(size_t gpu, const Share& left) const {
    for (size_t w = 0; w < weights_.size(); ++w) {
      if (Weigh(left, weights_[w]) > most_[gpu][w]) return true;
    }
    return gpu < gpus_.size() &&
           std::ranges::any_of(
               failed_[gpu], [&](const Share& failed) { return Within(failed, left); });
  }

  bool Visit(size_t gpu, const Share& left) {
    if (IsTooMuch(gpu, left)) return false;
    if (gpu == gpus_.size()) return true;
    if (--steps_ < 0) return false;
    for (const Share& served : Served(gpu, left)) {
      Share rest(left);
      for (size_t kind = 0; kind < rest.size(); ++kind) rest[kind] -= served[kind];
      shares_[gpu] = served;
      if (Visit(gpu + 1, rest)) return true;
      if (steps_ < 0) return false;
    }
    failed_[gpu].push_back(left);
    return false;
  }

  // The useful part of each share: the fullest first, then the one with larger instances.
  std::vector<Share> Served(size_t gpu, const Share& left) const {
    std::vector<std::pair<std::pair<int, int>, Share>> served;
    for (const Share& share : *gpus_[gpu]) {
      std::pair<int, int> worth;
      Share all(share.size());
      for (size_t kind = 0; kind < share.size(); ++kind) {
        all[kind] = std::min(share[kind], left[kind]);
        worth.first += all[kind] * size_[kind];
        worth.second += all[kind] * size_[kind] * size_[kind];
      }
      served.emplace_back(worth, std::move(all));
    }
    std::ranges::sort(served, std::greater());
    const auto repeated = std::ranges::unique(served).begin();
    std::vector<Share> shares;
    std::transform(served.begin(), repeated, std::back_inserter(shares),
                   [](auto& one) { return std::move(one.second); });
    return shares;
  }

  std::vector<const std::vector<Share>*> gpus_;
  std::vector<Share> weights_;
  Share size_;
  std::vector<Share> most_;
  std::vector<std::vector<Share>> failed_;
  std::vector<Share> shares_;
  int& steps_;
};

}  // namespace

std::optional<GpuDraft> GpuDraftOf(const Gpu& gpu) {
  auto used = gpu.Used();
  if (!used) return std::nullopt;
  GpuDraft draft{&gpu, *used, {}};
  for (const Instance& instance : gpu.instances) {
    if (!instance.used) draft.free.push_back(instance.placement);
  }
  return draft;
}

const gpu::Model* GpuDraft::Other() const {
  const bool may = MayBePartitioned() && used.taken_slots() == 0 && gpu->MaySwitch();
  if (!may) return nullptr;
  return &model() == gpu->model ? gpu->alternative : gpu->model;
}

void GpuDraft::Switch() {
  used = gpu::Occupancy(*Other());
  free.clear();
}

std::vector<gpu::Placement> Staying(gpu::Occupancy used, std::vector<gpu::Placement> placements) {
  if (used.model().counted()) {  // small ones first keeps the most shares
    std::ranges::stable_sort(placements, {}, [&](gpu::Placement placement) {
      return used.model().profile(placement.profile).slots;
    });
  }
  std::erase_if(placements, [&](gpu::Placement placement) { return !used.Add(placement); });
  return placements;
}

const std::vector<std::optional<gpu::ProfileId>>& OfferBook::ProfilesOf(const gpu::Model& model) {
  const auto [found, fresh] = profiles_.try_emplace(&model);
  if (!fresh) return found->second;
  for (const ResourceId kind : kinds_) {
    found->second.push_back(model.FindProfile(ResourceName(kind)));
  }
  return found->second;
}

Share OfferBook::FreeOf(const GpuDraft& draft) {
  const auto& profiles = ProfilesOf(draft.model());
  Share share(kinds_.size());
  for (const gpu::Placement& placement : Staying(draft.used, draft.free)) {
    const auto kind = std::ranges::find(profiles, placement.profile);
    if (kind != profiles.end()) ++share[static_cast<size_t>(kind - profiles.begin())];
  }
  return share;
}

std::set<Share> OfferBook::MostOf(const gpu::Occupancy& used) {
  const auto& profiles = ProfilesOf(used.model());
  if (used.model().counted()) return Sharing(profiles, asked_).On(used);
  return Filling(used.model().layouts(), profiles).From(used.layout());
}

std::vector<Share> OfferBook::MostOf(const GpuDraft& draft) {
  if (!draft.MayBePartitioned()) return {FreeOf(draft)};
  std::set<Share> most = MostOf(draft.used);
  if (const gpu::Model* other = draft.Other()) most.merge(MostOf(gpu::Occupancy(*other)));
  return Largest(most);
}

size_t OfferBook::OffersOf(const GpuDraft& draft) {
  const bool may_be_partitioned = draft.MayBePartitioned();
  const bool counted = draft.model().counted();
  const State state(&draft.model(), draft.Other(),
                    counted ? draft.used.taken_slots() : draft.used.layout(), draft.used.count(),
                    may_be_partitioned, may_be_partitioned ? Share() : FreeOf(draft));
  const auto [known, fresh] = known_.try_emplace(state);
  if (!fresh) return known->second;
  const auto [number, is_new] = numbers_.try_emplace(MostOf(draft), offers_.size());
  if (is_new) offers_.push_back(number->first);
  return known->second = number->second;
}

bool OfferBook::CanHold(size_t offers, const Share& share) const {
  return std::ranges::any_of(offers_[offers],
                             [&](const Share& most) { return Within(share, most); });
}

std::vector<Share> OfferBook::SizesOn(std::span<const GpuDraft> drafts) {
  Share slots(kinds_.size()), compute(kinds_.size());
  const auto look = [&](const gpu::Model& model) {
    const auto& profiles = ProfilesOf(model);
    for (size_t kind = 0; kind < kinds_.size(); ++kind) {
      const std::optional<gpu::ProfileId>& id = profiles[kind];
      if (!id || slots[kind] != 0) continue;
      const gpu::Profile& profile = model.profile(*id);
      slots[kind] = profile.slots;
      compute[kind] = profile.compute;
    }
  };
  for (const GpuDraft& draft : drafts) {
    look(draft.model());
    if (const gpu::Model* other = draft.Other()) look(*other);
  }
  return {slots, compute};
}

std::optional<std::vector<Share>> OfferBook::Divide(const Share& asked,
                                                    std::span<const size_t> gpus,
                                                    const std::vector<Share>& sizes,
                                                    int& steps) const {
  // Equal GPUs are adjacent, so that the search recognizes equivalent remainders early.
  std::vector<size_t> order(gpus.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, [&](size_t a, size_t b) {
    return gpus[a] != gpus[b] && offers_[gpus[a]] < offers_[gpus[b]];
  });
  std::vector<const std::vector<Share>*> offers;
  offers.reserve(order.size());
  for (const size_t i : order) offers.push_back(&offers_[gpus[i]]);
  Distribution distribution(std::move(offers), sizes, kinds_.size(), steps);
  if (!distribution.Run(asked)) return std::nullopt;
  std::vector<Share> shares(gpus.size());
  for (size_t i = 0; i < order.size(); ++i) shares[order[i]] = distribution.share(i);
  return shares;
}

}  // namespace nos::cluster
