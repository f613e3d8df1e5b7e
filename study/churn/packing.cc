#include "study/churn/packing.h"

#include <algorithm>
#include <array>
#include <utility>

#include "gpu/fragmentation.h"

namespace nos::study {
namespace {

using Profiles = std::vector<gpu::ProfileId>;

// The placements of the profile whose slots are free in the layout.
uint64_t FreeBySlots(const gpu::Model& model, gpu::LayoutId layout, gpu::ProfileId profile) {
  const gpu::LayoutTable& table = model.layouts();
  const uint32_t run = (uint32_t{1} << model.profile(profile).slots) - 1;
  uint64_t free = 0;
  for (const uint8_t start : model.profile(profile).starts) {
    const auto id = table.Find({profile, start});
    if (id && (table.Slots(layout) & (run << start)) == 0) free |= uint64_t{1} << *id;
  }
  return free;
}

// True if only slots limit these profiles: no maximum count, engine or geometry does.
bool SlotsAloneDecide(const gpu::Model& model, const Profiles& profiles) {
  const gpu::LayoutTable& table = model.layouts();
  uint64_t ours = 0;
  for (const gpu::ProfileId p : profiles) ours |= table.PlacementsOf(p);
  for (size_t s = 0; s < table.size(); ++s) {
    const auto layout = static_cast<gpu::LayoutId>(s);
    if ((table.Members(layout) & ~ours) != 0) continue;
    for (const gpu::ProfileId p : profiles) {
      const uint64_t addable = table.Addable(layout) & table.PlacementsOf(p);
      if (addable != FreeBySlots(model, layout, p)) return false;
    }
  }
  return true;
}

// True if the closed form of FitsEightSlots applies to the model.
bool IsClassicEightSlot(const gpu::Model& model, const Profiles& plain) {
  struct Shape {
    int slots;
    std::vector<uint8_t> starts;
  };
  const std::array<Shape, 5> kShapes = {
      {{1, {0, 1, 2, 3, 4, 5, 6}}, {2, {0, 2, 4}}, {4, {0, 4}}, {4, {0}}, {8, {0}}}};
  const auto same = [&model](gpu::ProfileId p, const Shape& shape) {
    return model.profile(p).slots == shape.slots && model.profile(p).starts == shape.starts;
  };
  return model.slots() == 8 && std::ranges::equal(plain, kShapes, same) &&
         SlotsAloneDecide(model, plain);
}

// True if every multiple of the profile's size is a start.
bool TilesTheGpu(const gpu::Model& model, gpu::ProfileId id) {
  const gpu::Profile& profile = model.profile(id);
  if (model.slots() % profile.slots != 0) return false;
  for (int start = 0; start < model.slots(); start += profile.slots) {
    if (std::ranges::find(profile.starts, start) == profile.starts.end()) return false;
  }
  return true;
}

// If sizes divide each other, placing the largest first uses all free slots.
bool SizesDivideEachOther(const gpu::Model& model, const Profiles& profiles) {
  std::vector<int> sizes;
  for (const gpu::ProfileId p : profiles) sizes.push_back(model.profile(p).slots);
  std::ranges::sort(sizes);
  for (size_t i = 1; i < sizes.size(); ++i) {
    if (sizes[i] % sizes[i - 1] != 0) return false;
  }
  return std::ranges::all_of(profiles, [&](gpu::ProfileId p) { return TilesTheGpu(model, p); }) &&
         SlotsAloneDecide(model, profiles);
}

}  // namespace

Result<PackingTest> PackingTest::For(const gpu::Model& model, const Mix& mix) {
  PackingTest test;
  test.slots_ = model.slots();
  for (const gpu::Profile& profile : model.profiles()) test.sizes_.push_back(profile.slots);
  Profiles asked;
  for (const MixEntry& entry : mix) asked.push_back(entry.profile);
  const Profiles plain = gpu::PlainProfiles(model);
  const bool all_plain = std::ranges::all_of(
      asked, [&plain](gpu::ProfileId p) { return std::ranges::find(plain, p) != plain.end(); });
  if (all_plain && IsClassicEightSlot(model, plain)) {
    test.classic_ = plain;
  } else if (!SizesDivideEachOther(model, asked)) {
    return Invalid("policy repack has no exact test for this mix on " + model.name() +
                   "; use only its plain profiles, or another policy");
  }
  return test;
}

bool PackingTest::Fits(const std::vector<int64_t>& counts, int64_t gpus) const {
  return classic_.empty() ? FitsSlots(counts, gpus) : FitsEightSlots(counts, gpus);
}

bool PackingTest::FitsSlots(const std::vector<int64_t>& counts, int64_t gpus) const {
  int64_t used = 0;
  for (size_t p = 0; p < counts.size(); ++p) used += counts[p] * sizes_[p];
  return used <= gpus * slots_;
}

// Divides each GPU into halves. 7g takes both. 3g is placed on right halves (slots 4-7) first,
// because a right half holds only three 1g and one 2g. The remaining 3g and all 4g take left
// halves. A left half holds two 2g or four 1g, a right half one 2g and one 1g, or three 1g.
bool PackingTest::FitsEightSlots(const std::vector<int64_t>& counts, int64_t gpus) const {
  const auto n = [&](size_t i) { return counts[classic_[i]]; };
  const int64_t free_gpus = gpus - n(4);
  const int64_t right_3g = std::min(n(2), free_gpus);
  const int64_t left = free_gpus - n(3) - (n(2) - right_3g);
  const int64_t right = free_gpus - right_3g;
  return free_gpus >= 0 && left >= 0 && right >= 0 && n(1) <= 2 * left + right &&
         n(0) + 2 * n(1) <= 4 * left + 3 * right;
}

}  // namespace nos::study
