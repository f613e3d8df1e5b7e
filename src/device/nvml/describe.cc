#include "device/describe.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace nos::device {
namespace {

template <typename Value>
void Compare(std::string_view what, const Value& driver, const Value& catalogue,
             std::vector<std::string>& differences) {
  if (driver == catalogue) return;
  differences.push_back(fmt::format("{} {} (catalogue: {})", what, driver, catalogue));
}

void ComparePlacements(const DriverProfile& profile, const gpu::Profile& row,
                       std::vector<std::string>& differences) {
  if (!profile.placements_status.ok()) {
    differences.push_back("placements unknown: " + profile.placements_status.message());
    return;
  }
  Compare("starts", StartsText(profile), fmt::format("{}", fmt::join(row.starts, ",")),
          differences);
  const bool uneven =
      std::any_of(profile.placements.begin(), profile.placements.end(),
                  [&](const DriverPlacement& placement) { return placement.size != row.slots; });
  if (uneven) {
    Compare("slots", static_cast<int>(profile.placements.front().size), row.slots, differences);
  }
}

void DescribeProfiles(NvmlBackend& backend, GpuDescription& gpu) {
  Result<std::vector<DriverProfile>> profiles = backend.ListProfiles(gpu.info.index);
  if (!profiles.ok()) {
    gpu.profiles_status = profiles.status();
    return;
  }
  if (profiles->empty()) {
    gpu.profiles_status = {Code::kUnimplemented,
                           "the driver lists the profiles of this GPU only in MIG mode"};
    return;
  }
  for (DriverProfile& profile : *profiles) {
    ProfileDescription described{std::move(profile), nullptr, {}};
    const auto row =
        gpu.model == nullptr ? std::nullopt : gpu.model->FindProfile(described.profile.canonical);
    if (row) {
      described.row = &gpu.model->profile(*row);
      described.differences = Differences(described.profile, *described.row);
    }
    gpu.profiles.push_back(std::move(described));
  }
}

void FindCatalogueOnly(GpuDescription& gpu) {
  if (gpu.model == nullptr || gpu.profiles.empty()) return;
  for (const gpu::Profile& row : gpu.model->profiles()) {
    const bool listed = std::any_of(gpu.profiles.begin(), gpu.profiles.end(),
                                    [&](const auto& profile) { return profile.row == &row; });
    if (!listed) gpu.catalogue_only.push_back(&row);
  }
}

GpuDescription DescribeGpu(NvmlBackend& backend, const gpu::Catalogue& catalogue,
                           const GpuInfo& info) {
  GpuDescription gpu;
  gpu.info = info;
  if (!info.problem.empty() || !info.mig_capable) return gpu;
  gpu.model = ModelOf(info, catalogue);
  DescribeProfiles(backend, gpu);
  FindCatalogueOnly(gpu);
  if (!info.mig_enabled) return gpu;
  Result<std::vector<GpuInstance>> instances = backend.ListInstances(info.index);
  gpu.instances_status = instances.status();
  if (instances.ok()) gpu.instances = std::move(instances).value();
  return gpu;
}

}  // namespace

std::string EnginesText(const gpu::Engines& engines) {
  return fmt::format("{}/{}/{}/{}/{}", engines.copy, engines.decode, engines.encode, engines.jpeg,
                     engines.ofa);
}

std::vector<std::string> Differences(const DriverProfile& profile, const gpu::Profile& row) {
  std::vector<std::string> differences;
  Compare("name", profile.name, row.name, differences);
  if (row.nvml_id >= 0) {
    Compare("id", profile.id, static_cast<unsigned>(row.nvml_id), differences);
  }
  if (row.nvml_enum >= 0) {
    Compare("enum", profile.nvml_enum, static_cast<unsigned>(row.nvml_enum), differences);
  }
  Compare("compute slices", profile.slices, row.compute, differences);
  Compare("memory MiB", profile.memory_mib, row.memory_mib, differences);
  if (row.multiprocessors > 0) {
    Compare("multiprocessors", profile.multiprocessors, row.multiprocessors, differences);
  }
  Compare("most instances", profile.max_count, row.max_count, differences);
  Compare("engines", EnginesText(profile.engines), EnginesText(row.engines), differences);
  ComparePlacements(profile, row, differences);
  return differences;
}

Result<NodeDescription> Describe(NvmlBackend& backend, const gpu::Catalogue& catalogue) {
  NodeDescription node;
  NOS_ASSIGN(const std::vector<GpuInfo> infos, backend.ListGpus());
  node.driver = backend.DriverVersion();
  node.library = backend.library().path();
  node.limits = backend.library().Limits();
  for (const GpuInfo& info : infos) node.gpus.push_back(DescribeGpu(backend, catalogue, info));
  return node;
}

}  // namespace nos::device
