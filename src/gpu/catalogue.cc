#include "gpu/catalogue.h"

#include "base/text.h"
#include "gpu/catalogue_builder.h"
#include "gpu/catalogue_file.h"
#include "gpu/modes.h"
#include "gpu/product_words.h"

namespace nos::gpu {
namespace {

Result<Catalogue> BuiltinAnd(std::string_view user_yaml) {
  CatalogueBuilder builder;
  NOS_RETURN_IF_ERROR(ReadCatalogueFile(kBuiltinCatalogueYaml, builder));
  if (!user_yaml.empty()) NOS_RETURN_IF_ERROR(ReadCatalogueFile(user_yaml, builder));
  return std::move(builder).Build();
}

}  // namespace

std::string_view ConfidenceName(Confidence confidence) {
  switch (confidence) {
    case Confidence::kLive:
      return "live";
    case Confidence::kTranscript:
      return "transcript";
    case Confidence::kInferred:
      return "inferred";
    case Confidence::kUnsourced:
      return "unsourced";
  }
  return "unsourced";
}

std::optional<ProfileId> Model::FindProfile(std::string_view name) const {
  const auto at = profile_by_name_.find(name);
  if (at == profile_by_name_.end()) return std::nullopt;
  return at->second;
}

std::string Model::PlacementName(Placement placement) const {
  return profiles_[placement.profile].name + "@" + std::to_string(placement.start);
}

bool Model::IsPlace(Placement placement) const {
  if (counted()) return placement.start < profile(placement.profile).starts.size();
  return placement.start < slots_ && layouts().Find(placement).has_value();
}

Result<Placement> Model::ParsePlacement(std::string_view text) const {
  const std::string shown = "placement \"" + std::string(text.substr(0, 64)) + "\" on " + name_;
  const size_t at = text.rfind('@');
  if (at == std::string_view::npos) return Invalid(shown + ": expected <profile>@<start>");
  const auto profile = FindProfile(text.substr(0, at));
  if (!profile) return Invalid(shown + ": the model has no such profile");
  const auto start = ParseInt(text.substr(at + 1));
  if (start && *start >= 0 && *start <= UINT8_MAX) {
    const Placement placement{*profile, static_cast<uint8_t>(*start)};
    if (IsPlace(placement)) return placement;
  }
  return Invalid(shown + ": the profile cannot start there");
}

const Catalogue& Catalogue::Builtin() {
  static const Catalogue kBuiltin = BuiltinAnd({}).value();
  return kBuiltin;
}

Result<Catalogue> Catalogue::Load(std::string_view user_yaml) { return BuiltinAnd(user_yaml); }

const Model* Catalogue::FindByName(std::string_view name) const {
  const std::string wanted = ToLower(name);
  for (const auto& model : models_) {
    if (ToLower(model->name()) == wanted) return model.get();
  }
  return nullptr;
}

const Model* Catalogue::FindSharingModes(std::string_view name) const {
  return modes_ == nullptr ? nullptr : modes_->Find(*this, name);
}

// If two patterns are equally specific, the later one wins, because it may be the user's.
const Catalogue::ProductPattern* Catalogue::Match(std::string_view product,
                                                  bool partitionable) const {
  const std::vector<std::string> words = ProductWords(product);
  const ProductPattern* best = nullptr;
  for (const ProductPattern& pattern : products_) {
    if ((pattern.model != nullptr) != partitionable) continue;
    if (best != nullptr && pattern.words.size() < best->words.size()) continue;
    if (ContainsInOrder(words, pattern.words)) best = &pattern;
  }
  return best;
}

const Model* Catalogue::FindByProduct(std::string_view product) const {
  const ProductPattern* pattern = Match(product, /*partitionable=*/true);
  return pattern == nullptr ? nullptr : pattern->model;
}

const Model* Catalogue::FindByPciId(uint32_t device_and_vendor) const {
  for (const auto& model : models_) {
    for (const uint32_t id : model->pci_ids()) {
      if (id == device_and_vendor) return model.get();
    }
  }
  return nullptr;
}

std::string Catalogue::WhyUnknown(std::string_view product) const {
  const ProductPattern* known = Match(product, /*partitionable=*/false);
  const std::string reason = known == nullptr ? "it is not in the catalogue" : known->reason;
  return "GPU model \"" + std::string(product.substr(0, 256)) +
         "\" cannot be partitioned: " + reason +
         "; add it to the catalogue file (docs/catalogue.md)";
}

}  // namespace nos::gpu
