#include "rules.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "base/uuid.h"

namespace nos::nvml_double {
namespace {

// Slices of compute profiles, by index. Source: nvml.h NVML_COMPUTE_INSTANCE_PROFILE_*.
constexpr unsigned kComputeSlices[kComputeProfilePlaces] = {1, 2, 3, 4, 7, 8, 6, 1, 7};
constexpr unsigned kSingleRev1 = 7, kSevenNvl = 8;

template <typename Range, typename IdOf>
unsigned FreeId(const Range& range, unsigned from, const IdOf& id_of) {
  while (std::any_of(range.begin(), range.end(),
                     [&](const auto& one) { return id_of(one) == from; })) {
    ++from;
  }
  return from;
}

unsigned Multiprocessors(const gpu::Profile& profile) {
  return static_cast<unsigned>(std::max(profile.multiprocessors, profile.compute));
}

// The multiprocessors of the model's plain 1g: compute profile 0 of a double-memory 1g has only
// these.
unsigned PlainSingle(const gpu::Model& model) {
  unsigned least = ~0u;
  for (const gpu::Profile& profile : model.profiles()) {
    if (profile.compute == 1) least = std::min(least, Multiprocessors(profile));
  }
  return least;
}

bool Exists(const gpu::Model& model, const gpu::Profile& parent, unsigned place) {
  const unsigned slices = kComputeSlices[place];
  const auto whole = static_cast<unsigned>(parent.compute);
  if (place == kSingleRev1) return whole == 1 && Multiprocessors(parent) > PlainSingle(model);
  if (place == kSevenNvl) return whole == 7 && model.architecture() != "Ampere";
  if (slices > whole) return false;
  return slices == whole || slices <= 2 || (slices == 3 && whole == 7) ||
         (slices == 4 && whole == 7);
}

}  // namespace

std::vector<ProfileRow> Rows(const gpu::Model& model) {
  std::vector<ProfileRow> rows;
  std::set<unsigned> places;
  for (const gpu::Profile& profile : model.profiles()) {
    if (profile.nvml_enum >= 0) places.insert(static_cast<unsigned>(profile.nvml_enum));
  }
  for (size_t i = 0; i < model.profiles().size(); ++i) {
    const gpu::Profile& profile = model.profiles()[i];
    ProfileRow row{static_cast<unsigned>(profile.nvml_enum),
                   profile.nvml_id >= 0 ? static_cast<unsigned>(profile.nvml_id)
                                        : static_cast<unsigned>(100 + i),
                   static_cast<gpu::ProfileId>(i)};
    if (profile.nvml_enum < 0) {
      row.place = 0;
      while (!places.insert(row.place).second) ++row.place;
    }
    rows.push_back(row);
  }
  return rows;
}

std::optional<ProfileRow> RowOf(const gpu::Model& model, unsigned profile_id) {
  for (const ProfileRow& row : Rows(model)) {
    if (row.id == profile_id) return row;
  }
  return std::nullopt;
}

bool ReportsProfiles(const Gpu& gpu) {
  return gpu.model != nullptr && (gpu.mig || gpu.model->architecture() != "Ampere");
}

nvml::Return FindRow(const Gpu& gpu, unsigned place, ProfileRow& row) {
  if (place >= kGpuProfilePlaces) return nvml::kInvalidArgument;
  if (!ReportsProfiles(gpu)) return nvml::kNotSupported;
  for (const ProfileRow& candidate : Rows(*gpu.model)) {
    if (candidate.place != place) continue;
    row = candidate;
    return nvml::kSuccess;
  }
  return nvml::kNotSupported;
}

nvml::GpuInstanceProfileInfo GpuProfileInfo(const gpu::Model& model, const ProfileRow& row) {
  const gpu::Profile& profile = model.profile(row.profile);
  return {row.id,
          0,
          static_cast<unsigned>(profile.compute),
          static_cast<unsigned>(profile.max_count),
          Multiprocessors(profile),
          profile.engines.copy,
          profile.engines.decode,
          profile.engines.encode,
          profile.engines.jpeg,
          profile.engines.ofa,
          static_cast<unsigned long long>(profile.memory_mib)};
}

std::optional<nvml::ComputeInstanceProfileInfo> ComputeProfileInfo(const gpu::Model& model,
                                                                   const gpu::Profile& parent,
                                                                   unsigned place) {
  if (!Exists(model, parent, place)) return std::nullopt;
  const unsigned slices = kComputeSlices[place];
  const auto whole = static_cast<unsigned>(parent.compute);
  unsigned multiprocessors = Multiprocessors(parent) * slices / whole;
  const bool shadowed = Exists(model, parent, kSingleRev1);  // the double-memory case
  if (place == 0 && shadowed) multiprocessors = PlainSingle(model);
  return nvml::ComputeInstanceProfileInfo{place,
                                          slices,
                                          whole / slices,
                                          multiprocessors,
                                          parent.engines.copy,
                                          parent.engines.decode,
                                          parent.engines.encode,
                                          parent.engines.jpeg,
                                          parent.engines.ofa};
}

bool Fits(const Gpu& gpu, gpu::Placement placement) {
  std::vector<gpu::Placement> all{placement};
  for (const Instance& instance : gpu.instances) all.push_back(instance.placement);
  return gpu.model->layouts().FromPlacements(all).ok();
}

unsigned FreeInstanceId(const Gpu& gpu) {
  return FreeId(gpu.instances, 1, [](const Instance& instance) { return instance.id; });
}

unsigned FreeComputeId(const Instance& instance) {
  return FreeId(instance.compute, 0, [](const ComputeInstance& one) { return one.id; });
}

std::string MigUuid(const Gpu& gpu, unsigned instance, unsigned compute) {
  return "MIG-" + NameBasedUuid(fmt::format("{}/{}/{}", gpu.uuid, instance, compute));
}

}  // namespace nos::nvml_double
