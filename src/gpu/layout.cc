#include "gpu/layout.h"

#include <algorithm>
#include <bit>
#include <string>

namespace nos::gpu {
namespace {

constexpr size_t kMaxPlacements = 64;
constexpr size_t kMaxSlots = 32;
constexpr size_t kMaxProfiles = 32;
constexpr size_t kMaxLayouts = LayoutTable::kIllegal - 1;

Status CheckProfile(const ModelShape& model, const ProfileShape& profile) {
  if (profile.size == 0 || profile.size > model.slots) return Invalid("size must be 1..slots");
  if (profile.max_count == 0) return Invalid("max count must be at least 1");
  if (profile.engines.size() != model.engines.size()) return Invalid("engines do not match");
  for (const uint8_t start : profile.starts) {
    if (start + profile.size > model.slots) {
      return Invalid("start " + std::to_string(start) + " lies past the last slot");
    }
  }
  return Status::Ok();
}

// The instance that contains a part: the one with the last start at or before the part. An instance
// is returned unchanged. nullopt if no instance contains the part.
std::optional<Placement> InstanceOf(const ModelShape& shape, Placement placement) {
  const uint8_t of = shape.profiles[placement.profile].part_of;
  if (of == ProfileShape::kNotDivided) return placement;
  std::optional<uint8_t> last;
  for (const uint8_t start : shape.profiles[of].starts) {
    if (start <= placement.start && (!last || start > *last)) last = start;
  }
  if (!last || placement.start >= *last + shape.profiles[of].size) return std::nullopt;
  return Placement{of, *last};
}

Status CheckParts(const ModelShape& shape, size_t profile) {
  const uint8_t of = shape.profiles[profile].part_of;
  if (of == ProfileShape::kNotDivided) return Status::Ok();
  const bool instance =
      of < shape.profiles.size() && shape.profiles[of].part_of == ProfileShape::kNotDivided;
  if (!instance) return Invalid("it is a part of no instance");
  for (const uint8_t start : shape.profiles[profile].starts) {
    if (InstanceOf(shape, {static_cast<ProfileId>(profile), start})) continue;
    return Invalid("start " + std::to_string(start) + " lies in no instance");
  }
  return Status::Ok();
}

Status CheckShape(const ModelShape& shape) {
  if (shape.slots == 0 || shape.slots > kMaxSlots) return Invalid("slots must be 1..32");
  if (shape.profiles.size() > kMaxProfiles) return Invalid("more than 32 profiles");
  for (size_t i = 0; i < shape.profiles.size(); ++i) {
    const Status status = CheckProfile(shape, shape.profiles[i]);
    if (!status.ok()) return status.Within("profile " + std::to_string(i));
    const Status parts = CheckParts(shape, i);
    if (!parts.ok()) return parts.Within("profile " + std::to_string(i));
  }
  for (const auto* geometries : {&shape.allowed_geometries, &shape.forbidden_geometries}) {
    for (const auto& geometry : *geometries) {
      if (geometry.size() != shape.profiles.size()) return Invalid("geometry does not match");
    }
  }
  return Status::Ok();
}

// True if no count exceeds its limit.
bool Within(const std::vector<uint8_t>& counts, const std::vector<uint8_t>& limit) {
  return std::ranges::equal(counts, limit, std::less_equal());
}

// A placement with the data that decides its legality.
struct Piece {
  Placement placement;
  Placement instance;  // that contains it
  uint32_t slots = 0;  // of the instance
  bool part() const { return placement.profile != instance.profile; }
};

Piece PieceOf(const ModelShape& shape, Placement placement) {
  const Placement instance = InstanceOf(shape, placement).value_or(placement);
  const uint64_t run = (uint64_t{1} << shape.profiles[instance.profile].size) - 1;
  return {placement, instance, static_cast<uint32_t>(run << instance.start)};
}

// One layout while the enumeration extends it, with all data that decides its legality.
class Growth {
 public:
  explicit Growth(const ModelShape& shape)
      : shape_(shape),
        counts_(shape.profiles.size()),
        parts_(shape.profiles.size()),
        in_(shape.slots),
        engines_(shape.engines.size()) {}

  // Adds the placement. Returns false and changes nothing if that is illegal.
  bool Push(const Piece& piece) {
    const bool beside = IsBesideParts(piece);
    if (!beside && (slots_ & piece.slots) != 0) return false;
    Take(piece, beside, 1);
    if (!CountsAreLegal(piece)) {
      Take(piece, beside, -1);
      return false;
    }
    slots_ |= piece.slots;
    return true;
  }
  void Pop(const Piece& piece) {
    const bool last = !piece.part() || in_[piece.instance.start].count == 1;
    Take(piece, !last, -1);
    if (last) slots_ &= ~piece.slots;
  }

