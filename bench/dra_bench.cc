// Allocations of claims on one node with eight GPUs, each with 25 placements and itself as devices,
// in the form in which NVIDIA's driver publishes them: one slice a GPU, one with the counters of
// all.
#include <benchmark/benchmark.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "codec/json.h"
#include "dra/allocator.h"

namespace nos::dra {
namespace {

constexpr int kGpus = 8, kSlots = 8;

// An expression is the name of a profile, or "true".
class Profiles final : public DeviceExpressions {
 public:
  Result<bool> Matches(const std::string& expression, const ResourceSlice&,
                       const Device& device) const override {
    if (expression == "true") return true;
    for (const auto& [name, value] : *device.attributes) {
      if (name.str() == "profile") return value.text.str() == expression;
    }
    return false;
  }
  Result<Attribute> Derive(const std::string&, const ResourceSlice&, const Device&) const override {
    return Invalid("none");
  }
};

struct Profile {
  const char* name;
  int slots, step, count;  // placements at 0, step, 2 * step, ...
};
// 7 + 4 + 4 + 3 + 2 + 1 + 1 + 3 = 25 placements, as on an H100.
constexpr Profile kProfiles[] = {
    {"1g.10gb", 1, 1, 7}, {"1g.10gb.me", 1, 2, 4}, {"1g.20gb", 2, 2, 4}, {"2g.20gb", 2, 2, 3},
    {"3g.40gb", 4, 4, 2}, {"4g.40gb", 4, 4, 1},    {"7g.80gb", 8, 8, 1}, {"1g.10gb.gfx", 1, 2, 3}};

JsonObject DeviceOf(int gpu, const std::string& name, const char* profile, int start, int slots) {
  JsonObject counters;
  for (int slot = start; slot < start + slots; ++slot) {
    counters["memory-slice-" + std::to_string(slot)] = {{"value", "1"}};
  }
  for (const char* counter : {"copy-engines", "decoders", "encoders", "jpeg-engines", "memory",
                              "multiprocessors", "ofa-engines"}) {
    counters[counter] = {{"value", std::to_string(slots)}};
  }
  JsonObject attributes;
  attributes["profile"] = {{"string", profile}};
  attributes["parentUUID"] = {{"string", "GPU-" + std::to_string(gpu)}};
  attributes["productName"] = {{"string", "NVIDIA H100"}};
  attributes["type"] = {{"string", "mig"}};
  return {{"name", name},
          {"attributes", std::move(attributes)},
          {"consumesCounters",
           JsonArray{{{"counterSet", "gpu-" + std::to_string(gpu)}, {"counters", counters}}}}};
}

Json SliceOf(const std::string& name, const std::string& key, JsonArray content,
             const std::string& node) {
  JsonObject spec = {{"driver", "gpu.nvidia.com"}, {"nodeName", node}};
  spec["pool"] = {{"name", node}, {"generation", 1}, {"resourceSliceCount", kGpus + 1}};
  spec[key] = std::move(content);
  return {{"metadata", {{"name", name}}}, {"spec", std::move(spec)}};
}

std::vector<std::string> SlicesOf(const std::string& node) {
  std::vector<std::string> slices;
  JsonArray sets;
  for (int gpu = 0; gpu < kGpus; ++gpu) {
    JsonArray devices;
    const std::string prefix = "gpu-" + std::to_string(gpu);
    devices.push_back(DeviceOf(gpu, prefix, "whole", 0, kSlots));
    for (const Profile& profile : kProfiles) {
      for (int i = 0; i < profile.count; ++i) {
        devices.push_back(DeviceOf(gpu, prefix + "-mig-" + profile.name + "-" + std::to_string(i),
                                   profile.name, i * profile.step, profile.slots));
      }
    }
    slices.push_back(
        WriteJson(SliceOf(node + "-" + std::to_string(gpu), "devices", std::move(devices), node)));
    JsonObject counters;
    for (int slot = 0; slot < kSlots; ++slot) {
      counters["memory-slice-" + std::to_string(slot)] = {{"value", "1"}};
    }
    for (const char* counter : {"copy-engines", "decoders", "encoders", "jpeg-engines", "memory",
                                "multiprocessors", "ofa-engines"}) {
      counters[counter] = {{"value", std::to_string(kSlots)}};
    }
    sets.push_back({{"name", prefix}, {"counters", std::move(counters)}});
  }
  slices.push_back(WriteJson(SliceOf(node + "-8", "sharedCounters", std::move(sets), node)));
  return slices;
}

PreparedClaims Prepared(const std::string& profile, int count, const Features& features) {
  auto device_class = std::make_shared<DeviceClass>();
  device_class->name = "mig";
  device_class->selectors = {profile};
  auto claim = std::make_shared<ResourceClaim>();
  claim->name = claim->uid = "c";
  DeviceRequest& request = claim->requests.emplace_back();
  request.name = "r";
  request.exactly.emplace();
  request.exactly->device_class = "mig";
  request.exactly->mode = "ExactCount";
  request.exactly->count = count;
  return PreparedClaims(
      {claim}, [device_class](const std::string&) { return device_class; }, features);
}

struct Cluster {
  explicit Cluster(int nodes) : inventory(Features::Of(37), profiles) {
    for (int i = 0; i < nodes; ++i) {
      const std::string name = "node-" + std::to_string(i);
      for (const std::string& text : SlicesOf(name)) {
        auto slice = std::make_shared<ResourceSlice>();
        if (ReadResourceSlice(text, *slice).ok()) inventory.PutSlice(std::move(slice));
      }
    }
    node.meta.name = "node-0";
  }
  Profiles profiles;
  Inventory inventory;
  cluster::Node node;
};

// One claim for one slice, allocated and released, with `fill` such claims before.
void AllocateOne(benchmark::State& state) {
  Cluster cluster(1);
  const PreparedClaims prepared = Prepared("1g.10gb", 1, cluster.inventory.features());
  for (int i = 0; i < state.range(0); ++i) {
    const AllocationOutcome outcome = Allocate(cluster.inventory, prepared, cluster.node);
    cluster.inventory.Allocate("fill-" + std::to_string(i), outcome.allocations.at(0));
  }
  for (auto _ : state) {
    const AllocationOutcome outcome = Allocate(cluster.inventory, prepared, cluster.node);
    cluster.inventory.Allocate("c", outcome.allocations.at(0));
    cluster.inventory.Release("c");
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(AllocateOne)->Arg(0)->Arg(40);

// The same, but no device is free.
void FailOne(benchmark::State& state) {
  Cluster cluster(1);
  const PreparedClaims whole = Prepared("7g.80gb", kGpus, cluster.inventory.features());
  cluster.inventory.Allocate("all",
                             Allocate(cluster.inventory, whole, cluster.node).allocations.at(0));
  const PreparedClaims prepared = Prepared("1g.10gb", 1, cluster.inventory.features());
  for (auto _ : state) {
    benchmark::DoNotOptimize(Allocate(cluster.inventory, prepared, cluster.node).kind);
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(FailOne);

// 32 devices on the two GPUs that are free, of which each holds seven at most: the search has to
// prove it.
void FailMany(benchmark::State& state) {
  Cluster cluster(1);
  const PreparedClaims prepared = Prepared("true", 32, cluster.inventory.features());
  const PreparedClaims whole = Prepared("7g.80gb", 6, cluster.inventory.features());
  cluster.inventory.Allocate("most",
                             Allocate(cluster.inventory, whole, cluster.node).allocations.at(0));
  AllocationOutcome outcome;
  for (auto _ : state) outcome = Allocate(cluster.inventory, prepared, cluster.node);
  state.counters["steps"] = static_cast<double>(outcome.steps);
  state.counters["ended"] = outcome.kind == AllocationOutcome::Kind::kDoesNotFit ? 1 : 0;
}
BENCHMARK(FailMany)->Unit(benchmark::kMillisecond);

void ReadNode(benchmark::State& state) {
  const std::vector<std::string> texts = SlicesOf("node-0");
  int64_t bytes = 0;
  for (auto _ : state) {
    for (const std::string& text : texts) {
      ResourceSlice slice;
      if (!ReadResourceSlice(text, slice).ok()) state.SkipWithError("slice is invalid");
      bytes += static_cast<int64_t>(text.size());
    }
  }
  state.SetBytesProcessed(bytes);
}
BENCHMARK(ReadNode)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace nos::dra
