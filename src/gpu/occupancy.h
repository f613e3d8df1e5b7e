// The instances on one GPU, for both kinds of models: with placements (MIG) and counted (shares).
// For callers that ask what fits and need no tables.
//
//   Occupancy on(model);
//   if (!on.Add({profile, 4})) ...     // conflicts with existing instances
//   on.Copies(profile);                // how many more of this profile alone
//
// A value type.
#pragma once

#include <cstdint>
#include <optional>

#include "gpu/catalogue.h"

namespace nos::gpu {

class Occupancy {
 public:
  // Starts empty. The model must outlive it.
  explicit Occupancy(const Model& model) : model_(&model) {}

  const Model& model() const { return *model_; }
  // Returns false and changes nothing if the instance conflicts with existing ones.
  bool Add(Placement placement);
  int Copies(ProfileId profile) const;
  // The lowest start at which one more instance fits. nullopt if none fits.
  std::optional<Placement> FirstPlace(ProfileId profile) const;
  int taken_slots() const { return taken_; }
  int free_slots() const { return model_->slots() - taken_; }
  // The layout of a model that is not counted().
  LayoutId layout() const { return layout_; }
  // For a counted model: the number of shares, and their starts (bit i: start i).
  int count() const;
  uint64_t starts() const { return starts_; }

 private:
  const Model* model_;
  LayoutId layout_ = LayoutTable::kEmpty;
  uint64_t starts_ = 0;  // of a counted model: starts in use
  int taken_ = 0;
};

}  // namespace nos::gpu