 private:
  // Parts of the instance that begins at a slot.
  struct Parts {
    ProfileId profile = 0;
    uint8_t instance = 0;  // profile of that instance
    int count = 0;
  };

  // True if the layout already divides the piece's instance into parts of the same kind.
  bool IsBesideParts(const Piece& piece) const {
    if (!piece.part()) return false;
    const Parts& there = in_[piece.instance.start];
    return there.count > 0 && there.profile == piece.placement.profile &&
           there.instance == piece.instance.profile;
  }

  // Counts a divided instance once, whatever the number of its parts.
  void Take(const Piece& piece, bool beside, int by) {
    if (!beside) CountInstance(piece.instance.profile, by);
    if (!piece.part()) return;
    const ProfileId part = piece.placement.profile;
    parts_[part] = static_cast<uint8_t>(parts_[part] + by);
    Parts& there = in_[piece.instance.start];
    there = {part, piece.instance.profile, there.count + by};
  }
  void CountInstance(ProfileId id, int by) {
    counts_[id] = static_cast<uint8_t>(counts_[id] + by);
    const auto& taken = shape_.profiles[id].engines;
    for (size_t e = 0; e < engines_.size(); ++e) engines_[e] += by * taken[e];
  }

  bool CountsAreLegal(const Piece& piece) const {
    const ProfileId instance = piece.instance.profile, added = piece.placement.profile;
    if (counts_[instance] > shape_.profiles[instance].max_count) return false;
    if (parts_[added] > shape_.profiles[added].max_count) return false;
    for (size_t e = 0; e < engines_.size(); ++e) {
      if (engines_[e] > shape_.engines[e]) return false;
    }
    if (!NothingExcluded(instance) || !GeometryIsLegal()) return false;
    return !piece.part() || NothingExcluded(added);
  }

  bool NothingExcluded(ProfileId added) const {
    for (size_t p = 0; p < counts_.size(); ++p) {
      const int there = counts_[p] + parts_[p];
      const bool both = (p == added ? there > 1 : there > 0);
      const bool excluded = ((shape_.profiles[p].excludes >> added) & 1U) != 0 ||
                            ((shape_.profiles[added].excludes >> p) & 1U) != 0;
      if (both && excluded) return false;
    }
    return true;
  }

  bool GeometryIsLegal() const {
    const auto& allowed = shape_.allowed_geometries;
    const auto& forbidden = shape_.forbidden_geometries;
    return (allowed.empty() ||
            std::ranges::any_of(allowed, [&](const auto& g) { return Within(counts_, g); })) &&
           std::ranges::none_of(forbidden, [&](const auto& g) { return Within(g, counts_); });
  }

  const ModelShape& shape_;
  std::vector<uint8_t> counts_;  // instances, divided or not
  std::vector<uint8_t> parts_;   // parts
  std::vector<Parts> in_;        // by start of the instance
  std::vector<int> engines_;
  uint32_t slots_ = 0;
};

// Depth-first search over placements in order. Every legal set is found exactly once, because each
// subset of a legal set is legal. Stops after one layout more than the limit.
class Enumerator {
 public:
  Enumerator(const ModelShape& shape, std::span<const Placement> placements) : growth_(shape) {
    for (const Placement& placement : placements) pieces_.push_back(PieceOf(shape, placement));
  }

  std::vector<uint64_t> Run() {
    Visit(0, 0);
    return std::move(found_);
  }

 private:
  void Visit(uint64_t members, size_t next) {
    if (found_.size() > kMaxLayouts) return;
    found_.push_back(members);
    for (size_t i = next; i < pieces_.size(); ++i) {
      if (!growth_.Push(pieces_[i])) continue;
      Visit(members | (uint64_t{1} << i), i + 1);
      growth_.Pop(pieces_[i]);
    }
  }

