// What lies on one GPU, whichever way its model is divided: by placement (MIG) or by count
// (shares). For code that asks what fits and needs no tables.
//
//   Occupancy on(model);
//   if (!on.Add({profile, 4})) ...     // illegal beside what is there
//   on.Copies(profile);                // how many more of it alone
//
// A value.
#pragma once

#include <cstdint>
#include <optional>

#include "gpu/catalogue.h"

namespace nos::gpu {

class Occupancy {
 public:
  // Empty. The model must outlive it.
  explicit Occupancy(const Model& model) : model_(&model) {}

  const Model& model() const { return *model_; }
  // False, and nothing changes: it may not lie beside what is there.
  bool Add(Placement placement);
  int Copies(ProfileId profile) const;
  // Where one more could lie, the lowest start. None: it does not fit.
  std::optional<Placement> FirstPlace(ProfileId profile) const;
  int taken_slots() const { return taken_; }
  int free_slots() const { return model_->slots() - taken_; }
  // Of a model with layouts: which one it is.
  LayoutId layout() const { return layout_; }
  // Of a counted one: how many, and which starts they have (bit i: start i).
  int count() const;
  uint64_t starts() const { return starts_; }

 private:
  const Model* model_;
  LayoutId layout_ = LayoutTable::kEmpty;
  uint64_t starts_ = 0;  // of a counted model: those that are taken
  int taken_ = 0;
};

}  // namespace nos::gpu
