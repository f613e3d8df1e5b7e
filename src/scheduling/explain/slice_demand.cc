#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <tuple>

#include "base/text.h"
#include "cluster/annotations.h"
#include "gpu/modes.h"
#include "gpu/occupancy.h"
#include "gpu/product.h"
#include "gpu/shares.h"
#include "scheduling/remedies.h"

namespace nos::scheduling {
namespace {

constexpr int64_t kMaxNumber = int64_t{1} << 60;  // larger amounts are not written out
constexpr int64_t kMaxCount = int64_t{1} << 40;   // of one slice, in sums
constexpr size_t kMaxProfiles = 3;                // suggested in place of an unknown one

// Slices left to place: profile and count, in the order of the slices.
using Left = std::vector<std::pair<gpu::ProfileId, int64_t>>;

void FillShared(const gpu::Model& model, Left& left) {
  gpu::Occupancy on(model);
  for (auto& [profile, count] : left) {
    for (auto place = on.FirstPlace(profile); place && count > 0; --count) {
      on.Add(*place);
      place = on.FirstPlace(profile);
    }
  }
}

// Prefers the layout with most of the first slice, then of the second and so on.
void FillGpu(const gpu::LayoutTable& table, Left& left) {
  std::vector<int64_t> best(left.size());
  for (size_t l = 0; l < table.size(); ++l) {
    if (!table.IsMaximal(static_cast<gpu::LayoutId>(l))) continue;
    const uint64_t members = table.Members(static_cast<gpu::LayoutId>(l));
    std::vector<int64_t> takes;
    takes.reserve(left.size());
    for (const auto& [profile, count] : left) {
      takes.push_back(
          std::min<int64_t>(count, std::popcount(members & table.PlacementsOf(profile))));
    }
    best = std::max(best, takes);
  }
  for (size_t s = 0; s < left.size(); ++s) left[s].second -= best[s];
}

bool IsPossibleShare(const std::string& resource) {
  return gpu::IsShareResource(resource) &&
         gpu::SharesOf(gpu::kMaxShareGib).FindProfile(resource).has_value();
}

// Compute slices and GiB of "3g.20gb".
std::optional<std::pair<int64_t, int64_t>> SizeOf(std::string_view profile) {
  const size_t g = profile.find("g."), gb = profile.find("gb");
  if (g == std::string_view::npos || gb == std::string_view::npos || gb < g) return std::nullopt;
  const auto compute = ParseInt(profile.substr(0, g));
  const auto memory = ParseInt(profile.substr(g + 2, gb - g - 2));
  if (!compute || !memory) return std::nullopt;
  return std::pair<int64_t, int64_t>(*compute, *memory);
}

}  // namespace

std::string OfferedAs(const gpu::Model& model, const std::string& resource) {
  const auto profile = model.FindProfile(ProfileText(resource));
  return profile && model.Allows(*profile) ? model.profile(*profile).resource_name : "";
}

bool IsOfHybridNodes(const std::string& resource) {
  return resource == gpu::kWholeGpu || resource == gpu::kTimeSlice || gpu::IsPartResource(resource);
}

SliceDemand::SliceDemand(Slices slices, const gpu::Catalogue& catalogue,
                         std::vector<const gpu::Model*> models, int64_t max_gpus,
                         std::function<void(int64_t)> spend)
    : slices_(std::move(slices)),
      catalogue_(catalogue),
      models_(std::move(models)),
      max_gpus_(max_gpus),
      spend_(std::move(spend)) {}

std::string SliceDemand::Text() const {
  std::vector<std::string> parts;
  for (const auto& [resource, count] : slices_) {
    const std::string many = count < kMaxNumber ? std::to_string(count) : "more than 10^18";
    const std::string profile = ProfileText(resource);
    parts.push_back(count == 1 ? profile : fmt::format("{} x {}", many, profile));
  }
  return Join(parts, " and ");
}

bool SliceDemand::HasShares() const {
  return std::ranges::any_of(slices_, [](const auto& s) { return gpu::IsShareResource(s.first); });
}

bool SliceDemand::Suits(const gpu::Model& model) const {
  return std::ranges::all_of(slices_,
                             [&](const auto& s) { return CanBePartitionedInto(model, s.first); });
}

int64_t SliceDemand::GpusFor(const gpu::Model& model) const {
  int64_t asked = 0;
  Left left;
  for (const auto& [resource, count] : slices_) {
    asked += std::min(count, kMaxCount);
    const auto profile = model.FindProfile(resource);
    if (profile) left.emplace_back(*profile, count);
  }
  if (asked == 1) return 1;
  // Every slice takes at least one slot.
  if (asked > kMaxGpusOfNode * model.slots()) return kMaxGpusOfNode + 1;
  const auto is_left = [](const auto& slice) { return slice.second > 0; };
  int64_t gpus = 0;
  for (; gpus <= kMaxGpusOfNode && std::ranges::any_of(left, is_left); ++gpus) {
    if (model.counted()) {
      FillShared(model, left);
      continue;
    }
    FillGpu(model.layouts(), left);
    spend_(static_cast<int64_t>(model.layouts().size()));
  }
  return gpus;
}

// True if some model can be partitioned into it, or agents of hybrid nodes may provide it.
bool SliceDemand::IsProvided(const std::string& resource) const {
  const auto has = [&](const auto& model) { return CanBePartitionedInto(*model, resource); };
  if (std::ranges::any_of(models_, has) || std::ranges::any_of(catalogue_.models(), has)) {
    return true;
  }
  if (IsPossibleShare(resource)) return true;
  return gpu::IsPartResource(resource) ? Parts(resource).has_value() : IsOfHybridNodes(resource);
}

// The first slice that no model has under any name; "": there is none.
std::string SliceDemand::Unprovided() const {
  for (const auto& [resource, count] : slices_) {
    const auto knows = [&](const auto& model) {
      return model->FindProfile(resource) || model->FindProfile(ProfileText(resource));
    };
    const bool known = IsProvided(resource) || std::ranges::any_of(models_, knows) ||
                       std::ranges::any_of(catalogue_.models(), knows);
    if (!known) return resource;
  }
  return "";
}

std::optional<Reason> SliceDemand::NoModelHasProfile() const {
  const std::string resource = Unprovided();
  if (resource.empty()) return std::nullopt;
  return Reason{codes::kNoModelHasProfile, NotPartitionable("no known GPU model can", resource)};
}

std::optional<Remedy> SliceDemand::Impossible() const {
  if (!Unprovided().empty()) return ExistingProfile();
  return Split();
}

// No node holds so many slices; nullopt if one may.
std::optional<Remedy> SliceDemand::Split() const {
  int64_t asked = 0;
  for (const auto& [resource, count] : slices_) asked += std::min(count, kMaxCount);
  if (asked <= kMaxGpusOfNode || max_gpus_ > kMaxGpusOfNode) return std::nullopt;
  bool suited = false;
  for (const auto& model : catalogue_.models()) {
    if (!Suits(*model)) continue;
    if (GpusFor(*model) <= kMaxGpusOfNode) return std::nullopt;
    suited = true;
  }
  if (!suited) return std::nullopt;
  return Remedy{remedies::kSplitPod,
                fmt::format("split the pod: {} are more than a node with {} GPUs can hold", Text(),
                            kMaxGpusOfNode)};
}

// A slice is requested under a name that models know but no agent advertises.
std::optional<Remedy> SliceDemand::AdvertisedName() const {
  std::vector<const gpu::Model*> models = models_;  // models of existing nodes first
  for (const auto& model : catalogue_.models()) models.push_back(model.get());
  for (const auto& [asked, count] : slices_) {
    for (const gpu::Model* model : models) {
      const std::string offered = OfferedAs(*model, asked);
      if (offered.empty() || offered == asked) continue;
      return Remedy{remedies::kRequestAdvertisedName,
                    fmt::format("request {} instead of {}: {} offers it by that name", offered,
                                asked, gpu::ProductOf(model->name()))};
    }
  }
  return std::nullopt;
}

// No GPU of the cluster has the profile, but some have one with as many compute slices and more
// memory, such as 1g.10gb of an A100-80GB for 1g.5gb. Nullopt: none has, or several slices are
// asked for.
std::optional<Remedy> SliceDemand::LargerProfile() const {
  if (slices_.size() != 1) return std::nullopt;
  const std::string& resource = slices_.front().first;
  const auto asked = SizeOf(ProfileText(resource));
  const auto has = [&](const gpu::Model* model) { return CanBePartitionedInto(*model, resource); };
  if (!asked || std::ranges::any_of(models_, has)) return std::nullopt;
  const gpu::Profile* best = nullptr;
  const gpu::Model* of = nullptr;
  int64_t least = 0;
  for (const gpu::Model* model : models_) {
    for (const gpu::Profile& profile : model->profiles()) {
      const auto size = SizeOf(profile.name);
      const bool plain = profile.name.find_first_of("+-") == std::string::npos;
      if (!size || !plain || size->first != asked->first || size->second < asked->second) continue;
      if (best != nullptr && size->second >= least) continue;
      if (!CanBePartitionedInto(*model, profile.resource_name)) continue;
      best = &profile;
      of = model;
      least = size->second;
    }
  }
  if (best == nullptr) return std::nullopt;
  return Remedy{
      remedies::kRequestExistingProfile,
      fmt::format("request {} instead of {}: no GPU of this cluster has {}, and {} has {}",
                  best->resource_name, resource, ProfileText(resource), gpu::ProductOf(of->name()),
                  best->name)};
}

// A slice has a profile that models have, but the user's catalogue allows it on none of them.
std::optional<Remedy> SliceDemand::InCatalogue() const {
  for (const auto& [asked, count] : slices_) {
    const auto allows = [&](const auto& m) { return CanBePartitionedInto(*m, asked); };
    if (std::ranges::any_of(catalogue_.models(), allows)) continue;
    for (const auto& model : catalogue_.models()) {
      if (!model->FindProfile(asked)) continue;
      return Remedy{remedies::kAllowInCatalogue,
                    fmt::format("allow a geometry with {} on {} in your catalogue file",
                                ProfileText(asked), model->name())};
    }
  }
  return std::nullopt;
}

// Nullopt if no model's instances can be divided like this.
std::optional<Remedy> SliceDemand::Parts(const std::string& resource) const {
  const std::string name = ProfileText(resource);
  const auto part = gpu::ParsePartName(name);
  for (const auto& model : catalogue_.models()) {
    if (!part || !gpu::CanHaveParts(*model, *part)) continue;
    return Remedy{remedies::kConfigureParts,
                  fmt::format("name {} in hybrid.migParts of the agents of nodes with label "
                              "{}=hybrid that the pod may use, with GPUs such as {}",
                              name, cluster::kPartitioningLabel, model->name())};
  }
  return std::nullopt;
}

// The profiles of the catalogue that are nearest in memory, then in compute. "": its size is
// unknown.
std::string SliceDemand::ExistingProfilesNear(const std::string& resource) const {
  const auto asked = SizeOf(ProfileText(resource));
  if (!asked) return "";
  std::vector<std::tuple<int64_t, int64_t, std::string>> near;
  for (const auto& model : catalogue_.models()) {
    for (const gpu::Profile& profile : model->profiles()) {
      const auto size = SizeOf(profile.name);
      const bool plain = profile.name.find_first_of("+-") == std::string::npos;
      if (!size || !plain || !CanBePartitionedInto(*model, profile.name)) continue;
      near.emplace_back(std::abs(size->second - asked->second),
                        std::abs(size->first - asked->first), profile.name);
    }
  }
  std::ranges::sort(near);
  std::vector<std::string> names;
  for (const auto& [memory, compute, name] : near) {
    if (names.size() < kMaxProfiles && std::ranges::count(names, name) == 0) names.push_back(name);
  }
  return Join(names, ", ");
}

Remedy SliceDemand::ExistingProfile() const {
  const std::string unknown = Unprovided();
  const std::string near = unknown.empty() ? "" : ExistingProfilesNear(unknown);
  return {
      remedies::kRequestExistingProfile,
      fmt::format("request {}{}: {}", unknown.empty() ? "other slices" : "an existing profile",
                  near.empty() ? "" : fmt::format(" (the nearest are {})", near),
                  NotPartitionable("no known GPU model can", unknown.empty() ? Text() : unknown))};
}

}  // namespace nos::scheduling
