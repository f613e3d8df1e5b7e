#include "gpu/modes.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/text.h"

namespace nos::gpu {
namespace {

constexpr std::string_view kWholePart = "GPU", kTimePart = "TIME-", kPlainPrefix = "GPU-";
constexpr std::string_view kPlainSuffix = "GB";
constexpr size_t kMostModels = 1024;  // names come from outside

// The number that stands there alone, without leading zeroes. 0: something else does.
int NumberOf(std::string_view text, int most) {
  if (text.empty() || text.front() < '1' || text.front() > '9') return 0;
  const auto number = ParseInt(text);
  return number && *number <= most ? static_cast<int>(*number) : 0;
}

bool TakeBase(const Catalogue& catalogue, std::string_view name, Modes& modes) {
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
  modes.memory_gib = NumberOf(name, kMostModesGib);
  return modes.memory_gib > 0;
}

// Names of the catalogue may have a '+' themselves: what comes last is taken off first.
std::optional<Modes> Parse(const Catalogue& catalogue, std::string_view name) {
  Modes modes;
  std::string_view left = name;
  for (size_t plus = left.rfind('+'); plus != std::string_view::npos; plus = left.rfind('+')) {
    const std::string_view part = left.substr(plus + 1);
    if (part == kWholePart && !modes.whole) {
      modes.whole = true;
    } else if (part.starts_with(kTimePart) && modes.time_slices == 0 && !modes.whole) {
      modes.time_slices = NumberOf(part.substr(kTimePart.size()), UINT8_MAX);
      if (modes.time_slices == 0) return std::nullopt;
    } else {
      break;
    }
    left = left.substr(0, plus);
  }
  if (!modes.whole && modes.time_slices == 0) return std::nullopt;
  if (!TakeBase(catalogue, left, modes)) return std::nullopt;
  // There is one way to write each.
  return NameOf(modes) == name ? std::optional(modes) : std::nullopt;
}

}  // namespace

bool IsPlain(const Profile& profile) {
  return profile.resource_name == kWholeGpu || profile.resource_name == kTimeSlice;
}

int MostTimeSlices(const Modes& modes) {
  if (modes.mig != nullptr) return modes.mig->compute_slices();
  return modes.slots > 0 ? std::min(modes.slots, kMostTimeSlices) : kMostTimeSlices;
}

std::string NameOf(const Modes& modes) {
  std::string name = modes.mig != nullptr
                         ? modes.mig->name()
                         : std::string(kPlainPrefix) + std::to_string(modes.memory_gib) +
                               std::string(kPlainSuffix);
  if (modes.mig == nullptr && modes.slots > 0) name += "-" + std::to_string(modes.slots);
  if (modes.whole) name += "+" + std::string(kWholePart);
  if (modes.time_slices > 1 && modes.time_slices <= MostTimeSlices(modes)) {
    name += "+" + std::string(kTimePart) + std::to_string(modes.time_slices);
  }
  return name;
}

// The profiles of MIG come first and keep their ids.
class ModesBuilder {
 public:
  explicit ModesBuilder(const Modes& modes) : modes_(modes), model_(std::make_unique<Model>()) {
    model_->name_ = NameOf(modes);
    if (modes.mig != nullptr) {
      TakeOver(*modes.mig);
    } else {
      model_->memory_gib_ = modes.memory_gib;
      model_->compute_slices_ = MostTimeSlices(modes);
      model_->slots_ = modes.slots > 0 ? modes.slots : kPlainSlots;
      shape_.slots = static_cast<uint8_t>(model_->slots_);
    }
    of_mig_ = shape_.profiles.size();
  }

  // Null: no table can hold it all.
  std::unique_ptr<const Model> Build() && {
    if (modes_.whole) Add("gpu", kWholeGpu, 1);
    if (modes_.time_slices > 1) Add("shared", kTimeSlice, modes_.time_slices);
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

  // `count` equal parts of the GPU.
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

  void Exclude() {
    const size_t all = shape_.profiles.size();
    for (size_t added = of_mig_; added < all; ++added) {
      for (size_t other = 0; other < all; ++other) {
        if (other != added) shape_.profiles[added].excludes |= uint32_t{1} << other;
      }
    }
  }

  // Lists of geometries know nothing of these profiles.
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

  const Modes modes_;
  std::unique_ptr<Model> model_;
  ModelShape shape_;
  size_t of_mig_ = 0;
};

const Model* ModesBook::Find(const Catalogue& catalogue, std::string_view name) {
  const std::lock_guard lock(mutex_);
  const auto known = models_.find(name);
  if (known != models_.end()) return known->second.get();
  if (models_.size() >= kMostModels) return nullptr;
  const auto modes = Parse(catalogue, name);
  if (!modes) return nullptr;
  return models_.emplace(name, ModesBuilder(*modes).Build()).first->second.get();
}

}  // namespace nos::gpu