  std::vector<Piece> pieces_;
  Growth growth_;
  std::vector<uint64_t> found_;
};

}  // namespace

Result<LayoutTable> LayoutTable::Build(const ModelShape& shape) {
  NOS_RETURN_IF_ERROR(CheckShape(shape));
  LayoutTable table;
  table.IndexPlacements(shape);
  if (table.placements_.size() > kMaxPlacements) return Invalid("more than 64 placements");
  NOS_RETURN_IF_ERROR(table.EnumerateLayouts(shape));
  table.FillTransitions(shape);
  table.FillCopies();
  return table;
}

void LayoutTable::IndexPlacements(const ModelShape& shape) {
  profile_count_ = shape.profiles.size();
  for (size_t p = 0; p < profile_count_; ++p) {
    for (const uint8_t start : shape.profiles[p].starts) {
      placements_.push_back({static_cast<ProfileId>(p), start});
    }
  }
  std::ranges::sort(placements_);
  const auto repeated = std::ranges::unique(placements_);
  placements_.erase(repeated.begin(), repeated.end());
  of_profile_.assign(profile_count_, 0);
  for (const Placement& placement : placements_) {
    instances_.push_back(gpu::InstanceOf(shape, placement).value_or(placement));
  }
  for (size_t i = 0; i < std::min(placements_.size(), kMaxPlacements); ++i) {
    of_profile_[placements_[i].profile] |= uint64_t{1} << i;
  }
}

Status LayoutTable::EnumerateLayouts(const ModelShape& shape) {
  members_ = Enumerator(shape, placements_).Run();
  if (members_.size() > kMaxLayouts) return Invalid("more than 65,534 layouts");
  std::ranges::sort(members_, {}, [](uint64_t m) { return std::pair(std::popcount(m), m); });
  by_members_.reserve(members_.size());
  for (size_t s = 0; s < members_.size(); ++s) {
    by_members_.emplace_back(members_[s], static_cast<LayoutId>(s));
  }
  std::ranges::sort(by_members_);
  return Status::Ok();
}

void LayoutTable::FillTransitions(const ModelShape& shape) {
  const size_t width = placements_.size();
  add_.assign(size() * width, kIllegal);
  remove_.assign(size() * width, kIllegal);
  addable_.assign(size(), 0);
  slots_.assign(size(), 0);
  for (size_t s = 0; s < size(); ++s) {
    for (uint64_t rest = members_[s]; rest != 0; rest &= rest - 1) {
      const auto i = static_cast<size_t>(std::countr_zero(rest));
      const LayoutId smaller = FromMembers(members_[s] & ~(uint64_t{1} << i));
      remove_[s * width + i] = smaller;
      add_[smaller * width + i] = static_cast<LayoutId>(s);
      addable_[smaller] |= uint64_t{1} << i;
      slots_[s] |= PieceOf(shape, placements_[i]).slots;
    }
  }
}

// Instances of one profile are equal and other limits depend only on their number, so taking the
// lowest start first packs the maximum. Parts fill the instances that are already divided. Larger
// layouts have higher numbers, so the loop runs backwards.
void LayoutTable::FillCopies() {
  copies_.assign(size() * profile_count_, 0);
  for (size_t s = size(); s-- > 0;) {
    for (size_t p = 0; p < profile_count_; ++p) {
      const uint64_t fits = addable_[s] & of_profile_[p];
      if (fits == 0) continue;
      const auto lowest = static_cast<PlacementId>(std::countr_zero(fits));
      const LayoutId next = Add(static_cast<LayoutId>(s), lowest);
      copies_[s * profile_count_ + p] =
          static_cast<uint8_t>(1 + copies_[next * profile_count_ + p]);
    }
  }
}

std::optional<PlacementId> LayoutTable::Find(Placement placement) const {
  const auto at = std::ranges::lower_bound(placements_, placement);
  if (at == placements_.end() || *at != placement) return std::nullopt;
  return static_cast<PlacementId>(at - placements_.begin());
}

LayoutId LayoutTable::FromMembers(uint64_t members) const {
  const auto at = std::ranges::lower_bound(by_members_, std::pair(members, LayoutId{0}));
  return at == by_members_.end() || at->first != members ? kIllegal : at->second;
}

Result<LayoutId> LayoutTable::FromPlacements(std::span<const Placement> placements) const {
  uint64_t members = 0;
  for (const Placement& placement : placements) {
    const auto id = Find(placement);
    const uint64_t bit = id ? uint64_t{1} << *id : 0;
    if (bit == 0 || (members & bit) != 0) {
      return Invalid("profile " + std::to_string(placement.profile) + " at start " +
                     std::to_string(placement.start) +
                     (bit == 0 ? " does not exist" : " is there twice"));
    }
    members |= bit;
  }
  const LayoutId layout = FromMembers(members);
  if (layout == kIllegal) return Invalid("these instances cannot coexist on one GPU");
  return layout;
}

}  // namespace nos::gpu
