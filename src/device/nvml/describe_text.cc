// The description as text tables.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/table.h"
#include "device/describe.h"

namespace nos::device {
namespace {

std::string MigText(const GpuInfo& info) {
  if (!info.problem.empty()) return "?";
  if (!info.mig_capable) return "none";
  std::string now = info.mig_enabled ? "on" : "off";
  if (info.mig_enabled == info.mig_pending) return now;
  return now + (info.mig_pending ? ", on after a reset" : ", off after a reset");
}

std::string ModelText(const GpuDescription& gpu) {
  if (gpu.model != nullptr) return gpu.model->name();
  return gpu.info.mig_capable ? "not in catalogue" : "-";
}

std::string GpuTable(const NodeDescription& node) {
  TextTable table({"GPU", "PRODUCT", "CATALOGUE", "MEMORY", "PCI ID", "MIG"});
  for (const GpuDescription& gpu : node.gpus) {
    const GpuInfo& info = gpu.info;
    const bool known = !info.uuid.empty();
    table.AddRow({fmt::to_string(info.index), known ? info.product : "?", ModelText(gpu),
                  info.memory_mib > 0 ? fmt::format("{} MiB", info.memory_mib) : "?",
                  known ? fmt::format("0x{:08X}", info.pci_device_id) : "?", MigText(info)});
  }
  return table.ToString();
}

std::string SlotsText(const DriverProfile& profile) {
  return profile.placements.empty() ? "?" : fmt::to_string(profile.placements.front().size);
}

// "confirmed": it matches a row of the catalogue that was not confirmed on a device before.
std::string VerdictText(const ProfileDescription& described) {
  if (described.row == nullptr) return "absent";
  if (!described.differences.empty()) return "differs";
  const gpu::Confidence known = std::max(described.row->facts, described.row->placements);
  return known < gpu::Confidence::kInferred ? "agrees" : "confirmed";
}

std::string ProfileTable(const GpuDescription& gpu) {
  TextTable table({"PROFILE", "ID", "ENUM", "SLICES", "SLOTS", "MIB", "SMS", "MOST", "STARTS",
                   "CE/DEC/ENC/JPG/OFA", "CATALOGUE"});
  for (const ProfileDescription& described : gpu.profiles) {
    const DriverProfile& profile = described.profile;
    table.AddRow({profile.name, fmt::to_string(profile.id), fmt::to_string(profile.nvml_enum),
                  fmt::to_string(profile.slices), SlotsText(profile),
                  fmt::to_string(profile.memory_mib), fmt::to_string(profile.multiprocessors),
                  fmt::to_string(profile.max_count),
                  profile.placements.empty() ? "?" : StartsText(profile),
                  EnginesText(profile.engines), VerdictText(described)});
  }
  return table.ToString();
}

std::string Disagreements(const GpuDescription& gpu) {
  std::string text;
  for (const ProfileDescription& described : gpu.profiles) {
    for (const std::string& difference : described.differences) {
      text += fmt::format("  {}: {}\n", described.profile.canonical, difference);
    }
  }
  for (const gpu::Profile* row : gpu.catalogue_only) {
    text += fmt::format("  {}: the catalogue has it, the driver does not\n", row->name);
  }
  return text;
}

std::string InstanceTable(const GpuDescription& gpu) {
  TextTable table({"INSTANCE", "ID", "SLOTS", "DEVICE"});
  for (const GpuInstance& instance : gpu.instances) {
    table.AddRow({fmt::format("{}@{}", instance.profile, instance.start),
                  fmt::to_string(instance.id), fmt::to_string(instance.size),
                  instance.complete ? instance.uuid : "none: its creation was interrupted"});
  }
  return table.ToString();
}

std::string ProfilesText(const GpuDescription& gpu) {
  if (!gpu.profiles_status.ok()) return "  no profiles: " + gpu.profiles_status.message() + "\n";
  std::string text = ProfileTable(gpu);
  const std::string differences = Disagreements(gpu);
  if (!differences.empty()) text += "differences from the catalogue:\n" + differences;
  return text;
}

std::string InstancesText(const GpuDescription& gpu) {
  if (!gpu.instances_status.ok()) return "  no instances: " + gpu.instances_status.message() + "\n";
  if (gpu.instances.empty()) return "  no instances\n";
  return InstanceTable(gpu);
}

}  // namespace

std::string DescriptionText(const NodeDescription& node) {
  std::string text = fmt::format(
      "driver {}, {} ({})\n", node.driver.empty() ? "?" : node.driver,
      node.gpus.size() == 1 ? "1 GPU" : fmt::format("{} GPUs", node.gpus.size()), node.library);
  for (const std::string& limit : node.limits) text += "warning: " + limit + "\n";
  if (!node.gpus.empty()) text += "\n" + GpuTable(node);
  for (const GpuDescription& gpu : node.gpus) {
    text += fmt::format("\nGPU {}{}{}\n", gpu.info.index, gpu.info.uuid.empty() ? "" : " ",
                        gpu.info.uuid);
    if (!gpu.info.problem.empty()) {
      text += "  " + gpu.info.problem + "\n";
      continue;
    }
    if (!gpu.info.mig_capable) {
      text += "  no MIG\n";
      continue;
    }
    text += ProfilesText(gpu);
    if (gpu.info.mig_enabled) text += InstancesText(gpu);
  }
  return text;
}

}  // namespace nos::device
