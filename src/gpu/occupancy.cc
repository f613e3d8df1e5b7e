#include "gpu/occupancy.h"

#include <algorithm>
#include <bit>

namespace nos::gpu {
namespace {

constexpr size_t kMaxStarts = 64;

}  // namespace

int Occupancy::count() const { return std::popcount(starts_); }

bool Occupancy::Add(Placement placement) {
  if (!model_->counted()) {
    const LayoutTable& table = model_->layouts();
    const auto id = table.Find(placement);
    const LayoutId with = id ? table.Add(layout_, *id) : LayoutTable::kIllegal;
    if (with == LayoutTable::kIllegal) return false;
    layout_ = with;
    taken_ = std::popcount(table.Slots(with));
    return true;
  }
  if (placement.profile >= model_->profiles().size()) return false;
  const size_t starts = model_->profile(placement.profile).starts.size();
  if (placement.start >= std::min(starts, kMaxStarts)) return false;
  const uint64_t bit = uint64_t{1} << placement.start;
  if ((starts_ & bit) != 0 || Copies(placement.profile) == 0) return false;
  starts_ |= bit;
  taken_ += model_->profile(placement.profile).slots;
  return true;
}

int Occupancy::Copies(ProfileId profile) const {
  if (!model_->counted()) return model_->layouts().Copies(layout_, profile);
  return std::min(free_slots() / model_->profile(profile).slots, model_->max_instances() - count());
}

std::optional<Placement> Occupancy::FirstPlace(ProfileId profile) const {
  if (Copies(profile) == 0) return std::nullopt;
  if (model_->counted()) {
    return Placement{profile, static_cast<uint8_t>(std::countr_one(starts_))};
  }
  const LayoutTable& table = model_->layouts();
  const uint64_t choices = table.Addable(layout_) & table.PlacementsOf(profile);
  return table.placements()[static_cast<size_t>(std::countr_zero(choices))];
}

}  // namespace nos::gpu
