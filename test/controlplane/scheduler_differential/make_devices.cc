// Devices: ResourceSlices, DeviceClasses and DeviceTaintRules.
#include <fmt/core.h>

#include "scheduler_differential/generate.h"

namespace nos::differential {
namespace {

constexpr const char* kVersion = "resource.k8s.io/v1";
constexpr const char* kPlain = "plain.example.com";  // devices that exclude no other
constexpr const char* kGpu = "gpu.nvidia.com";       // partitions that share counters
constexpr const char* kNet = "net.example.com";      // devices that several nodes reach
constexpr const char* kShare = "share.example.com";  // devices that several claims share

template <typename T>
JsonObject Attribute(const char* type, const T& value) {
  JsonObject attribute;
  attribute[type] = value;
  return attribute;
}

JsonArray MakeDeviceTaints(Draw& draw, double probability) {
  if (!draw.Chance(probability)) return {};
  JsonObject taint{{"key", draw.Of({"broken", "example.com/reserved"})},
                   {"effect", draw.Of({"NoSchedule", "NoExecute"})}};
  if (draw.Chance(0.6)) taint["value"] = draw.Of({"yes", "no"});
  return {std::move(taint)};
}

JsonObject MakeAttributes(Draw& draw) {
  JsonObject attributes{{"model", Attribute("string", draw.Of({"a", "b", "c"}))}};
  if (draw.Chance(0.8)) attributes["numa"] = Attribute("int", draw.Between(0, 2));
  if (draw.Chance(0.5)) attributes["fast"] = Attribute("bool", draw.Chance(0.5));
  if (draw.Chance(0.4)) {
    attributes["firmware"] =
        Attribute("version", draw.Of({"1.2.0", "1.2.0-rc.1", "1.10.0", "2.0.0+b.7"}));
  }
  if (draw.Chance(0.6)) {
    attributes["resource.kubernetes.io/pcieRoot"] =
        Attribute("string", draw.Of({"pci0000:00", "pci0000:80"}));
  }
  return attributes;
}

JsonObject MakePlainDevice(Draw& draw, const std::string& name) {
  JsonObject device{{"name", name}, {"attributes", MakeAttributes(draw)}};
  JsonObject capacity;
  if (draw.Chance(0.7)) {
    capacity["memory"] = JsonObject{{"value", draw.Of({"8Gi", "16Gi", "40Gi", "1536Mi"})}};
  }
  if (draw.Chance(0.3)) capacity["lanes"] = JsonObject{{"value", draw.Of({"4", "16", "250m"})}};
  if (!capacity.empty()) device["capacity"] = std::move(capacity);
  if (JsonArray taints = MakeDeviceTaints(draw, 0.15); !taints.empty()) {
    device["taints"] = std::move(taints);
  }
  return device;
}

JsonObject MakePolicy(Draw& draw) {
  switch (draw.Between(0, 3)) {
    case 0:
      return {{"default", "2Gi"},
              {"validRange", JsonObject{{"min", "2Gi"}, {"step", "2Gi"}, {"max", "6Gi"}}}};
    case 1:
      return {{"default", "1Gi"},
              {"validValues", JsonArray{Json("1Gi"), Json("3Gi"), Json("5Gi")}}};
    case 2:
      return {{"default", "1Gi"}, {"validRange", JsonObject{{"min", "1Gi"}}}};
    default:
      return {};
  }
}

JsonObject MakeSharedDevice(Draw& draw, const std::string& name) {
  JsonObject memory{{"value", draw.Of({"6Gi", "8Gi", "16Gi"})}};
  if (JsonObject policy = MakePolicy(draw); !policy.empty()) {
    memory["requestPolicy"] = std::move(policy);
  }
  JsonObject device{
      {"name", name}, {"attributes", MakeAttributes(draw)}, {"allowMultipleAllocations", true}};
  if (draw.Chance(0.9)) device["capacity"] = JsonObject{{"memory", std::move(memory)}};
  return device;
}

struct Profile {
  const char *name, *short_name;
  int id, slots, multiprocessors;
  std::vector<int> starts;
};

const std::vector<Profile>& Profiles() {
  static const std::vector<Profile> profiles{
      {"1g.10gb", "1g10gb", 19, 1, 16, {0, 1, 2, 3, 4, 5, 6}},
      {"2g.20gb", "2g20gb", 14, 2, 32, {0, 2, 4}},
      {"3g.40gb", "3g40gb", 9, 4, 60, {0, 4}},
      {"7g.80gb", "7g80gb", 0, 8, 132, {0}}};
  return profiles;
}

JsonObject Counters(int first, int last, int multiprocessors) {
  JsonObject counters{{"multiprocessors", JsonObject{{"value", std::to_string(multiprocessors)}}}};
  for (int i = first; i < last; ++i) {
    counters[fmt::format("memory-slice-{}", i)] = JsonObject{{"value", "1"}};
  }
  return counters;
}

// A GPU as NVIDIA's driver publishes it: itself, and each placement of each profile.
struct Gpu {
  JsonArray devices;
  JsonObject counter_set;
};

Gpu MakeGpu(Draw& draw, const std::string& node, int index) {
  const std::string uuid = fmt::format("GPU-{}-{}", node, index);
  const std::string set = fmt::format("gpu-{}-counter-set", index);
  Gpu gpu;
  gpu.counter_set = {{"name", set}, {"counters", Counters(0, 8, 132)}};
  const auto add = [&](const std::string& name, JsonObject attributes, const char* memory,
                       JsonObject counters) {
    attributes["productName"] = Attribute("string", "NVIDIA H100 80GB HBM3");
    JsonObject device{
        {"name", name},
        {"attributes", std::move(attributes)},
        {"capacity", JsonObject{{"memory", JsonObject{{"value", memory}}}}},
        {"consumesCounters",
         JsonArray{JsonObject{{"counterSet", set}, {"counters", std::move(counters)}}}}};
    if (JsonArray taints = MakeDeviceTaints(draw, 0.03); !taints.empty()) {
      device["taints"] = std::move(taints);
    }
    gpu.devices.emplace_back(std::move(device));
  };
  add(fmt::format("gpu-{}", index),
      {{"type", Attribute("string", "gpu")}, {"uuid", Attribute("string", uuid)}}, "80Gi",
      Counters(0, 8, 132));
  for (const Profile& profile : Profiles()) {
    if (!draw.Chance(0.8)) continue;
    for (const int start : profile.starts) {
      add(fmt::format("gpu-{}-mig-{}-{}-{}", index, profile.short_name, profile.id, start),
          {{"type", Attribute("string", "mig")},
           {"profile", Attribute("string", profile.name)},
           {"parentUUID", Attribute("string", uuid)}},
          profile.slots == 1 ? "9856Mi" : "20Gi",
          Counters(start, start + profile.slots, profile.multiprocessors));
    }
  }
  return gpu;
}

// The slices of one pool. `spec` says which nodes it serves.
class PoolMaker {
 public:
  PoolMaker(ClusterObjects& cluster, const char* driver, std::string pool, JsonObject spec)
      : cluster_(cluster), driver_(driver), pool_(std::move(pool)), spec_(std::move(spec)) {}

