#include "gpu/catalogue_builder.h"

#include <algorithm>
#include <bit>
#include <ranges>

#include "base/text.h"
#include "gpu/modes.h"
#include "gpu/product_words.h"

namespace nos::gpu {
namespace {

constexpr size_t kMaxModels = 256;
constexpr size_t kMaxGeometries = 1000;

std::string WithDots(std::string name) {
  std::ranges::replace(name, '+', '.');
  return name;
}

std::string ResourceName(const std::string& profile) {
  return "nvidia.com/mig-" + WithDots(profile);
}

// All names of a profile. An alias has no resource name: the agent advertises each device under its
// canonical name, so a pod that requests an alias would stay pending.
std::vector<std::string> NamesOf(const Profile& profile) {
  std::vector<std::string> names = {profile.name, WithDots(profile.name),
                                    ResourceName(profile.name)};
  for (const std::string& alias : profile.aliases) {
    names.insert(names.end(), {alias, WithDots(alias)});
  }
  return names;
}

std::optional<size_t> FindProfile(const ModelSpec& spec, std::string_view name) {
  for (size_t i = 0; i < spec.profiles.size(); ++i) {
    const auto names = NamesOf(spec.profiles[i].profile);
    if (std::ranges::find(names, name) != names.end()) return i;
  }
  return std::nullopt;
}

// Engines with a limit per GPU. Copy engines are left out because no source states how MIG divides
// them.
std::vector<uint16_t> EngineVector(const Engines& engines) {
  return {engines.decode, engines.encode, engines.jpeg, engines.ofa};
}

// Counts per profile. nullopt if the model does not have one of the profiles (the user removed it).
std::optional<std::vector<uint8_t>> CountsOf(const ModelSpec& spec, const Geometry& geometry) {
  std::vector<uint8_t> counts(spec.profiles.size());
  for (const auto& [name, count] : geometry) {
    const auto id = FindProfile(spec, name);
    if (!id) return std::nullopt;
    counts[*id] = static_cast<uint8_t>(counts[*id] + count);
  }
  return counts;
}

std::vector<std::vector<uint8_t>> CountsOfAll(const ModelSpec& spec,
                                              const std::vector<Geometry>& geometries) {
  std::vector<std::vector<uint8_t>> all;
  for (const Geometry& geometry : geometries) {
    if (auto counts = CountsOf(spec, geometry)) all.push_back(std::move(*counts));
  }
  return all;
}

ProfileShape ShapeOf(const ModelSpec& spec, const ProfileSpec& profile) {
  ProfileShape shape{static_cast<uint8_t>(profile.profile.slots),
                     static_cast<uint8_t>(profile.profile.max_count),
                     profile.profile.starts,
                     {},
                     0};
  if (spec.engine_totals) shape.engines = EngineVector(profile.profile.engines);
  for (const std::string& name : profile.excludes) {
    if (const auto id = FindProfile(spec, name)) shape.excludes |= uint32_t{1} << *id;
  }
  return shape;
}

ModelShape ShapeOf(const ModelSpec& spec) {
  ModelShape shape;
  shape.slots = static_cast<uint8_t>(spec.slots);
  if (spec.engine_totals) shape.engines = EngineVector(*spec.engine_totals);
  for (const ProfileSpec& profile : spec.profiles) shape.profiles.push_back(ShapeOf(spec, profile));
  shape.allowed_geometries = CountsOfAll(spec, spec.allowed);
  shape.forbidden_geometries = CountsOfAll(spec, spec.forbidden);
  return shape;
}

Status CheckProfile(const ModelSpec& spec, const ProfileSpec& profile) {
  const Profile& p = profile.profile;
  if (p.name.empty()) return Invalid("name is missing");
  if (p.starts.empty()) return Invalid("starts is empty");
  if (p.compute < 1 || p.compute > spec.compute_slices) {
    return Invalid("compute must be 1.." + std::to_string(spec.compute_slices));
  }
  for (const std::string& name : profile.excludes) {
    if (!FindProfile(spec, name)) return Invalid("excludes an unknown profile \"" + name + "\"");
  }
  return Status::Ok();
}

Status CheckSpec(const ModelSpec& spec) {
  if (spec.name.empty()) return Invalid("name is missing");
  if (spec.profiles.empty() || spec.profiles.size() > 32) return Invalid("needs 1..32 profiles");
  std::vector<std::string> names;
  for (const ProfileSpec& profile : spec.profiles) {
    const Status status = CheckProfile(spec, profile);
    if (!status.ok()) return status.Within("profile \"" + profile.profile.name + "\"");
    names.push_back(profile.profile.name);
    names.insert(names.end(), profile.profile.aliases.begin(), profile.profile.aliases.end());
  }
  std::ranges::sort(names);
  const auto twice = std::ranges::adjacent_find(names);
  if (twice != names.end()) return Invalid("two profiles are named \"" + *twice + "\"");
  return Status::Ok();
}

Status UnknownModel(std::string_view name) {
  return Invalid("no model \"" + std::string(name) + "\" in the catalogue");
}

Status CheckGeometry(const ModelSpec& spec, const Geometry& geometry) {
  if (geometry.empty()) return Invalid("the geometry is empty");
  for (const auto& [name, count] : geometry) {
    if (!FindProfile(spec, name)) return Invalid(spec.name + " has no profile \"" + name + "\"");
    if (count < 1 || count > spec.slots) {
      return Invalid("the count of " + name + " must be 1.." + std::to_string(spec.slots));
    }
  }
  return Status::Ok();
}

bool HasLayoutOf(const LayoutTable& table, const std::vector<uint8_t>& counts) {
  for (size_t layout = 0; layout < table.size(); ++layout) {
    const uint64_t members = table.Members(static_cast<LayoutId>(layout));
    const auto has = [&](size_t profile) {
      const uint64_t of = table.PlacementsOf(static_cast<ProfileId>(profile));
      return std::popcount(members & of) == counts[profile];
    };
    if (std::ranges::all_of(std::views::iota(size_t{0}, counts.size()), has)) return true;
  }
  return false;
}

// Rejects a geometry that no GPU of the model can have. Otherwise the subsets of an impossible
// geometry would silently be allowed.
Status CheckPossible(const ModelSpec& spec, const Geometry& geometry) {
  ModelShape shape = ShapeOf(spec);
  shape.allowed_geometries = CountsOfAll(spec, {geometry});  // keeps the table small
  NOS_ASSIGN(const LayoutTable table, LayoutTable::Build(shape));
  if (HasLayoutOf(table, shape.allowed_geometries.front())) return Status::Ok();
  return Invalid(spec.name +
                 " cannot be partitioned like that: these instances do not fit together");
}

}  // namespace

ModelSpec* CatalogueBuilder::Find(std::string_view name) {
  const std::string wanted = ToLower(name);
  for (ModelSpec& spec : specs_) {
    if (ToLower(spec.name) == wanted) return &spec;
  }
  return nullptr;
}

ModelSpec* CatalogueBuilder::FindByProduct(std::string_view product) {
  const std::vector<std::string> words = ProductWords(product);
  ModelSpec* best = nullptr;
  size_t best_length = 0;
  for (ModelSpec& spec : specs_) {
    for (const std::string& pattern : spec.products) {
      const std::vector<std::string> parts = ProductWords(pattern);
      if (parts.size() < best_length || !ContainsInOrder(words, parts)) continue;
      best = &spec;
      best_length = parts.size();
    }
  }
  return best;
}

ModelSpec* CatalogueBuilder::FindByNameOrProduct(std::string_view model) {
  ModelSpec* spec = Find(model);
  return spec != nullptr ? spec : FindByProduct(model);
}

Result<CatalogueBuilder::SharedTable> CatalogueBuilder::TableFor(const ModelSpec& spec) {
  ModelShape shape = ShapeOf(spec);
  for (const SharedTable& known : tables_) {
    if (*known.shape == shape) return known;
  }
  NOS_ASSIGN(LayoutTable built, LayoutTable::Build(shape));
  tables_.push_back({std::make_shared<const ModelShape>(std::move(shape)),
                     std::make_shared<const LayoutTable>(std::move(built))});
  return tables_.back();
}

Status CatalogueBuilder::Put(ModelSpec spec) {
  NOS_RETURN_IF_ERROR(CheckSpec(spec));
  NOS_RETURN_IF_ERROR(TableFor(spec).status());
  if (ModelSpec* old = Find(spec.name)) {
    *old = std::move(spec);
    return Status::Ok();
  }
  if (specs_.size() >= kMaxModels) return {Code::kExhausted, "more than 256 models"};
  specs_.push_back(std::move(spec));
  return Status::Ok();
}

Status CatalogueBuilder::RemoveModel(std::string_view model) {
  const ModelSpec* spec = Find(model);
  if (spec == nullptr) return UnknownModel(model);
  specs_.erase(specs_.begin() + (spec - specs_.data()));
  return Status::Ok();
}

Status CatalogueBuilder::RemoveProfile(std::string_view model, std::string_view profile) {
  ModelSpec* spec = Find(model);
  if (spec == nullptr) return UnknownModel(model);
  const auto id = FindProfile(*spec, profile);
  if (!id) return Invalid(spec->name + " has no profile \"" + std::string(profile) + "\"");
  if (spec->profiles.size() == 1) {
    return Invalid("\"" + std::string(profile) +
                   "\" is the last profile; remove the model instead");
  }
  spec->profiles.erase(spec->profiles.begin() + static_cast<std::ptrdiff_t>(*id));
  return Status::Ok();
}

Status CatalogueBuilder::Forbid(std::string_view model, const Geometry& geometry) {
  ModelSpec* spec = Find(model);
  if (spec == nullptr) return UnknownModel(model);
  NOS_RETURN_IF_ERROR(CheckGeometry(*spec, geometry));
  if (spec->forbidden.size() >= kMaxGeometries) return {Code::kExhausted, "too many geometries"};
  spec->forbidden.push_back(geometry);
  return Status::Ok();
}

Status CatalogueBuilder::Allow(std::string_view model, const Geometry& geometry) {
  ModelSpec* spec = FindByNameOrProduct(model);
  if (spec == nullptr) return UnknownModel(model);
  NOS_RETURN_IF_ERROR(CheckGeometry(*spec, geometry));
  NOS_RETURN_IF_ERROR(CheckPossible(*spec, geometry));
  if (spec->allowed.size() >= kMaxGeometries) return {Code::kExhausted, "too many geometries"};
  spec->allowed.push_back(geometry);
  return Status::Ok();
}

std::string CatalogueBuilder::NameOf(std::string_view model) {
  const ModelSpec* spec = FindByNameOrProduct(model);
  return spec == nullptr ? "" : spec->name;
}

void CatalogueBuilder::AddIgnored(IgnoredGeometry geometry) {
  if (std::ranges::find(ignored_, geometry) != ignored_.end()) return;
  ignored_.push_back(std::move(geometry));
}

void CatalogueBuilder::AddUnpartitionable(const std::string& product, std::string reason) {
  unpartitionable_.emplace_back(product, std::move(reason));
}

std::unique_ptr<const Model> CatalogueBuilder::BuildModel(const ModelSpec& spec) {
  auto model = std::make_unique<Model>();
  model->name_ = spec.name;
  model->architecture_ = spec.architecture;
  model->memory_gib_ = spec.memory_gib;
  model->compute_slices_ = spec.compute_slices;
  model->slots_ = spec.slots;
  model->pci_ids_ = spec.pci_ids;
  for (const ProfileSpec& profile : spec.profiles) {
    const auto id = static_cast<ProfileId>(model->profiles_.size());
    for (std::string& name : NamesOf(profile.profile)) {
      model->profile_by_name_.emplace(std::move(name), id);
    }
    model->profiles_.push_back(profile.profile);
    model->profiles_.back().resource_name = ResourceName(profile.profile.name);
  }
  auto table = TableFor(spec);
  if (!table.ok()) {
    AddProblem(table.status().Within("model \"" + spec.name + "\"").message());
    return nullptr;
  }
  model->shape_ = table->shape;
  model->layouts_ = table->table;
  return model;
}

std::unique_ptr<const Model> BuildCounted(CountedSpec spec) {
  auto model = std::make_unique<Model>();
  model->name_ = std::move(spec.name);
  model->memory_gib_ = model->slots_ = spec.slots;
  model->compute_slices_ = spec.compute_slices;
  model->max_instances_ = spec.max_instances;
  model->profiles_ = std::move(spec.profiles);
  for (size_t i = 0; i < model->profiles_.size(); ++i) {
    for (const std::string& name : {model->profiles_[i].name, model->profiles_[i].resource_name}) {
      model->profile_by_name_.emplace(name, static_cast<ProfileId>(i));
    }
  }
  return model;
}

Catalogue CatalogueBuilder::Build() && {
  Catalogue catalogue;
  catalogue.modes_ = std::make_shared<SharingModeBook>();
  for (const ModelSpec& spec : specs_) {
    auto model = BuildModel(spec);
    if (model == nullptr) continue;
    for (const std::string& product : spec.products) {
      catalogue.products_.push_back({ProductWords(product), model.get(), {}});
    }
    catalogue.models_.push_back(std::move(model));
  }
  for (auto& [product, reason] : unpartitionable_) {
    catalogue.products_.push_back({ProductWords(product), nullptr, std::move(reason)});
  }
  catalogue.problems_ = std::move(problems_);
  catalogue.ignored_ = std::move(ignored_);
  return catalogue;
}

}  // namespace nos::gpu
