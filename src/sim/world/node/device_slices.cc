#include "sim/world/node/device_slices.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.h"

namespace nos::sim {
namespace {

using Amounts = std::map<std::string, int64_t>;  // by name of the capacity

Amounts CapacityOf(const gpu::Profile& profile) {
  return {{"multiprocessors", profile.multiprocessors}, {"copyEngines", profile.engines.copy},
          {"decoders", profile.engines.decode},         {"encoders", profile.engines.encode},
          {"jpegEngines", profile.engines.jpeg},        {"ofaEngines", profile.engines.ofa},
          {"memory", int64_t{profile.memory_mib} << 20}};
}

// The driver knows the capacity of a GPU only from its profiles.
Amounts CapacityOf(const gpu::Model& model) {
  Amounts most;
  for (const gpu::Profile& profile : model.profiles()) {
    for (const auto& [name, amount] : CapacityOf(profile)) {
      most[name] = std::max(most[name], amount);
    }
  }
  return most;
}

// "copyEngines" becomes "copy-engines".
std::string CounterName(std::string_view capacity) {
  std::string name;
  for (const char c : capacity) {
    if (c >= 'A' && c <= 'Z') name += '-';
    name += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return name;
}

JsonObject Value(int64_t amount) { return {{"value", fmt::to_string(amount)}}; }

JsonObject CapacityJson(const Amounts& amounts) {
  JsonObject out;
  for (const auto& [name, amount] : amounts) out[name] = Value(amount);
  return out;
}

// One counter for each capacity, and one for each memory slice.
JsonObject CountersJson(const Amounts& amounts, int start, int slots) {
  JsonObject out;
  for (const auto& [name, amount] : amounts) out[CounterName(name)] = Value(amount);
  for (int i = start; i < start + slots; ++i) out[fmt::format("memory-slice-{}", i)] = Value(1);
  return out;
}

std::string CounterSetName(int gpu) { return fmt::format("gpu-{}-counter-set", gpu); }

JsonObject Text(std::string_view text) { return {{"string", text}}; }
JsonObject Version(std::string_view text) { return {{"version", text}}; }

std::string_view ComputeCapability(std::string_view architecture) {
  if (architecture == "Ampere") return "8.0.0";
  return architecture == "Hopper" ? "9.0.0" : "10.0.0";
}

JsonObject CommonAttributes(int index, const AnnouncedGpu& gpu) {
  const std::string& architecture = gpu.model->architecture();
  return {{"productName", Text(gpu.product)},
          {"brand", Text("Nvidia")},
          {"architecture", Text(architecture)},
          {"cudaComputeCapability", Version(ComputeCapability(architecture))},
          {"driverVersion", Version("580.65.6")},
          {"cudaDriverVersion", Version("13.0.0")},
          {"resource.kubernetes.io/pciBusID", Text(fmt::format("0000:{:02x}:00.0", index + 1))},
          // Two GPUs behind a root complex, four in a NUMA node.
          {"resource.kubernetes.io/pcieRoot", Text(fmt::format("pci0000:{:02x}", index / 2))},
          {"resource.kubernetes.io/numaNode", JsonObject{{"int", index / 4}}}};
}

JsonArray Consumes(int index, JsonObject counters) {
  return JsonArray{
      JsonObject{{"counterSet", CounterSetName(index)}, {"counters", std::move(counters)}}};
}

Json WholeGpu(int index, const AnnouncedGpu& gpu) {
  JsonObject attributes = CommonAttributes(index, gpu);
  attributes["type"] = Text("gpu");
  attributes["uuid"] = Text(gpu.uuid);
  JsonObject device = {{"name", DeviceName({index, std::nullopt, 0}, *gpu.model)},
                       {"attributes", std::move(attributes)}};
  if (!gpu.placements) {
    device["capacity"] = JsonObject{{"memory", Value(int64_t{gpu.model->memory_gib()} << 30)}};
    return device;
  }
  const Amounts all = CapacityOf(*gpu.model);
  device["capacity"] = CapacityJson(all);
  device["consumesCounters"] = Consumes(index, CountersJson(all, 0, gpu.model->slots()));
  return device;
}

Json PlacementDevice(int index, const AnnouncedGpu& gpu, const gpu::Profile& profile, int start) {
  JsonObject attributes = CommonAttributes(index, gpu);
  attributes["type"] = Text("mig");
  attributes["profile"] = Text(profile.name);
  attributes["parentUUID"] = Text(gpu.uuid);
  const Amounts amounts = CapacityOf(profile);
  return JsonObject{
      {"name", DeviceName({index, profile.nvml_id, start}, *gpu.model)},
      {"attributes", std::move(attributes)},
      {"capacity", CapacityJson(amounts)},
      {"consumesCounters", Consumes(index, CountersJson(amounts, start, profile.slots))}};
}

JsonArray DevicesOf(int index, const AnnouncedGpu& gpu) {
  std::map<std::string, Json> devices;
  const auto add = [&](Json device) {
    std::string name(FindString(device, "name"));
    devices[std::move(name)] = std::move(device);
  };
  if (gpu.whole) add(WholeGpu(index, gpu));
  if (gpu.placements) {
    for (const gpu::Profile& profile : gpu.model->profiles()) {
      for (const uint8_t start : profile.starts) add(PlacementDevice(index, gpu, profile, start));
    }
  }
  JsonArray sorted;
  for (auto& [name, device] : devices) sorted.push_back(std::move(device));
  return sorted;
}

JsonArray CounterSets(const std::vector<AnnouncedGpu>& gpus) {
  JsonArray sets;
  for (size_t i = 0; i < gpus.size(); ++i) {
    if (!gpus[i].placements) continue;
    const gpu::Model& model = *gpus[i].model;
    sets.push_back(JsonObject{{"name", CounterSetName(static_cast<int>(i))},
                              {"counters", CountersJson(CapacityOf(model), 0, model.slots())}});
  }
  return sets;
}

const gpu::Profile* FindProfile(const gpu::Model& model, int nvml_id) {
  const auto found = std::ranges::find(model.profiles(), nvml_id, &gpu::Profile::nvml_id);
  return found == model.profiles().end() ? nullptr : &*found;
}

Json ClassObject(std::string_view name, std::string_view type, std::string_view resource) {
  const std::string selector = fmt::format(
      "device.driver == '{0}' && device.attributes['{0}'].type == '{1}'", kGpuDriver, type);
  JsonObject spec = {
      {"selectors", JsonArray{JsonObject{{"cel", JsonObject{{"expression", selector}}}}}}};
  if (!resource.empty()) spec["extendedResourceName"] = resource;
  return JsonObject{{"apiVersion", "resource.k8s.io/v1"},
                    {"kind", "DeviceClass"},
                    {"metadata", JsonObject{{"name", name}}},
                    {"spec", std::move(spec)}};
}

}  // namespace

std::string DeviceName(const DeviceId& id, const gpu::Model& model) {
  if (!id.nvml_id) return fmt::format("gpu-{}", id.gpu);
  const gpu::Profile* profile = FindProfile(model, *id.nvml_id);
  std::string name = profile == nullptr ? "unknown" : profile->name;
  std::erase(name, '.');
  std::ranges::replace(name, '+', '-');
  return fmt::format("gpu-{}-mig-{}-{}-{}", id.gpu, name, *id.nvml_id, id.start);
}

std::optional<DeviceId> ParseDeviceName(std::string_view name) {
  const std::vector<std::string_view> parts = Split(name, '-');
  if (parts.size() < 2 || parts[0] != "gpu") return std::nullopt;
  const auto number = [](std::string_view text) -> std::optional<int> {
    const bool digits = !text.empty() && text.size() < 9 &&
                        std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
    if (!digits) return std::nullopt;
    return static_cast<int>(*ParseInt(text));
  };
  const auto gpu = number(parts[1]);
  if (!gpu) return std::nullopt;
  if (parts.size() == 2) return DeviceId{*gpu, std::nullopt, 0};
  // The profile's text may contain hyphens.
  if (parts.size() < 6 || parts[2] != "mig") return std::nullopt;
  const auto profile = number(parts[parts.size() - 2]), start = number(parts.back());
  if (!profile || !start) return std::nullopt;
  return DeviceId{*gpu, profile, *start};
}

std::optional<gpu::Placement> PlacementOf(const DeviceId& id, const gpu::Model& model) {
  const gpu::Profile* profile = id.nvml_id ? FindProfile(model, *id.nvml_id) : nullptr;
  if (profile == nullptr || id.start > UINT8_MAX) return std::nullopt;
  const auto start = static_cast<uint8_t>(id.start);
  if (std::ranges::count(profile->starts, start) == 0) return std::nullopt;
  return gpu::Placement{static_cast<gpu::ProfileId>(profile - model.profiles().data()), start};
}

bool CanAnnounce(const gpu::Model& model) {
  if (model.counted()) return false;
  return std::ranges::all_of(model.profiles(), [](const gpu::Profile& profile) {
    const bool media = profile.name.find("+me") != std::string::npos;
    return profile.nvml_id >= 0 && profile.multiprocessors > 0 &&
           (!media || profile.engines.jpeg + profile.engines.ofa > 0);
  });
}

std::vector<Json> ResourceSlices(const std::string& node, std::string_view node_uid,
                                 const std::vector<AnnouncedGpu>& gpus) {
  std::vector<JsonObject> contents;
  if (JsonArray counters = CounterSets(gpus); !counters.empty()) {
    contents.push_back({{"sharedCounters", std::move(counters)}});
  }
  for (size_t i = 0; i < gpus.size(); ++i) {
    contents.push_back({{"devices", DevicesOf(static_cast<int>(i), gpus[i])}});
  }
  const JsonObject owner = {
      {"apiVersion", "v1"}, {"kind", "Node"}, {"name", node}, {"uid", node_uid}};
  const auto count = static_cast<int64_t>(contents.size());
  std::vector<Json> slices;
  for (size_t i = 0; i < contents.size(); ++i) {
    JsonObject& spec = contents[i];
    spec["driver"] = kGpuDriver;
    spec["nodeName"] = node;
    spec["pool"] = JsonObject{{"name", node}, {"generation", 1}, {"resourceSliceCount", count}};
    // Schedulers read slices in the order of their names.
    const JsonObject metadata = {{"name", fmt::format("{:05x}-{}-{}", i, kGpuDriver, node)},
                                 {"ownerReferences", JsonArray{owner}}};
    slices.push_back(JsonObject{{"apiVersion", "resource.k8s.io/v1"},
                                {"kind", "ResourceSlice"},
                                {"metadata", metadata},
                                {"spec", std::move(spec)}});
  }
  return slices;
}

std::vector<Json> DeviceClasses() {
  return {ClassObject("gpu.nvidia.com", "gpu", "nvidia.com/gpu"),
          ClassObject("mig.nvidia.com", "mig", "")};
}

}  // namespace nos::sim