  void Add(JsonArray devices, JsonArray counters = {}) {
    JsonObject spec = spec_;
    if (!devices.empty()) spec["devices"] = std::move(devices);
    if (!counters.empty()) spec["sharedCounters"] = std::move(counters);
    slices_.push_back(std::move(spec));
  }
  // `missing`: slices that are not published.
  void Publish(int generation, size_t missing = 0) {
    const size_t count = slices_.size() + missing;
    for (JsonObject& spec : slices_) {
      spec["driver"] = driver_;
      spec["pool"] =
          JsonObject{{"name", pool_}, {"generation", generation}, {"resourceSliceCount", count}};
      const std::string name = fmt::format("{}-{}-{}-{}", pool_, driver_, generation, number_++);
      cluster_.context.emplace_back(JsonObject{{"apiVersion", kVersion},
                                               {"kind", "ResourceSlice"},
                                               {"metadata", JsonObject{{"name", name}}},
                                               {"spec", std::move(spec)}});
    }
    slices_.clear();
  }

 private:
  ClusterObjects& cluster_;
  const char* driver_;
  std::string pool_;
  JsonObject spec_;
  std::vector<JsonObject> slices_;
  int number_ = 0;
};

JsonArray MakePlainDevices(Draw& draw, const std::string& prefix, int most) {
  JsonArray devices;
  for (int i = 0, count = draw.Between(1, most); i < count; ++i) {
    devices.emplace_back(MakePlainDevice(draw, fmt::format("{}-{}", prefix, i)));
  }
  return devices;
}

void AddPlainPool(Draw& draw, ClusterObjects& cluster, const std::string& node) {
  PoolMaker pool(cluster, kPlain, node, {{"nodeName", node}});
  if (!cluster.faulty && draw.Chance(0.15)) {
    pool.Add(MakePlainDevices(draw, "old", 4));
    pool.Publish(1);
  }
  pool.Add(MakePlainDevices(draw, "one", 4));
  // If an expression may fail, kube-scheduler 1.34 decides by the order in which it happens to look
  // at slices.
  const bool second = !cluster.faulty && draw.Chance(0.3);
  // With the same names again the pool is invalid.
  const bool invalid = draw.Chance(cluster.devices.minor < 35 ? 0.01 : 0.05);
  if (second) pool.Add(MakePlainDevices(draw, invalid ? "one" : "two", 3));
  pool.Publish(2, !cluster.faulty && draw.Chance(cluster.devices.minor < 35 ? 0.02 : 0.04) ? 1 : 0);
}

void AddGpuPool(Draw& draw, ClusterObjects& cluster, const std::string& node) {
  PoolMaker pool(cluster, kGpu, node, {{"nodeName", node}});
  JsonArray counters;
  for (int i = 0, count = draw.Between(1, 2); i < count; ++i) {
    Gpu gpu = MakeGpu(draw, node, i);
    if (cluster.devices.counters_apart()) {
      counters.emplace_back(std::move(gpu.counter_set));
      pool.Add(std::move(gpu.devices));
    } else {
      pool.Add(std::move(gpu.devices), {std::move(gpu.counter_set)});
    }
  }
  if (!counters.empty()) pool.Add({}, std::move(counters));
  pool.Publish(1, draw.Chance(cluster.devices.minor < 35 ? 0.01 : 0.04) ? 1 : 0);
}

void AddSharedPool(Draw& draw, ClusterObjects& cluster, const std::string& node) {
  PoolMaker pool(cluster, kShare, node, {{"nodeName", node}});
  JsonArray devices;
  for (int i = 0, count = draw.Between(1, 3); i < count; ++i) {
    devices.emplace_back(MakeSharedDevice(draw, fmt::format("share-{}", i)));
  }
  pool.Add(std::move(devices));
  pool.Publish(1);
}

JsonObject ZoneSelector(Draw& draw) {
  JsonObject in{{"key", "topology.kubernetes.io/zone"},
                {"operator", draw.Of({"In", "In", "NotIn"})},
                {"values", draw.Few({"z1", "z2", "z3"})}};
  JsonObject term{{"matchExpressions", JsonArray{std::move(in)}}};
  return {{"nodeSelectorTerms", JsonArray{std::move(term)}}};
}

std::string AnyNode(Draw& draw, const ClusterObjects& cluster) {
  const Json& node = cluster.nodes[draw.Between(0, static_cast<int>(cluster.nodes.size()) - 1)];
  return std::string(FindString(node, "metadata", "name"));
}

// Devices that several nodes reach, or that name their nodes themselves.
void AddNetPools(Draw& draw, ClusterObjects& cluster) {
  if (draw.Chance(0.35)) {
    JsonObject nodes;
    if (draw.Chance(0.3)) {
      nodes["allNodes"] = true;
    } else {
      nodes["nodeSelector"] = ZoneSelector(draw);
    }
    PoolMaker pool(cluster, kNet, cluster.name + "-net", std::move(nodes));
    pool.Add(MakePlainDevices(draw, "net", 3));
    pool.Publish(1);
  }
  if (!draw.Chance(0.25)) return;
  PoolMaker pool(cluster, kNet, cluster.name + "-fabric", {{"perDeviceNodeSelection", true}});
  JsonArray devices = MakePlainDevices(draw, "fabric", 5);
  for (Json& device : devices) {
    switch (draw.Between(0, 3)) {
      case 0:
        device.get_object()["allNodes"] = true;
        break;
      case 1:
        device.get_object()["nodeSelector"] = ZoneSelector(draw);
        break;
      default:
        device.get_object()["nodeName"] = AnyNode(draw, cluster);
        break;
    }
  }
  pool.Add(std::move(devices));
  pool.Publish(1);
}

void AddTaintRules(Draw& draw, ClusterObjects& cluster) {
  const std::string version = cluster.devices.taint_rules();
  if (version.empty() || !draw.Chance(0.2)) return;
  JsonObject selector{{"driver", draw.Of({kPlain, kGpu, kNet})}};
  if (draw.Chance(0.7)) selector["pool"] = AnyNode(draw, cluster);
  if (draw.Chance(0.4)) selector["device"] = draw.Of({"one-0", "one-1", "gpu-0"});
  JsonObject taint{{"key", "broken"}, {"effect", draw.Of({"NoSchedule", "NoExecute"})}};
  cluster.context.emplace_back(JsonObject{
      {"apiVersion", "resource.k8s.io/" + version},
      {"kind", "DeviceTaintRule"},
      {"metadata", JsonObject{{"name", cluster.name + "-rule"}}},
      {"spec", JsonObject{{"deviceSelector", std::move(selector)}, {"taint", std::move(taint)}}}});
}

JsonArray Selectors(const char* expression) {
  return {JsonObject{{"cel", JsonObject{{"expression", expression}}}}};
}

void AddClass(ClusterObjects& cluster, const char* name, const char* expression,
              const std::string& resource = "") {
  JsonObject spec;
  if (*expression != '\0') spec["selectors"] = Selectors(expression);
  if (!resource.empty()) {
    spec["extendedResourceName"] = resource;
    cluster.served.push_back(resource);
  } else {
    cluster.classes.push_back(fmt::format("{}-{}", cluster.name, name));
  }
  cluster.context.emplace_back(
      JsonObject{{"apiVersion", kVersion},
                 {"kind", "DeviceClass"},
                 {"metadata", JsonObject{{"name", fmt::format("{}-{}", cluster.name, name)}}},
                 {"spec", std::move(spec)}});
}

void AddClasses(Draw& draw, ClusterObjects& cluster) {
  AddClass(cluster, "any", "");
  AddClass(cluster, "plain", "device.driver == 'plain.example.com'");
  if (cluster.faulty) return;
  AddClass(cluster, "gpu", "device.attributes['gpu.nvidia.com'].?type.orValue('') == 'gpu'");
  AddClass(cluster, "mig",
           "device.driver == 'gpu.nvidia.com' && "
           "device.attributes['gpu.nvidia.com'].type == 'mig'");
  AddClass(cluster, "big",
           "device.capacity[device.driver].?memory.orValue(quantity('1Gi'))"
           ".compareTo(quantity('10Gi')) >= 0");
  if (cluster.devices.shares()) AddClass(cluster, "share", "device.driver == 'share.example.com'");
  if (draw.Chance(0.5)) {
    AddClass(cluster, "widget", "device.driver == 'plain.example.com'", "example.com/widget");
  }
  if (draw.Chance(0.5)) {
    AddClass(cluster, "slice",
             "device.attributes['gpu.nvidia.com'].?profile.orValue('') == '1g.10gb'",
             "nvidia.com/mig-1g.5gb");
  }
}

void OmitZeros(Json& node) {
  for (const char* field : {"capacity", "allocatable"}) {
    JsonObject& amounts = node.get_object()["status"].get_object()[field].get_object();
    if (FindString(Json(amounts), "example.com/widget") == "0") amounts.erase("example.com/widget");
  }
}

}  // namespace

ClusterObjects MakeDeviceCluster(Draw& draw, const std::string& name, const DeviceApi& devices) {
  ClusterObjects cluster;
  cluster.name = name;
  cluster.devices = devices;
  cluster.faulty = draw.Chance(0.12);
  for (int i = 0, count = draw.Between(2, 6); i < count; ++i) {
    Json node = MakeNode(draw, name, i);
    JsonObject& spec = node.get_object()["spec"].get_object();
    if (draw.Chance(0.8)) spec.erase("taints");
    if (draw.Chance(0.7)) spec.erase("unschedulable");
    if (!devices.serves_zero()) OmitZeros(node);
    cluster.nodes.push_back(std::move(node));
  }
  for (const Json& node : cluster.nodes) {
    const std::string node_name(FindString(node, "metadata", "name"));
    if (cluster.faulty || draw.Chance(0.65)) AddPlainPool(draw, cluster, node_name);
    if (cluster.faulty) continue;
    if (draw.Chance(0.5)) AddGpuPool(draw, cluster, node_name);
    if (devices.shares() && draw.Chance(0.4)) AddSharedPool(draw, cluster, node_name);
  }
  if (!cluster.faulty) AddNetPools(draw, cluster);
  AddTaintRules(draw, cluster);
  AddClasses(draw, cluster);
  AddClusterClaims(draw, cluster);
  return cluster;
}

Json MakeDeviceChange(Draw& draw, const Json& object) {
  if (FindString(object, "kind") == "DeviceClass") {
    return JsonObject{
        {"spec",
         JsonObject{
             {"selectors", Selectors(draw.Chance(0.5) ? "device.driver == 'plain.example.com'"
                                                      : "device.driver != 'plain.example.com'")}}}};
  }
  const Json* listed = Find(object, "spec", "devices");
  JsonArray devices = listed == nullptr ? JsonArray{} : listed->get_array();
  for (Json& device : devices) {
    if (!draw.Chance(0.5)) continue;
    JsonObject& fields = device.get_object();
    fields.erase("taints");
    if (JsonArray taints = MakeDeviceTaints(draw, 0.4); !taints.empty()) fields["taints"] = taints;
    if (FindString(object, "spec", "driver") != kGpu) fields["attributes"] = MakeAttributes(draw);
  }
  JsonObject spec;
  if (!devices.empty()) spec["devices"] = std::move(devices);
  return JsonObject{{"metadata", JsonObject{{"labels", JsonObject{{kChangeLabel, "yes"}}}}},
                    {"spec", std::move(spec)}};
}

}  // namespace nos::differential
