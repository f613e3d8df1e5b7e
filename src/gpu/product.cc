#include "gpu/product.h"

#include <algorithm>

#include "gpu/modes.h"
#include "gpu/product_words.h"
#include "gpu/shares.h"

namespace nos::gpu {
namespace {

constexpr std::string_view kSharesPrefix = "MPS-";
constexpr std::string_view kAllSharingModes[] = {kMigMode, kMpsMode, kTimeSlicingMode, kWholeMode};

bool AreDigits(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

// Suffixes of model names that gpu/modes.h and gpu/shares.h define.
bool IsAddition(std::string_view part) {
  if (part == "GPU" || ParsePartName(part)) return true;
  for (const std::string_view counted : {"TIME-", "CLIENTS-"}) {
    if (part.starts_with(counted)) return AreDigits(part.substr(counted.size()));
  }
  return false;
}

}  // namespace

std::string ProductOf(std::string_view model) {
  for (size_t plus = model.rfind('+'); plus != std::string_view::npos && plus > 0;
       plus = model.rfind('+')) {
    if (!IsAddition(model.substr(plus + 1))) break;
    model = model.substr(0, plus);
  }
  if (FindShares(model) != nullptr) model.remove_prefix(kSharesPrefix.size());
  return std::string(model);
}

std::string_view ArchitectureOfHost(std::string_view product) {
  const std::vector<std::string> words = ProductWords(product);
  const bool grace = std::ranges::any_of(words, [](std::string_view word) {
    return (word.starts_with("gh") || word.starts_with("gb")) && AreDigits(word.substr(2));
  });
  return grace ? "arm64" : "amd64";
}

std::string ProductOf(const Model& model, const Model* other, const Model* product) {
  if (!model.counted()) return ProductOf(model.name());
  const Model* source = other != nullptr && !other->counted() ? other : product;
  return ProductOf(source != nullptr ? source->name() : model.name());
}

std::string_view SharingModeOfProfile(std::string_view profile) {
  if (profile == "gpu") return kWholeMode;
  if (profile == "shared") return kTimeSlicingMode;
  const bool share = profile.size() > 2 && profile.ends_with("gb") &&
                     AreDigits(profile.substr(0, profile.size() - 2));
  return share ? kMpsMode : kMigMode;
}

std::string_view SharingModeOf(const Model& model, std::span<const Placement> there) {
  return there.empty() ? std::string_view()
                       : SharingModeOfProfile(model.profile(there[0].profile).name);
}

std::vector<std::string_view> SharingModesOf(const Model& model, const Model* other) {
  const auto has = [](const Model& of, std::string_view mode) {
    if (of.counted()) return mode == kMpsMode;
    for (size_t p = 0; p < of.profiles().size(); ++p) {
      const auto id = static_cast<ProfileId>(p);
      if (of.Allows(id) && SharingModeOfProfile(of.profile(id).name) == mode) return true;
    }
    return false;
  };
  std::vector<std::string_view> modes;
  for (const std::string_view mode : kAllSharingModes) {
    if (has(model, mode) || (other != nullptr && has(*other, mode))) modes.push_back(mode);
  }
  return modes;
}

}  // namespace nos::gpu
