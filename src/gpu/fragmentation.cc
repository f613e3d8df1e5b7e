#include "gpu/fragmentation.h"

#include <algorithm>
#include <bit>
#include <tuple>

namespace nos::gpu {
namespace {

// True if `a` represents its compute size better than `b`.
bool Plainer(const Profile& a, const Profile& b) {
  return std::tuple(-a.max_count, a.slots) < std::tuple(-b.max_count, b.slots);
}

}  // namespace

std::vector<ProfileId> PlainProfiles(const Model& model) {
  std::vector<ProfileId> plain;
  if (model.counted()) {
    const auto sizes = static_cast<int>(model.profiles().size());
    for (int size = model.slots(); size > 0; size /= 2) {
      if (size <= sizes) plain.insert(plain.begin(), static_cast<ProfileId>(size - 1));
    }
    return plain;
  }
  for (int size = 1; size <= model.compute_slices(); ++size) {
    const Profile* best = nullptr;
    for (size_t p = 0; p < model.profiles().size(); ++p) {
      const Profile& profile = model.profiles()[p];
      if (profile.compute != size || model.PartOf(static_cast<ProfileId>(p))) continue;
      if (best == nullptr || Plainer(profile, *best)) best = &profile;
    }
    if (best != nullptr) plain.push_back(static_cast<ProfileId>(best - model.profiles().data()));
  }
  return plain;
}

int Potential(const Model& model, std::span<const ProfileId> plain, LayoutId layout) {
  int sum = 0;
  for (const ProfileId p : plain) {
    sum += model.profile(p).compute * model.layouts().Copies(layout, p);
  }
  return sum;
}

int Potential(const Occupancy& on, std::span<const ProfileId> plain) {
  if (!on.model().counted()) return Potential(on.model(), plain, on.layout());
  int sum = 0;
  for (const ProfileId p : plain) sum += on.model().profile(p).slots * on.Copies(p);
  return sum;
}

double LostGpus(const Occupancy& before, const Occupancy& after, std::span<const ProfileId> plain) {
  const int lost = Potential(before, plain) - Potential(after, plain);
  return static_cast<double>(lost) / Potential(Occupancy(before.model()), plain);
}

Fragmentation::Fragmentation(const Model& model) : layouts_(&model.layouts()) {
  const std::vector<ProfileId> plain = PlainProfiles(model);
  for (size_t s = 0; s < layouts_->size(); ++s) {
    potential_.push_back(gpu::Potential(model, plain, static_cast<LayoutId>(s)));
  }
  FillBest();
  FillPreferred();
}

void Fragmentation::FillBest() {
  best_.assign(layouts_->size() * layouts_->profile_count(), kNoPlacement);
  loss_.assign(best_.size(), kNeverFits);
  for (size_t i = 0; i < layouts_->size(); ++i) {
    const auto layout = static_cast<LayoutId>(i);
    for (uint64_t rest = layouts_->Addable(layout); rest != 0; rest &= rest - 1) {
      const auto placement = static_cast<PlacementId>(std::countr_zero(rest));
      const int loss = potential_[i] - potential_[layouts_->Add(layout, placement)];
      const size_t at = At(layout, layouts_->placements()[placement].profile);
      if (loss > loss_[at]) continue;  // on equal loss the later one, which has the higher start
      loss_[at] = loss;
      best_[at] = placement;
    }
  }
}

void Fragmentation::FillPreferred() {
  preferred_.resize(layouts_->profile_count());
  rank_.assign(best_.size(), kNoRank);
  for (size_t p = 0; p < preferred_.size(); ++p) {
    const auto profile = static_cast<ProfileId>(p);
    std::vector<LayoutId>& order = preferred_[p];
    for (size_t s = 0; s < layouts_->size(); ++s) {
      const auto layout = static_cast<LayoutId>(s);
      if (Best(layout, profile) != kNoPlacement) order.push_back(layout);
    }
    std::ranges::sort(order, {}, [this, profile](LayoutId s) {
      return std::tuple(Loss(s, profile), -std::popcount(layouts_->Slots(s)),
                        -std::popcount(layouts_->Members(s)), s);
    });
    for (size_t r = 0; r < order.size(); ++r) {
      rank_[At(order[r], profile)] = static_cast<uint16_t>(r);
    }
  }
}

}  // namespace nos::gpu
