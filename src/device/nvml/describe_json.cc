// The description as JSON.
#include <utility>

#include "device/describe.h"

namespace nos::device {
namespace {

JsonArray Strings(const std::vector<std::string>& texts) {
  JsonArray array;
  for (const std::string& text : texts) array.emplace_back(text);
  return array;
}

Json PlacementsJson(const DriverProfile& profile) {
  JsonArray placements;
  for (const DriverPlacement& placement : profile.placements) {
    placements.push_back(JsonObject{{"start", placement.start}, {"size", placement.size}});
  }
  return placements;
}

Json EnginesJson(const gpu::Engines& engines) {
  return JsonObject{{"copy", engines.copy},
                    {"decode", engines.decode},
                    {"encode", engines.encode},
                    {"jpeg", engines.jpeg},
                    {"ofa", engines.ofa}};
}

Json ProfileJson(const ProfileDescription& described) {
  const DriverProfile& profile = described.profile;
  JsonObject json{{"name", profile.name},
                  {"id", profile.id},
                  {"enum", profile.nvml_enum},
                  {"computeSlices", profile.slices},
                  {"memoryMiB", profile.memory_mib},
                  {"multiprocessors", profile.multiprocessors},
                  {"mostInstances", profile.max_count},
                  {"engines", EnginesJson(profile.engines)},
                  {"placements", PlacementsJson(profile)}};
  if (!profile.placements_status.ok()) {
    json["placementsProblem"] = profile.placements_status.message();
  }
  if (described.row == nullptr) return json;
  json["catalogue"] = JsonObject{{"name", described.row->name},
                                 {"facts", gpu::ConfidenceName(described.row->facts)},
                                 {"placements", gpu::ConfidenceName(described.row->placements)},
                                 {"differences", Strings(described.differences)}};
  return json;
}

Json InstanceJson(const GpuInstance& instance) {
  return JsonObject{
      {"id", instance.id},     {"profile", instance.profile},   {"start", instance.start},
      {"size", instance.size}, {"complete", instance.complete}, {"uuid", instance.uuid}};
}

Json GpuJson(const GpuDescription& gpu) {
  JsonArray profiles, instances, catalogue_only;
  for (const ProfileDescription& profile : gpu.profiles) profiles.push_back(ProfileJson(profile));
  for (const GpuInstance& instance : gpu.instances) instances.push_back(InstanceJson(instance));
  for (const gpu::Profile* row : gpu.catalogue_only) catalogue_only.emplace_back(row->name);
  JsonObject json{{"index", gpu.info.index},
                  {"uuid", gpu.info.uuid},
                  {"product", gpu.info.product},
                  {"pciDeviceId", gpu.info.pci_device_id},
                  {"memoryMiB", gpu.info.memory_mib},
                  {"migCapable", gpu.info.mig_capable},
                  {"migEnabled", gpu.info.mig_enabled},
                  {"migPending", gpu.info.mig_pending},
                  {"model", gpu.model == nullptr ? Json(nullptr) : Json(gpu.model->name())},
                  {"profiles", std::move(profiles)},
                  {"catalogueOnly", std::move(catalogue_only)},
                  {"instances", std::move(instances)}};
  if (!gpu.info.problem.empty()) json["problem"] = gpu.info.problem;
  if (!gpu.profiles_status.ok()) json["profilesProblem"] = gpu.profiles_status.message();
  if (!gpu.instances_status.ok()) json["instancesProblem"] = gpu.instances_status.message();
  return json;
}

}  // namespace

Json DescriptionJson(const NodeDescription& node) {
  JsonArray gpus;
  for (const GpuDescription& gpu : node.gpus) gpus.push_back(GpuJson(gpu));
  return JsonObject{{"driver", node.driver},
                    {"library", node.library},
                    {"limits", Strings(node.limits)},
                    {"gpus", std::move(gpus)}};
}

}  // namespace nos::device
