// The legal layouts of one MIG GPU model and the transitions between them.
//
// A layout is a set of placements (profile, start). All legal layouts of a model are numbered in a
// precomputed table, so "may this instance be added", "what still fits" and "is this maximal" are
// array reads. The facts (starts, sizes, maximum counts, engines) come from the catalogue. A layout
// is legal if no two instances overlap and it respects the maximum count of each profile and the
// engine totals (NVIDIA MIG User Guide, `nvidia-smi mig -lgipp`).
//
// An instance may be divided into equal parts, which are shares of it. A part is a placement of a
// profile with part_of; its start is the instance's start plus the part's number. All parts in an
// instance have the same profile, and no other placement may use the instance's slots. A layout
// with parts is legal if and only if the layout with the undivided instances is legal.
//
//   const LayoutTable& table = model.layouts();
//   LayoutId s = table.Add(LayoutTable::kEmpty, *table.Find({profile, /*start=*/4}));
//   if (s == LayoutTable::kIllegal) ...
//
// Immutable after construction; may be read from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/status.h"

namespace nos::gpu {

using ProfileId = uint8_t;    // index into Model::profiles()
using PlacementId = uint8_t;  // index into LayoutTable::placements()
using LayoutId = uint16_t;    // index of a legal layout

struct Placement {
  ProfileId profile = 0;
  uint8_t start = 0;  // first placement slot
  friend auto operator<=>(const Placement&, const Placement&) = default;
};

// The properties of a profile that decide legality. Units: placement slots, counts.
struct ProfileShape {
  uint8_t size = 0;
  uint8_t max_count = 0;
  std::vector<uint8_t> starts;
  std::vector<uint16_t> engines;  // amount used of each limited engine, as in ModelShape::engines
  uint32_t excludes = 0;          // bit p: may not coexist with profile p (nvml.h: _ALL_ME)
  // The profile whose instances are divided into instances of this one; kNotDivided if this profile
  // is not a part. For a part, `starts` lists all its placements, `size` is only the number of
  // slots it is worth, and `engines` is ignored because the instance's engines count.
  static constexpr uint8_t kNotDivided = 0xff;
  uint8_t part_of = kNotDivided;
  friend bool operator==(const ProfileShape&, const ProfileShape&) = default;
};

struct ModelShape {
  uint8_t slots = 0;
  std::vector<uint16_t> engines;  // totals; empty if only slots limit instances
  std::vector<ProfileShape> profiles;
  // A layout must be contained in one of these multisets (count per profile). Empty: every layout
  // is allowed.
  std::vector<std::vector<uint8_t>> allowed_geometries;
  // No layout may contain one of these multisets, whatever the placements.
  std::vector<std::vector<uint8_t>> forbidden_geometries;
  friend bool operator==(const ModelShape&, const ModelShape&) = default;
};

class LayoutTable {
 public:
  static constexpr LayoutId kEmpty = 0;
  static constexpr LayoutId kIllegal = 0xffff;

  // Every subset of a legal layout is legal. Layouts are numbered by number of instances, then by
  // members. Error: kInvalid for more than 64 placements, 32 slots, 32 profiles, or 65,534 layouts;
  // for starts, engines or geometries that do not match the shape; for parts of a profile that is
  // itself a part, and for parts outside every instance.
  static Result<LayoutTable> Build(const ModelShape& shape);

  size_t size() const { return members_.size(); }                        // number of legal layouts
  std::span<const Placement> placements() const { return placements_; }  // sorted by profile, start
  std::optional<PlacementId> Find(Placement placement) const;

  // The layout after one instance is added (removed), or kIllegal.
  LayoutId Add(LayoutId layout, PlacementId placement) const {
    return add_[layout * placements_.size() + placement];
  }
  LayoutId Remove(LayoutId layout, PlacementId placement) const {
    return remove_[layout * placements_.size() + placement];
  }
  // Bit i: placement i is in the layout.
  uint64_t Members(LayoutId layout) const { return members_[layout]; }
  // The layout with exactly these members, or kIllegal.
  LayoutId FromMembers(uint64_t members) const;
  // Error: kInvalid for an unknown or repeated placement and for an illegal layout.
  Result<LayoutId> FromPlacements(std::span<const Placement> placements) const;
  // Bit i: slot i is occupied. A divided instance occupies all its slots, even if more parts can be
  // added.
  uint32_t Slots(LayoutId layout) const { return slots_[layout]; }
  // Bit i: placement i can be added.
  uint64_t Addable(LayoutId layout) const { return addable_[layout]; }
  bool IsMaximal(LayoutId layout) const { return addable_[layout] == 0; }
  // True if `layout` contains every instance of `kept`.
  bool Keeps(LayoutId layout, LayoutId kept) const {
    return (members_[kept] & ~members_[layout]) == 0;
  }
  // Maximum number of instances of this profile alone that can be added.
  uint8_t Copies(LayoutId layout, ProfileId profile) const {
    return copies_[layout * profile_count_ + profile];
  }
  // The instance that contains a part; an instance is returned unchanged.
  Placement InstanceOf(PlacementId placement) const { return instances_[placement]; }
  // Bit set of the placements of one profile.
  uint64_t PlacementsOf(ProfileId profile) const { return of_profile_[profile]; }
  size_t profile_count() const { return profile_count_; }

 private:
  void IndexPlacements(const ModelShape& shape);
  Status EnumerateLayouts(const ModelShape& shape);
  void FillTransitions(const ModelShape& shape);
  void FillCopies();

  size_t profile_count_ = 0;
  std::vector<Placement> placements_;
  std::vector<Placement> instances_;  // parallel to placements_
  std::vector<uint64_t> of_profile_;
  std::vector<uint64_t> members_;
  std::vector<uint64_t> addable_;
  std::vector<uint32_t> slots_;
  std::vector<LayoutId> add_;
  std::vector<LayoutId> remove_;
  std::vector<uint8_t> copies_;
  std::vector<std::pair<uint64_t, LayoutId>> by_members_;  // sorted
};

}  // namespace nos::gpu
