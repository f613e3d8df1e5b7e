#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/quantity.h"
#include "base/text.h"
#include "base/uuid.h"
#include "dra/gpu_slices.h"
#include "dra/publication/counters.h"
#include "gpu/shares.h"

namespace nos::dra {
namespace {

constexpr size_t kMaxDevices = 64;  // of a slice whose devices use counters or have taints
constexpr size_t kMaxCounterSets = 8;
constexpr size_t kMaxText = 64;  // characters of an attribute
constexpr size_t kMaxName = 253;

bool HasPlacements(const GpuOfDriver& gpu) {
  return gpu.placements && gpu.model != nullptr && HasCounters(*gpu.model);
}

// Without placements a GPU and its shares exclude each other by one counter.
bool HasShares(const GpuOfDriver& gpu, const SliceRules& rules) {
  return rules.shares && (gpu.shares.memory_gib > 0 || gpu.shares.time_slices > 1);
}
bool UsesCounters(const GpuOfDriver& gpu, const SliceRules& rules) {
  return HasPlacements(gpu) || HasShares(gpu, rules);
}

CounterAmounts CountersOfAll(const GpuOfDriver& gpu) {
  return HasPlacements(gpu) ? CountersOfGpu(*gpu.model) : CounterAmounts{{"gpu", 1}};
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

constexpr int64_t kMibPerGib = 1024;

std::string Bytes(int64_t mib) { return Quantity::FromValue(mib << 20).ToBinaryString(); }

// Claims request whole GiB, and no less than lets as many of them fit as MPS has clients.
JsonObject MpsCapacity(int64_t mib, int max_clients) {
  const int64_t clients = std::max(max_clients, 1);
  const int64_t least = (mib / kMibPerGib + clients - 1) / clients * kMibPerGib;
  const JsonObject range{{"min", Bytes(least)}, {"step", Bytes(kMibPerGib)}};
  return {{"memory", JsonObject{{"value", Bytes(mib)},
                                {"requestPolicy",
                                 JsonObject{{"default", Bytes(least)}, {"validRange", range}}}}}};
}

// A claim cannot have two turns.
JsonObject TimeSlicesCapacity(int time_slices) {
  return {{"timeSlices",
           JsonObject{
               {"value", std::to_string(time_slices)},
               {"requestPolicy", JsonObject{{"default", "1"}, {"validValues", JsonArray{"1"}}}}}}};
}

JsonObject CapacityOf(const DriverDevice& device, const GpuOfDriver& gpu) {
  if (device.sharing == DeviceSharing::kTimeSlices) {
    return TimeSlicesCapacity(gpu.shares.time_slices);
  }
  const int64_t mib = MemoryOf(gpu, device);
  if (mib <= 0) return {};
  if (device.sharing == DeviceSharing::kMps) return MpsCapacity(mib, gpu.shares.max_clients);
  return {{"memory", JsonObject{{"value", Bytes(mib)}}}};
}

// Shares have the fault of the instance that is shared, and their own.
std::string FaultOf(const DriverDevice& device, const GpuOfDriver& gpu) {
  if (!gpu.fault.empty()) return gpu.fault;
  std::string_view name = device.name;
  auto found = gpu.device_faults.find(device.name);
  if (found == gpu.device_faults.end() && TakeSharing(name) != DeviceSharing::kNone) {
    found = gpu.device_faults.find(std::string(name));
  }
  return found == gpu.device_faults.end() ? "" : found->second;
}

JsonObject DeviceJson(const DriverDevice& device, const GpuOfDriver& gpu, const NodeOfDriver& node,
                      const SliceRules& rules) {
  JsonObject out = {{"name", device.name}, {"attributes", AttributesOf(gpu, node, device)}};
  if (JsonObject capacity = CapacityOf(device, gpu); !capacity.empty()) {
    out["capacity"] = std::move(capacity);
  }
  if (device.sharing != DeviceSharing::kNone) out["allowMultipleAllocations"] = true;
  if (UsesCounters(gpu, rules)) {
    const CounterAmounts used =
        device.placement ? CountersOf(*gpu.model, *device.placement) : CountersOfAll(gpu);
    out["consumesCounters"] = JsonArray{
        JsonObject{{"counterSet", CounterSetName(gpu.index)}, {"counters", Counters(used)}}};
  }
  if (const std::string fault = FaultOf(device, gpu); !fault.empty()) {
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
  return {{"name", CounterSetName(gpu.index)}, {"counters", Counters(CountersOfAll(gpu))}};
}

}  // namespace

JsonObject AttributesOf(const GpuOfDriver& gpu, const NodeOfDriver& node,
                        const DriverDevice& device) {
  const std::optional<gpu::Placement>& placement = device.placement;
  const std::string_view shared = SharedTypeOf(device.sharing);
  JsonObject attributes;
  attributes["type"] = Text(!shared.empty() ? shared : placement ? "mig" : "gpu");
  attributes[placement ? "parentUUID" : "uuid"] = Text(gpu.uuid);
  attributes["productName"] = Text(gpu.product);
  if (placement) attributes["profile"] = Text(gpu.model->profile(placement->profile).name);
  if (gpu.model != nullptr) attributes["architecture"] = Text(gpu.model->architecture());
  if (const auto version = SemanticVersion(node.driver_version)) {
    attributes["driverVersion"] = JsonObject{{"version", *version}};
  }
  const bool requested_by_name = node.extended_resources && shared.empty();
  if (requested_by_name) attributes["extendedResources"] = JsonObject{{"bool", true}};
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

int64_t MemoryOf(const GpuOfDriver& gpu, const DriverDevice& device) {
  if (device.sharing == DeviceSharing::kMps && !device.placement) {
    return gpu.shares.memory_gib * kMibPerGib;
  }
  const int64_t mib =
      device.placement ? gpu.model->profile(device.placement->profile).memory_mib : gpu.memory_mib;
  if (device.sharing != DeviceSharing::kMps) return mib;
  // The MPS server of the instance needs memory too.
  return std::max<int64_t>(mib - gpu::kShareOverheadMib, 0) / kMibPerGib * kMibPerGib;
}

namespace {

// Adds the shares of these devices.
void AddShares(const GpuOfDriver& gpu, std::vector<DriverDevice>& devices) {
  const size_t exclusive = devices.size();
  for (const DeviceSharing sharing : {DeviceSharing::kMps, DeviceSharing::kTimeSlices}) {
    const bool offered =
        sharing == DeviceSharing::kMps ? gpu.shares.memory_gib > 0 : gpu.shares.time_slices > 1;
    for (size_t i = 0; offered && i < exclusive; ++i) {
      DriverDevice shared = devices[i];
      shared.sharing = sharing;
      shared.name += fmt::format("-{}", SharedTypeOf(sharing));
      if (sharing == DeviceSharing::kMps && MemoryOf(gpu, shared) <= 0) continue;
      devices.push_back(std::move(shared));
    }
  }
}

}  // namespace

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
  AddShares(gpu, devices);
  return devices;
}

std::vector<JsonObject> SliceSpecs(const NodeOfDriver& node, const std::vector<GpuOfDriver>& gpus,
                                   const SliceRules& rules) {
  std::vector<JsonObject> contents;
  JsonArray sets;
  for (const GpuOfDriver& gpu : gpus) {
    if (rules.combined || !UsesCounters(gpu, rules)) continue;
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
      if (rules.combined && UsesCounters(gpu, rules)) {
        content["sharedCounters"] = JsonArray{CounterSetOf(gpu)};
      }
      contents.push_back(std::move(content));
    };
    for (const DriverDevice& device : DevicesOf(gpu)) {
      if (device.sharing != DeviceSharing::kNone && !rules.shares) continue;
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
  dropped.shares =
      has(sent, "allowMultipleAllocations") && !has(stored, "allowMultipleAllocations");
  return dropped;
}

}  // namespace nos::dra
