// How much a partly filled GPU is still worth, and so where the next instance does least harm.
//
// A layout's potential is larger the more it can still serve:
//   g0(s) = sum over sizes c of c * (instances of size c alone that still fit into s),
// where the sizes are the model's plain profiles (1g, 2g, 3g, 4g, 7g). An instance goes where the
// potential drops least. Nothing to tune, no forecast of demand; on clusters small enough for an
// exact optimum it is within half a per cent of it, and weights tuned to a demand mix gained less
// than they lose on another mix (docs/simulate-churn.md).
//
//   const Fragmentation rule(model);
//   PlacementId where = rule.Best(layout, profile);  // on one GPU
//   int harm = rule.Loss(layout, profile);           // compare between GPUs
//
// Tables, built once per model; immutable, may be read from any thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gpu/catalogue.h"
#include "gpu/layout.h"
#include "gpu/occupancy.h"

namespace nos::gpu {

// One profile per compute size, smallest first: of each size the one that fits most often, then the
// one with fewest slots, then the first of the catalogue. A100-40GB: 1g.5gb 2g.10gb 3g.20gb 4g.20gb
// 7g.40gb. Of shares: the whole GPU, half of it, a quarter...
std::vector<ProfileId> PlainProfiles(const Model& model);

// g0 of a layout, for callers that look at few layouts and so want no tables. `plain`:
// PlainProfiles(model).
int Potential(const Model& model, std::span<const ProfileId> plain, LayoutId layout);
// The same of either kind of model; shares count by their memory instead of compute.
int Potential(const Occupancy& on, std::span<const ProfileId> plain);
// How many GPUs' worth of potential an instance costs that makes `after` of `before`.
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
  // What it costs, at least 0; kNeverFits when none fits.
  int Loss(LayoutId layout, ProfileId profile) const { return loss_[At(layout, profile)]; }

  // The layouts on which the profile fits, best first: by loss, then fewest free slots, then most
  // instances (such a GPU stays busy anyway), then id.
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
