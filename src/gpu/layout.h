// What one MIG GPU of a model can be cut into: its legal layouts and the moves between them.
//
// A layout is a set of placements (profile, start). Every legal layout of a model is a state of a
// precomputed table, so "may this instance be added", "what still fits" and "is this maximal" are
// array reads. Facts (starts, sizes, maximum counts, engines) come from the catalogue; the rule
// that two instances may not overlap, per-profile maximum counts and the engine totals decide
// legality (NVIDIA MIG User Guide, `nvidia-smi mig -lgipp`).
//
// An instance may be divided into equal parts (shares of it): placements of a profile with part_of,
// each at the instance's start plus its number. Parts of one profile lie beside each other in an
// instance and keep everything else from its slots. A layout with parts is legal if and only if the
// one that has their instances instead is.
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

// What the table needs to know of a profile. Units: placement slots, counts.
struct ProfileShape {
  uint8_t size = 0;
  uint8_t max_count = 0;
  std::vector<uint8_t> starts;
  std::vector<uint16_t> engines;  // amount taken of each counted engine, as in ModelShape::engines
  uint32_t excludes = 0;          // bit p: may not coexist with profile p (nvml.h: _ALL_ME)
  // The profile whose instances are divided into instances of this one; kNotDivided: it is no part.
  // Of a part the starts are those of all its placements, size is what it takes of its instance, as
  // a number only, and engines do not count: its instance's do.
  static constexpr uint8_t kNotDivided = 0xff;
  uint8_t part_of = kNotDivided;
  friend bool operator==(const ProfileShape&, const ProfileShape&) = default;
};

struct ModelShape {
  uint8_t slots = 0;
  std::vector<uint16_t> engines;  // totals; empty when slots alone decide
  std::vector<ProfileShape> profiles;
  // Multisets (count per profile) a layout must be contained in; empty: every layout is allowed.
  std::vector<std::vector<uint8_t>> allowed_geometries;
  // Multisets no layout may contain, however placed.
  std::vector<std::vector<uint8_t>> forbidden_geometries;
  friend bool operator==(const ModelShape&, const ModelShape&) = default;
};

class LayoutTable {
 public:
  static constexpr LayoutId kEmpty = 0;
  static constexpr LayoutId kIllegal = 0xffff;

  // Legality is closed downwards: taking an instance out of a legal layout leaves a legal one.
  // Layouts are numbered by number of instances, then by members.
  // Error: kInvalid for more than 64 placements, 32 slots, 32 profiles, or 65,534 layouts, and for
  // starts, engines or geometries that do not match the shape; parts of what is no instance, and
  // such as lie in none.
  static Result<LayoutTable> Build(const ModelShape& shape);

  size_t size() const { return members_.size(); }                        // number of legal layouts
  std::span<const Placement> placements() const { return placements_; }  // sorted by profile, start
  std::optional<PlacementId> Find(Placement placement) const;

  // The layout with one instance more (less), or kIllegal.
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
  // Bit i: slot i is occupied: of a divided instance all of its slots, also while parts can still
  // be added.
  uint32_t Slots(LayoutId layout) const { return slots_[layout]; }
  // Bit i: placement i can still be added.
  uint64_t Addable(LayoutId layout) const { return addable_[layout]; }
  bool IsMaximal(LayoutId layout) const { return addable_[layout] == 0; }
  // Whether every instance of `kept` is in `layout`.
  bool Keeps(LayoutId layout, LayoutId kept) const {
    return (members_[kept] & ~members_[layout]) == 0;
  }
  // How many instances of the profile alone could still be added.
  uint8_t Copies(LayoutId layout, ProfileId profile) const {
    return copies_[layout * profile_count_ + profile];
  }
  // Of a part the instance in which it lies; of an instance itself.
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
  std::vector<Placement> instances_;  // parallel to it
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
