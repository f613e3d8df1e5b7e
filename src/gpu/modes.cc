#include "gpu/modes.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/text.h"
#include "gpu/shares.h"

namespace nos::gpu {
namespace {

constexpr std::string_view kWholePart = "GPU", kTimePart = "TIME-", kPlainPrefix = "GPU-";
constexpr std::string_view kPlainSuffix = "GB";
constexpr size_t kMaxModels = 1024;      // per kind, because names come from outside
constexpr size_t kMaxLayouts = 300'000;  // of all models of a kind, about 300 bytes each
constexpr std::string_view kPartMark = ".mps", kMigResource = "nvidia.com/mig-";
constexpr size_t kMaxPartsText = 1024;
constexpr size_t kMaxProfiles = 32;  // limit of a layout table

// Parses a number without leading zeroes, from 1 to `most`. 0 if the text is anything else.
int NumberOf(std::string_view text, int most) {
  if (text.empty() || text.front() < '1' || text.front() > '9') return 0;
  const auto number = ParseInt(text);
  return number && *number <= most ? static_cast<int>(*number) : 0;
}

bool TakeBase(const Catalogue& catalogue, std::string_view name, SharingModes& modes) {
  modes.mig = catalogue.FindByName(name);
  if (modes.mig != nullptr) return modes.mig->name() == name;
  if (!name.starts_with(kPlainPrefix)) return false;
  name.remove_prefix(kPlainPrefix.size());
  if (const size_t dash = name.find('-'); dash != std::string_view::npos) {
    modes.slots = NumberOf(name.substr(dash + 1), kPlainSlots - 1);
    if (modes.slots == 0) return false;
    name = name.substr(0, dash);
  }
  if (!name.ends_with(kPlainSuffix)) return false;
  name.remove_suffix(kPlainSuffix.size());
  modes.memory_gib = NumberOf(name, kMaxModesGib);
  return modes.memory_gib > 0;
}

// Appends a part to `modes`. NameOf sorts the parts.
bool TakePart(std::string_view name, SharingModes& modes) {
  auto part = ParsePartName(name);
  if (!part) return false;
  modes.parts.push_back(*std::move(part));
  return true;
}

// The requested parts that the model supports, by profile and count, without duplicates.
std::vector<InstancePart> PartsOf(const SharingModes& modes) {
  if (modes.mig == nullptr) return {};
  std::vector<InstancePart> parts;
  for (const Profile& profile : modes.mig->profiles()) {
    for (int count = 2; count <= kMaxParts; ++count) {
      InstancePart part{profile.name, count};
      const bool asked = std::ranges::find(modes.parts, part) != modes.parts.end();
      if (asked && CanHaveParts(*modes.mig, part)) parts.push_back(std::move(part));
    }
  }
  return parts;
}

// Parses from the end, because model names in the catalogue may contain '+'.
std::optional<SharingModes> Parse(const Catalogue& catalogue, std::string_view name) {
  SharingModes modes;
  std::string_view left = name;
  for (size_t plus = left.rfind('+'); plus != std::string_view::npos; plus = left.rfind('+')) {
    const std::string_view part = left.substr(plus + 1);
    if (part == kWholePart && !modes.whole) {
      modes.whole = true;
    } else if (part.starts_with(kTimePart) && modes.time_slices == 0 && !modes.whole) {
      modes.time_slices = NumberOf(part.substr(kTimePart.size()), UINT8_MAX);
      if (modes.time_slices == 0) return std::nullopt;
    } else if (modes.parts.size() >= kMaxProfiles || !TakePart(part, modes)) {
      break;
    }
    left = left.substr(0, plus);
  }
  if (!modes.whole && modes.time_slices == 0 && modes.parts.empty()) return std::nullopt;
  if (!TakeBase(catalogue, left, modes)) return std::nullopt;
  // Accept only the canonical spelling, so that each model has one name.
  return NameOf(modes) == name ? std::optional(modes) : std::nullopt;
}

}  // namespace

bool IsPlain(const Profile& profile) {
  return profile.resource_name == kWholeGpu || profile.resource_name == kTimeSlice;
}

int MostTimeSlices(const SharingModes& modes) {
  if (modes.mig != nullptr) return modes.mig->compute_slices();
  return modes.slots > 0 ? std::min(modes.slots, kMaxTimeSlices) : kMaxTimeSlices;
}

std::string PartName(const InstancePart& part) {
  return part.profile + std::string(kPartMark) + std::to_string(part.count);
}

std::optional<InstancePart> ParsePartName(std::string_view name) {
  const size_t mark = name.rfind(kPartMark);
  if (mark == std::string_view::npos || mark == 0) return std::nullopt;
  const std::string_view profile = name.substr(0, mark);
  const int count = NumberOf(name.substr(mark + kPartMark.size()), kMaxParts);
  const bool spelt = std::ranges::all_of(profile, [](unsigned char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '.';
  });
  const bool twice = profile.find(kPartMark) != std::string_view::npos;
  if (!spelt || count < 2 || twice) return std::nullopt;
  return InstancePart{std::string(profile), count};
}

bool IsPartResource(std::string_view resource) {
  return resource.starts_with(kMigResource) &&
         ParsePartName(resource.substr(kMigResource.size())).has_value();
}

Result<std::vector<InstancePart>> ParseParts(std::string_view text) {
  std::vector<InstancePart> parts;
  if (text.size() > kMaxPartsText) return Invalid("parts of instances: the text is too long");
  if (Trim(text).empty()) return parts;
  for (const std::string_view word : Split(text, ',')) {
    const std::string_view name = Trim(word);
    auto part = ParsePartName(name);
    if (!part) {
      return Invalid("'" + std::string(name) +
                     "' is no part of an instance: write its profile and into how many parts it is "
                     "divided, 2 to " +
                     std::to_string(kMaxParts) + ", such as 3g.40gb.mps4");
    }
    if (std::ranges::find(parts, *part) == parts.end()) parts.push_back(*std::move(part));
  }
  return parts;
}

bool CanHaveParts(const Model& model, const InstancePart& part) {
  const auto id = model.counted() ? std::nullopt : model.FindProfile(part.profile);
  if (!id || model.PartOf(*id)) return false;
  const Profile& profile = model.profile(*id);
  // Only canonical names. Profiles with extra engines ("+me") are not supported.
  if (profile.name != part.profile || ParsePartName(PartName(part)) != part) return false;
  if (part.count > profile.slots) return false;
  const std::vector<uint8_t>& starts = profile.starts;
  return std::ranges::none_of(starts, [&](int start) {
    return std::ranges::any_of(
        starts, [&](int other) { return other > start && other - start < part.count; });
  });
}

std::string NameOf(const SharingModes& modes) {
  std::string name = modes.mig != nullptr
                         ? modes.mig->name()
                         : std::string(kPlainPrefix) + std::to_string(modes.memory_gib) +
                               std::string(kPlainSuffix);
  if (modes.mig == nullptr && modes.slots > 0) name += "-" + std::to_string(modes.slots);
  for (const InstancePart& part : PartsOf(modes)) name += "+" + PartName(part);
  if (modes.whole) name += "+" + std::string(kWholePart);
  if (modes.time_slices > 1 && modes.time_slices <= MostTimeSlices(modes)) {
    name += "+" + std::string(kTimePart) + std::to_string(modes.time_slices);
  }
  return name;
}

// Profiles of MIG come first and keep the ids that they have in the MIG model.
class ModesBuilder {
 public:
  explicit ModesBuilder(const SharingModes& modes)
      : modes_(modes), model_(std::make_unique<Model>()) {
    model_->name_ = NameOf(modes);
    if (modes.mig != nullptr) {
      TakeOver(*modes.mig);
    } else {
      model_->memory_gib_ = modes.memory_gib;
      model_->compute_slices_ = MostTimeSlices(modes);
      model_->slots_ = modes.slots > 0 ? modes.slots : kPlainSlots;
      shape_.slots = static_cast<uint8_t>(model_->slots_);
    }
  }

