#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/quantity.h"
#include "base/text.h"
#include "base/uuid.h"
#include "dra/gpu_slices.h"
#include "dra/publication/counters.h"

namespace nos::dra {
namespace {

constexpr size_t kMaxDevices = 64;  // of a slice whose devices use counters or have taints
constexpr size_t kMaxCounterSets = 8;
constexpr size_t kMaxText = 64;  // characters of an attribute
constexpr size_t kMaxName = 253;

bool HasPlacements(const GpuOfDriver& gpu) {
  return gpu.placements && gpu.model != nullptr && HasCounters(*gpu.model);
}

JsonObject Text(std::string_view text) { return {{"string", Shortened(text, kMaxText)}}; }

// Semantic versions have no leading zeros: "580.95.05" is "580.95.5".
std::optional<std::string> SemanticVersion(const std::string& version) {
  std::vector<std::string> parts;
  for (const std::string_view part : Split(version, '.')) {
    const auto number = ParseInt(part);
    if (!number || *number < 0) return std::nullopt;
    parts.push_back(std::to_string(*number));
  }
  if (parts.size() > 3) return std::nullopt;
  parts.resize(3, "0");
  return Join(parts, ".");
}

std::string CounterSetName(int gpu) { return fmt::format("gpu-{}-counter-set", gpu); }

JsonObject Counters(const CounterAmounts& amounts) {
  JsonObject out;
  for (const auto& [name, amount] : amounts) {
    out[name] = JsonObject{{"value", std::to_string(amount)}};
  }
  return out;
}

JsonObject MemoryOf(int64_t mib) {
  return {{"memory", JsonObject{{"value", Quantity::FromValue(mib << 20).ToBinaryString()}}}};
}

JsonObject DeviceJson(const DriverDevice& device, const GpuOfDriver& gpu, const NodeOfDriver& node,
                      const SliceRules& rules) {
  JsonObject out = {{"name", device.name},
                    {"attributes", AttributesOf(gpu, node, device.placement)}};
  const int64_t memory =
      device.placement ? gpu.model->profile(device.placement->profile).memory_mib : gpu.memory_mib;
  if (memory > 0) out["capacity"] = MemoryOf(memory);
  if (HasPlacements(gpu)) {
    const CounterAmounts used =
        device.placement ? CountersOf(*gpu.model, *device.placement) : CountersOfGpu(*gpu.model);
    out["consumesCounters"] = JsonArray{
        JsonObject{{"counterSet", CounterSetName(gpu.index)}, {"counters", Counters(used)}}};
  }
  const auto own = gpu.device_faults.find(device.name);
  const std::string& fault =
      gpu.fault.empty() && own != gpu.device_faults.end() ? own->second : gpu.fault;
  if (!fault.empty()) {
    out["taints"] =
        JsonArray{JsonObject{{"key", kUnhealthyTaint}, {"value", fault}, {"effect", "NoSchedule"}}};
  }
  if (rules.binding_conditions) {
    out["bindsToNode"] = true;
    out["bindingConditions"] = JsonArray{Json(kCreated)};
    out["bindingFailureConditions"] = JsonArray{Json(kCreationFailed)};
  }
  return out;
}

JsonObject CounterSetOf(const GpuOfDriver& gpu) {
  return {{"name", CounterSetName(gpu.index)}, {"counters", Counters(CountersOfGpu(*gpu.model))}};
}

}  // namespace

JsonObject AttributesOf(const GpuOfDriver& gpu, const NodeOfDriver& node,
                        const std::optional<gpu::Placement>& placement) {
  JsonObject attributes;
  attributes["type"] = Text(placement ? "mig" : "gpu");
  attributes[placement ? "parentUUID" : "uuid"] = Text(gpu.uuid);
  attributes["productName"] = Text(gpu.product);
  if (placement) attributes["profile"] = Text(gpu.model->profile(placement->profile).name);
  if (gpu.model != nullptr) attributes["architecture"] = Text(gpu.model->architecture());
  if (const auto version = SemanticVersion(node.driver_version)) {
    attributes["driverVersion"] = JsonObject{{"version", *version}};
  }
  if (node.extended_resources) attributes["extendedResources"] = JsonObject{{"bool", true}};
  if (!gpu.pci_bus_id.empty()) {
    attributes["resource.kubernetes.io/pciBusID"] = Text(gpu.pci_bus_id);
  }
  if (!gpu.pcie_root.empty()) attributes["resource.kubernetes.io/pcieRoot"] = Text(gpu.pcie_root);
  return attributes;
}

std::string DeviceNameOf(int gpu) { return fmt::format("gpu-{}", gpu); }

// "1g.24gb+me.all" becomes "1g24gb-meall". The id distinguishes profiles with the same text.
std::string DeviceNameOf(int gpu, const gpu::Profile& profile, uint8_t start) {
  std::string text = profile.name;
  std::erase(text, '.');
  std::ranges::replace(text, '+', '-');
  return fmt::format("gpu-{}-mig-{}-{}-{}", gpu, text, std::max(profile.nvml_id, 0), start);
}

std::vector<DriverDevice> DevicesOf(const GpuOfDriver& gpu) {
  std::vector<DriverDevice> devices;
  if (HasPlacements(gpu)) {
    for (size_t i = 0; i < gpu.model->profiles().size(); ++i) {
      const auto id = static_cast<gpu::ProfileId>(i);
      const gpu::Profile& profile = gpu.model->profile(id);
      for (const uint8_t start : profile.starts) {
        if (!gpu.model->layouts().Find({id, start})) continue;
        devices.push_back(
            {DeviceNameOf(gpu.index, profile, start), gpu.index, gpu::Placement{id, start}});
      }
    }
  }
  if (gpu.whole || devices.empty()) {
    devices.push_back({DeviceNameOf(gpu.index), gpu.index, std::nullopt});
  }
  // Two profiles may differ in nothing that a name shows.
  std::ranges::stable_sort(devices, {}, &DriverDevice::name);
  const auto repeated = std::ranges::unique(devices, {}, &DriverDevice::name);
  devices.erase(repeated.begin(), repeated.end());
  return devices;
}

std::vector<JsonObject> SliceSpecs(const NodeOfDriver& node, const std::vector<GpuOfDriver>& gpus,
                                   const SliceRules& rules) {
  std::vector<JsonObject> contents;
  JsonArray sets;
  for (const GpuOfDriver& gpu : gpus) {
    if (rules.combined || !HasPlacements(gpu)) continue;
    sets.push_back(CounterSetOf(gpu));
    if (sets.size() == kMaxCounterSets) {
      contents.push_back({{"sharedCounters", std::exchange(sets, {})}});
    }
  }
  if (!sets.empty()) contents.push_back({{"sharedCounters", std::move(sets)}});
  for (const GpuOfDriver& gpu : gpus) {
    JsonArray devices;
    const auto flush = [&] {
      if (devices.empty()) return;
      JsonObject content{{"devices", std::exchange(devices, {})}};
      if (rules.combined && HasPlacements(gpu)) {
        content["sharedCounters"] = JsonArray{CounterSetOf(gpu)};
      }
      contents.push_back(std::move(content));
    };
    for (const DriverDevice& device : DevicesOf(gpu)) {
      devices.push_back(DeviceJson(device, gpu, node, rules));
      if (devices.size() < kMaxDevices) continue;
      flush();
      if (rules.combined) break;  // counters cannot be in two slices
    }
    flush();
  }
  for (JsonObject& content : contents) {
    content["driver"] = kNosDriver;
    content["nodeName"] = node.name;
    content["pool"] = JsonObject{{"name", node.name},
                                 {"resourceSliceCount", static_cast<int64_t>(contents.size())}};
  }
  return contents;
}

namespace {

// Schedulers read slices in the order of their names.
std::string SliceName(const std::string& node, size_t index) {
  std::string name = fmt::format("{:05x}-{}-{}", index, kNosDriver, node);
  if (name.size() <= kMaxName) return name;
  return fmt::format("{:05x}-{}-{}", index, kNosDriver, NameBasedUuid(node));
}

bool IsNothing(const Json& value) {
  return value.is_null() || (value.is_bool() && !value.get_bool()) ||
         (value.is_array() && value.get_array().empty()) ||
         (value.is_object() && value.get_object().empty());
}

std::optional<int64_t> NumberOf(const Json* value) {
  if (value == nullptr || !value->is_number()) return std::nullopt;
  boost::system::error_code error;
  const auto number = value->to_number<int64_t>(error);
  if (error) return std::nullopt;
  return number;
}

// True if the API server has stored what is wanted. It adds times and may show empty fields.
bool Holds(const Json& stored, const Json& wanted) {
  if (wanted.is_object() && stored.is_object()) {
    for (const auto& [key, value] : wanted.get_object()) {
      const Json* same = stored.get_object().if_contains(key);
      if (same == nullptr || !Holds(*same, value)) return false;
    }
    return std::ranges::all_of(stored.get_object(), [&](const auto& member) {
      return wanted.get_object().contains(member.key()) || member.key() == "timeAdded" ||
             member.key() == "generation" || IsNothing(member.value());
    });
  }
  if (wanted.is_array() && stored.is_array()) {
    return std::ranges::equal(stored.get_array(), wanted.get_array(), Holds);
  }
  if (!wanted.is_number()) return stored == wanted;
  return NumberOf(&stored) && NumberOf(&stored) == NumberOf(&wanted);
}

int64_t GenerationOf(const Json& slice) {
  return NumberOf(Find(slice, "spec", "pool", "generation")).value_or(0);
}

Json Object(const NodeOfDriver& node, const JsonObject& spec, size_t index, int64_t generation) {
  JsonObject owner{{"apiVersion", "v1"},
                   {"kind", "Node"},
                   {"name", node.name},
                   {"uid", node.uid},
                   {"controller", true}};
  Json slice =
      JsonObject{{"apiVersion", "resource.k8s.io/v1"},
                 {"kind", "ResourceSlice"},
                 {"metadata", JsonObject{{"name", SliceName(node.name, index)},
                                         {"ownerReferences", JsonArray{std::move(owner)}}}},
                 {"spec", spec}};
  MakeObject(slice, "spec", "pool")["generation"] = generation;
  return slice;
}

bool IsOwnedBy(const Json& slice, const NodeOfDriver& node) {
  const Json* owners = Find(slice, "metadata", "ownerReferences");
  if (owners == nullptr || !owners->is_array()) return false;
  return std::ranges::any_of(
      owners->get_array(), [&](const Json& owner) { return FindString(owner, "uid") == node.uid; });
}

}  // namespace

SliceWrites PlanSlices(const NodeOfDriver& node, const std::vector<JsonObject>& specs,
                       const std::vector<Json>& existing) {
  std::map<std::string, const Json*, std::less<>> own;
  int64_t newest = 0;
  for (const Json& slice : existing) {
    const bool ours = FindString(slice, "spec", "driver") == kNosDriver &&
                      FindString(slice, "spec", "nodeName") == node.name;
    if (!ours) continue;
    own[std::string(FindString(slice, "metadata", "name"))] = &slice;
    newest = std::max(newest, GenerationOf(slice));
  }
  bool same = own.size() == specs.size();
  for (size_t i = 0; same && i < specs.size(); ++i) {
    const auto known = own.find(SliceName(node.name, i));
    same = known != own.end() && GenerationOf(*known->second) == newest &&
           IsOwnedBy(*known->second, node) && Holds(*Find(*known->second, "spec"), specs[i]);
  }
  SliceWrites writes;
  if (same) return writes;
  for (size_t i = 0; i < specs.size(); ++i) {
    Json slice = Object(node, specs[i], i, newest + 1);
    const auto known = own.find(SliceName(node.name, i));
    if (known == own.end()) {
      writes.create.push_back(std::move(slice));
      continue;
    }
    MakeObject(slice, "metadata")["resourceVersion"] =
        FindString(*known->second, "metadata", "resourceVersion");
    writes.update.push_back(std::move(slice));
    own.erase(known);
  }
  for (const auto& [name, slice] : own) writes.remove.push_back(name);
  return writes;
}

DroppedFields DroppedBetween(const Json& sent, const Json& stored) {
  const auto has = [](const Json& slice, std::string_view field) {
    const Json* devices = Find(slice, "spec", "devices");
    if (devices == nullptr || !devices->is_array()) return false;
    return std::ranges::any_of(devices->get_array(),
                               [&](const Json& device) { return Find(device, field) != nullptr; });
  };
  const auto sets = [](const Json& slice) {
    return Find(slice, "spec", "sharedCounters") != nullptr;
  };
  DroppedFields dropped;
  dropped.counters = (sets(sent) && !sets(stored)) ||
                     (has(sent, "consumesCounters") && !has(stored, "consumesCounters"));
  dropped.binding_conditions = has(sent, "bindingConditions") && !has(stored, "bindingConditions");
  return dropped;
}

}  // namespace nos::dra
