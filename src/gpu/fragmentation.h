// Measures the remaining capacity of a partly used GPU, to choose the placement that fragments
// least.
//
// The potential of a layout s is
//   g0(s) = sum over sizes c of c * (instances of size c alone that still fit into s)
// where the sizes are the model's plain profiles (1g, 2g, 3g, 4g, 7g). An instance is placed where
// the potential drops least. The rule has no parameters and no forecast of demand. On clusters
// small enough for an exact optimum it is within 0.5 % of it. Weights tuned to one demand mix
// gained less on that mix than they lost on another (docs/simulate-churn.md).
//
//   const Fragmentation rule(model);
//   PlacementId where = rule.Best(layout, profile);  // on one GPU
//   int harm = rule.Loss(layout, profile);           // compare between GPUs
//
// Tables are built once per model. Immutable; may be read from any thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gpu/catalogue.h"
#include "gpu/layout.h"
#include "gpu/occupancy.h"

namespace nos::gpu {

// One profile per compute size, smallest first. For each size: the profile that fits most often,
// then the one with fewest slots, then the first in the catalogue. A100-40GB: 1g.5gb 2g.10gb
// 3g.20gb 4g.20gb 7g.40gb. For share models: the whole GPU, a half, a quarter and so on.
std::vector<ProfileId> PlainProfiles(const Model& model);

// g0 of one layout, for callers that evaluate few layouts and need no tables. `plain`:
// PlainProfiles(model).
int Potential(const Model& model, std::span<const ProfileId> plain, LayoutId layout);
// For both kinds of models. Shares are weighted by memory instead of compute.
int Potential(const Occupancy& on, std::span<const ProfileId> plain);
// The potential lost from `before` to `after`, as a fraction of an empty GPU's potential.
double LostGpus(const Occupancy& before, const Occupancy& after, std::span<const ProfileId> plain);

class Fragmentation {
 public:
  static constexpr PlacementId kNoPlacement = 0xff;
  static constexpr uint16_t kNoRank = 0xffff;
  static constexpr int kNeverFits = 1'000'000;

  // `model` must outlive it.
  explicit Fragmentation(const Model& model);

  // model.layouts()
  const LayoutTable& layouts() const { return *layouts_; }
  int Potential(LayoutId layout) const { return potential_[layout]; }
  // The placement that costs least potential (ties: the highest start), or kNoPlacement.
  PlacementId Best(LayoutId layout, ProfileId profile) const { return best_[At(layout, profile)]; }
  // The potential that Best() costs, at least 0; kNeverFits if no placement is possible.
  int Loss(LayoutId layout, ProfileId profile) const { return loss_[At(layout, profile)]; }

  // The layouts on which the profile fits, best first: by loss, then fewest free slots, then most
  // instances (such a GPU stays in use anyway), then id.
  std::span<const LayoutId> Preferred(ProfileId profile) const { return preferred_[profile]; }
  // The layout's index in Preferred(profile), or kNoRank.
  uint16_t Rank(LayoutId layout, ProfileId profile) const { return rank_[At(layout, profile)]; }

 private:
  size_t At(LayoutId layout, ProfileId profile) const {
    return layout * layouts_->profile_count() + profile;
  }
  void FillBest();
  void FillPreferred();

  const LayoutTable* layouts_;
  std::vector<int> potential_;
  std::vector<PlacementId> best_;
  std::vector<int> loss_;
  std::vector<std::vector<LayoutId>> preferred_;
  std::vector<uint16_t> rank_;
};

}  // namespace nos::gpu