  // Null if the layouts exceed the limits of LayoutTable.
  std::unique_ptr<const Model> Build() && {
    for (const InstancePart& part : PartsOf(modes_)) AddPart(part);
    of_mig_ = shape_.profiles.size();
    if (modes_.whole) Add("gpu", kWholeGpu, 1);
    if (modes_.time_slices > 1) Add("shared", kTimeSlice, modes_.time_slices);
    if (shape_.profiles.size() > kMaxProfiles) return nullptr;
    Exclude();
    AllowAlone();
    Result<LayoutTable> table = LayoutTable::Build(shape_);
    if (!table.ok()) return nullptr;
    model_->layouts_ = std::make_shared<const LayoutTable>(std::move(table).value());
    model_->shape_ = std::make_shared<const ModelShape>(std::move(shape_));
    return std::move(model_);
  }

 private:
  void TakeOver(const Model& mig) {
    model_->architecture_ = mig.architecture_;
    model_->memory_gib_ = mig.memory_gib_;
    model_->compute_slices_ = mig.compute_slices_;
    model_->slots_ = mig.slots_;
    model_->pci_ids_ = mig.pci_ids_;
    model_->profiles_ = mig.profiles_;
    model_->profile_by_name_ = mig.profile_by_name_;
    shape_ = mig.shape();
  }

