#include "bench/nvidia_slices.h"

#include <algorithm>

namespace nos::bench {
namespace {

constexpr int kSlots = 8;

struct Profile {
  const char* name;
  int id, slots, step, count;  // placements at 0, step, 2 * step, ...
};
// 7 + 7 + 4 + 3 + 2 + 1 + 1 = 25 placements, as on an H100.
constexpr Profile kProfiles[] = {{"1g.10gb", 19, 1, 1, 7}, {"1g.10gb+me", 20, 1, 1, 7},
                                 {"1g.20gb", 15, 2, 2, 4}, {"2g.20gb", 14, 2, 2, 3},
                                 {"3g.40gb", 9, 4, 4, 2},  {"4g.40gb", 5, 4, 4, 1},
                                 {"7g.80gb", 0, 8, 8, 1}};

constexpr const char* kCounters[] = {"copy-engines", "decoders", "encoders",
                                     "jpeg-engines", "memory",   "multiprocessors",
                                     "ofa-engines"};
constexpr const char* kCapacities[] = {"copyEngines", "decoders",        "encoders",  "jpegEngines",
                                       "memory",      "multiprocessors", "ofaEngines"};

// In the form that a device's name may have.
std::string Label(std::string text) {
  std::erase(text, '.');
  std::replace(text.begin(), text.end(), '+', '-');
  return text;
}

std::string UuidOf(const std::string& node, int gpu) {
  const size_t hash = std::hash<std::string>()(node);
  return "GPU-" + std::to_string(hash) + "-" + std::to_string(gpu);
}

JsonObject DeviceOf(const std::string& node, int gpu, const std::string& name, const char* profile,
                    int start, int slots) {
  JsonObject counters, capacity;
  for (int slot = start; slot < start + slots; ++slot) {
    counters["memory-slice-" + std::to_string(slot)] = {{"value", "1"}};
  }
  for (const char* counter : kCounters) counters[counter] = {{"value", std::to_string(slots)}};
  for (const char* each : kCapacities) capacity[each] = {{"value", std::to_string(slots)}};
  capacity["memory"] = {{"value", std::to_string(slots * 9856) + "Mi"}};
  JsonObject attributes;
  const auto text = [&](const char* key, const std::string& value) {
    attributes[key] = {{"string", value}};
  };
  const std::string index = std::to_string(gpu);
  if (profile == nullptr) {
    text("type", "gpu");
    text("uuid", UuidOf(node, gpu));
    attributes["minor"] = {{"int", gpu}};
  } else {
    text("type", "mig");
    text("parentUUID", UuidOf(node, gpu));
    attributes["parentMinor"] = {{"int", gpu}};
    text("profile", profile);
  }
  text("productName", "NVIDIA H100 80GB HBM3");
  text("brand", "Nvidia");
  text("architecture", "Hopper");
  text("pcieBusID", "0000:0" + index + ":00.0");
  text("resource.kubernetes.io/pcieRoot", "pci0000:0" + index);
  attributes["cudaComputeCapability"] = {{"version", "9.0.0"}};
  attributes["driverVersion"] = {{"version", "570.86.15"}};
  attributes["cudaDriverVersion"] = {{"version", "12.8.0"}};
  return {
      {"name", name},
      {"attributes", std::move(attributes)},
      {"capacity", std::move(capacity)},
      {"consumesCounters", JsonArray{{{"counterSet", "gpu-" + index}, {"counters", counters}}}}};
}

Json SliceOf(const std::string& name, const std::string& key, JsonArray content,
             const std::string& node) {
  JsonObject spec = {{"driver", "gpu.nvidia.com"}, {"nodeName", node}};
  spec["pool"] = {{"name", node}, {"generation", 1}, {"resourceSliceCount", kGpus + 1}};
  spec[key] = std::move(content);
  return {{"apiVersion", "resource.k8s.io/v1"},
          {"kind", "ResourceSlice"},
          {"metadata", {{"name", name}}},
          {"spec", std::move(spec)}};
}

}  // namespace

std::vector<Json> NvidiaSlices(const std::string& node) {
  std::vector<Json> slices;
  JsonArray sets;
  for (int gpu = 0; gpu < kGpus; ++gpu) {
    JsonArray devices;
    const std::string prefix = "gpu-" + std::to_string(gpu);
    devices.push_back(DeviceOf(node, gpu, prefix, nullptr, 0, kSlots));
    for (const Profile& profile : kProfiles) {
      for (int i = 0; i < profile.count; ++i) {
        const int start = i * profile.step;
        const std::string name = prefix + "-mig-" + Label(profile.name) + "-" +
                                 std::to_string(profile.id) + "-" + std::to_string(start);
        devices.push_back(DeviceOf(node, gpu, name, profile.name, start, profile.slots));
      }
    }
    slices.push_back(
        SliceOf(node + "-" + std::to_string(gpu), "devices", std::move(devices), node));
    JsonObject counters;
    for (int slot = 0; slot < kSlots; ++slot) {
      counters["memory-slice-" + std::to_string(slot)] = {{"value", "1"}};
    }
    for (const char* counter : kCounters) counters[counter] = {{"value", std::to_string(kSlots)}};
    sets.push_back({{"name", prefix}, {"counters", std::move(counters)}});
  }
  slices.push_back(SliceOf(node + "-8", "sharedCounters", std::move(sets), node));
  return slices;
}

}  // namespace nos::bench