  // Adds a profile that is one of `count` equal parts of the GPU.
  void Add(const std::string& name, std::string_view resource, int count) {
    const auto id = static_cast<ProfileId>(model_->profiles_.size());
    Profile& profile = model_->profiles_.emplace_back();
    profile.name = name;
    profile.resource_name = resource;
    profile.memory_mib = model_->memory_gib_ * 1024 / count;
    profile.compute = std::max(1, model_->compute_slices_ / count);
    profile.slots = model_->slots_ / count;
    profile.max_count = count;
    for (int i = 0; i < count; ++i) {
      profile.starts.push_back(static_cast<uint8_t>(i * profile.slots));
    }
    profile.facts = profile.placements = Confidence::kLive;
    model_->profile_by_name_.emplace(name, id);
    model_->profile_by_name_.emplace(resource, id);
    shape_.profiles.push_back({static_cast<uint8_t>(profile.slots), static_cast<uint8_t>(count),
                               profile.starts, std::vector<uint16_t>(shape_.engines.size()), 0});
  }

  // REQUIRES: CanHaveParts.
  void AddPart(const InstancePart& part) {
    const std::optional<ProfileId> found = model_->FindProfile(part.profile);
    if (!found) return;
    const ProfileId of = *found;
    const Profile whole = model_->profiles_[of];
    const auto id = static_cast<ProfileId>(model_->profiles_.size());
    Profile& profile = model_->profiles_.emplace_back();
    profile.name = PartName(part);
    profile.resource_name = std::string(kMigResource) + profile.name;
    // The MPS server uses kShareOverheadMib of the instance.
    profile.memory_mib = std::max(1, (whole.memory_mib - kShareOverheadMib) / part.count);
    profile.compute = std::max(1, whole.compute / part.count);
    profile.slots = whole.slots / part.count;
    profile.max_count = std::min(whole.max_count * part.count, int{UINT8_MAX});
    profile.multiprocessors = whole.multiprocessors;
    for (const uint8_t start : whole.starts) {
      for (int i = 0; i < part.count; ++i) {
        profile.starts.push_back(static_cast<uint8_t>(start + i));
      }
    }
    profile.facts = whole.facts;
    profile.placements = whole.placements;
    model_->profile_by_name_.emplace(profile.name, id);
    model_->profile_by_name_.emplace(profile.resource_name, id);
    shape_.profiles.push_back({static_cast<uint8_t>(profile.slots),
                               static_cast<uint8_t>(profile.max_count), profile.starts,
                               std::vector<uint16_t>(shape_.engines.size()), 0, of});
  }

  void Exclude() {
    const size_t all = shape_.profiles.size();
    for (size_t added = of_mig_; added < all; ++added) {
      for (size_t other = 0; other < all; ++other) {
        if (other != added) shape_.profiles[added].excludes |= uint32_t{1} << other;
      }
    }
  }

  // The user's geometries do not mention the added profiles, so each of these is allowed on its
  // own.
  void AllowAlone() {
    const size_t all = shape_.profiles.size();
    for (auto* geometries : {&shape_.allowed_geometries, &shape_.forbidden_geometries}) {
      for (auto& geometry : *geometries) geometry.resize(all);
    }
    if (shape_.allowed_geometries.empty()) return;
    for (size_t added = of_mig_; added < all; ++added) {
      std::vector<uint8_t>& alone = shape_.allowed_geometries.emplace_back(all);
      alone[added] = shape_.profiles[added].max_count;
    }
  }

  const SharingModes modes_;
  std::unique_ptr<Model> model_;
  ModelShape shape_;
  size_t of_mig_ = 0;
};

const Model* SharingModeBook::Find(const Catalogue& catalogue, std::string_view name) {
  const std::lock_guard lock(mutex_);
  const auto known = models_.find(name);
  if (known != models_.end()) return known->second.get();
  const auto modes = Parse(catalogue, name);
  if (!modes) return nullptr;
  Made& made = modes->mig == nullptr ? plain_ : modes->parts.empty() ? boards_ : divided_;
  const bool bounded =
      &made != &boards_;  // the number of models in the catalogue is already bounded
  if (bounded && made.models >= kMaxModels) return nullptr;
  ++made.models;
  std::unique_ptr<const Model> model = ModesBuilder(*modes).Build();
  const size_t size = model == nullptr ? 0 : model->layouts().size();
  if (bounded && made.layouts + size > kMaxLayouts) model = nullptr;
  if (model != nullptr) made.layouts += size;
  return models_.emplace(name, std::move(model)).first->second.get();
}

}  // namespace nos::gpu
