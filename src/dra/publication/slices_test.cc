#include <gtest/gtest.h>

#include <set>

#include "dra/gpu_slices.h"
#include "dra/placement/nvidia.h"
#include "dra/publication/counters.h"

namespace nos::dra {
namespace {

const gpu::Model* ModelNamed(const char* name) {
  return gpu::Catalogue::Builtin().FindByName(name);
}

GpuOfDriver H100(int index = 0) {
  GpuOfDriver gpu;
  gpu.index = index;
  gpu.uuid = "GPU-" + std::to_string(index);
  gpu.product = "NVIDIA H100 80GB HBM3";
  gpu.model = ModelNamed("H100-80GB");
  gpu.memory_mib = 81920;
  return gpu;
}

const NodeOfDriver kNode{"gpu-1", "node-uid", "580.95.05"};

bool Fit(const CounterAmounts& total, const std::vector<CounterAmounts>& used) {
  CounterAmounts sum;
  for (const CounterAmounts& one : used) {
    for (const auto& [name, amount] : one) sum[name] += amount;
  }
  return std::ranges::all_of(sum, [&](const auto& entry) {
    const auto limit = total.find(entry.first);
    return limit != total.end() && entry.second <= limit->second;
  });
}

// By induction over the layouts: counters admit an instance exactly where the GPU does.
TEST(GpuCountersTest, ExcludeExactlyWhatTheGpuCannotHave) {
  int models = 0;
  for (const auto& model : gpu::Catalogue::Builtin().models()) {
    if (!HasCounters(*model)) continue;
    ++models;
    const gpu::LayoutTable& table = model->layouts();
    const CounterAmounts total = CountersOfGpu(*model);
    for (size_t layout = 0; layout < table.size(); ++layout) {
      const auto id = static_cast<gpu::LayoutId>(layout);
      std::vector<CounterAmounts> used;
      for (size_t p = 0; p < table.placements().size(); ++p) {
        if (((table.Members(id) >> p) & 1U) != 0) {
          used.push_back(CountersOf(*model, table.placements()[p]));
        }
      }
      for (size_t p = 0; p < table.placements().size(); ++p) {
        if (((table.Members(id) >> p) & 1U) != 0) continue;
        used.push_back(CountersOf(*model, table.placements()[p]));
        const bool legal = ((table.Addable(id) >> p) & 1U) != 0;
        ASSERT_EQ(Fit(total, used), legal) << model->name() << " layout " << layout << " with "
                                           << model->PlacementName(table.placements()[p]);
        used.pop_back();
      }
      ASSERT_EQ(Fit(total, {total, CounterAmounts()}), true);
    }
  }
  EXPECT_GE(models, 8) << "most MIG models can be announced";
}

TEST(GpuSlicesTest, SchedulersRecogniseEveryDevice) {
  GpuReader reader(gpu::Catalogue::Builtin());
  for (const auto& model : gpu::Catalogue::Builtin().models()) {
    if (model->counted()) continue;
    GpuOfDriver gpu = H100(3);
    gpu.model = model.get();
    const std::vector<DriverDevice> devices = DevicesOf(gpu);
    std::set<std::string> names;
    for (const DriverDevice& device : devices) {
      EXPECT_TRUE(names.insert(device.name).second) << device.name;
      EXPECT_LE(device.name.size(), 63U);
      EXPECT_EQ(device.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-"),
                std::string::npos)
          << device.name;
    }
    if (model->name() != "H100-80GB") continue;
    ASSERT_EQ(devices.size(), 26U) << "25 placements and the GPU";
    for (const JsonObject& spec : SliceSpecs(kNode, {gpu}, {})) {
      const Json slice = JsonObject{{"metadata", JsonObject{{"name", "a"}}}, {"spec", spec}};
      ResourceSlice parsed;
      ASSERT_TRUE(ReadResourceSlice(JsonSource(slice), parsed).ok());
      for (size_t i = 0; i < parsed.devices.size(); ++i) {
        const auto read = reader.Read(parsed, parsed.devices[i]);
        ASSERT_TRUE(read) << parsed.devices[i].name.str();
        EXPECT_EQ(read->gpu.str(), "GPU-3");
        if (devices[i].placement) {
          ASSERT_EQ(read->kind, GpuDevice::Kind::kInstance) << devices[i].name;
          EXPECT_EQ(read->placement, *devices[i].placement);
        } else {
          EXPECT_EQ(read->kind, GpuDevice::Kind::kWhole);
        }
      }
    }
  }
}

GpuOfDriver Shared(GpuOfDriver gpu) {
  gpu.shares = {79, 48, 4};
  return gpu;
}

// The devices of all slices, by name.
std::map<std::string, Json> Announced(const std::vector<GpuOfDriver>& gpus,
                                      const SliceRules& rules = {}) {
  std::map<std::string, Json> devices;
  for (const JsonObject& spec : SliceSpecs(kNode, gpus, rules)) {
    if (!spec.contains("devices")) continue;
    for (const Json& device : spec.at("devices").as_array()) {
      devices[std::string(FindString(device, "name"))] = device;
    }
  }
  return devices;
}

TEST(GpuSlicesTest, AnnouncesSharesOfGpusAndPlacements) {
  const auto devices = Announced({Shared(H100())});
  EXPECT_EQ(devices.size(), 3 * 26U);
  const Json memory = JsonObject{
      {"value", "79Gi"},
      {"requestPolicy", JsonObject{{"default", "2Gi"},
                                   {"validRange", JsonObject{{"min", "2Gi"}, {"step", "1Gi"}}}}}};
  const Json& gpu = devices.at("gpu-0-mps");
  EXPECT_EQ(*Find(gpu, "capacity", "memory"), memory) << "48 clients at most";
  EXPECT_EQ(gpu.at("allowMultipleAllocations"), true);
  EXPECT_EQ(FindString(gpu, "attributes", "type", "string"), "mps");
  EXPECT_EQ(gpu.at("consumesCounters"), devices.at("gpu-0").at("consumesCounters"))
      << "a share and the whole GPU exclude each other";
  const Json& slice = devices.at("gpu-0-mig-1g10gb-19-6-mps");
  EXPECT_EQ(FindString(slice, "capacity", "memory", "value"), "9Gi");
  EXPECT_EQ(FindString(slice, "attributes", "profile", "string"), "1g.10gb");
  EXPECT_EQ(slice.at("consumesCounters"),
            devices.at("gpu-0-mig-1g10gb-19-6").at("consumesCounters"));
  const Json turns =
      JsonObject{{"value", "4"},
                 {"requestPolicy", JsonObject{{"default", "1"}, {"validValues", JsonArray{"1"}}}}};
  EXPECT_EQ(*Find(devices.at("gpu-0-time-slices"), "capacity", "timeSlices"), turns);
  EXPECT_EQ(Find(devices.at("gpu-0"), "allowMultipleAllocations"), nullptr);
  SliceRules without;
  without.shares = false;
  EXPECT_EQ(Announced({Shared(H100())}, without), Announced({H100()}));
}

TEST(GpuSlicesTest, GpusWithoutMigHaveShares) {
  GpuOfDriver gpu = Shared(H100());
  gpu.model = nullptr;
  const auto devices = Announced({gpu});
  ASSERT_EQ(devices.size(), 3U);
  const Json counters =
      JsonArray{JsonObject{{"counterSet", "gpu-0-counter-set"},
                           {"counters", JsonObject{{"gpu", JsonObject{{"value", "1"}}}}}}};
  for (const auto& [name, device] : devices) EXPECT_EQ(device.at("consumesCounters"), counters);
}

TEST(GpuSlicesTest, SharesHaveTheFaultsOfWhatIsShared) {
  GpuOfDriver gpu = Shared(H100());
  gpu.device_faults = {{"gpu-0-mig-1g10gb-19-6", "Xid94"}, {"gpu-0-mps", "MpsDaemonNotServing"}};
  std::map<std::string, std::string> faults;
  for (const auto& [name, device] : Announced({gpu})) {
    if (const Json* taints = Find(device, "taints")) {
      faults[name] = FindString(taints->as_array().at(0), "value");
    }
  }
  const std::map<std::string, std::string> expected{{"gpu-0-mig-1g10gb-19-6", "Xid94"},
                                                    {"gpu-0-mig-1g10gb-19-6-mps", "Xid94"},
                                                    {"gpu-0-mig-1g10gb-19-6-time-slices", "Xid94"},
                                                    {"gpu-0-mps", "MpsDaemonNotServing"}};
  EXPECT_EQ(faults, expected);
}

TEST(GpuSlicesTest, SchedulersRecogniseShares) {
  GpuReader reader(gpu::Catalogue::Builtin());
  const GpuOfDriver gpu = Shared(H100(3));
  std::map<std::string, DriverDevice> expected;
  for (const DriverDevice& device : DevicesOf(gpu)) expected[device.name] = device;
  size_t read_devices = 0;
  for (const JsonObject& spec : SliceSpecs(kNode, {gpu}, {})) {
    const Json slice = JsonObject{{"metadata", JsonObject{{"name", "a"}}}, {"spec", spec}};
    ResourceSlice parsed;
    ASSERT_TRUE(ReadResourceSlice(JsonSource(slice), parsed).ok());
    EXPECT_LE(parsed.devices.size(), 64U);
    for (const Device& device : parsed.devices) {
      const auto read = reader.Read(parsed, device);
      ASSERT_TRUE(read) << device.name.str();
      const DriverDevice& known = expected.at(device.name.str());
      EXPECT_EQ(read->gpu.str(), "GPU-3");
      EXPECT_EQ(device.allow_multiple, known.sharing != DeviceSharing::kNone);
      EXPECT_EQ(read->kind == GpuDevice::Kind::kInstance, known.placement.has_value());
      if (known.placement) {
        EXPECT_EQ(read->placement, *known.placement);
      }
      ++read_devices;
    }
  }
  EXPECT_EQ(read_devices, expected.size());
}

TEST(GpuSlicesTest, StaysWithinTheLimitsOfTheApi) {
  std::vector<GpuOfDriver> gpus;
  for (int i = 0; i < 12; ++i) gpus.push_back(H100(i));
  const auto specs = SliceSpecs(kNode, gpus, {});
  ASSERT_EQ(specs.size(), 14U);
  size_t sets = 0;
  for (const JsonObject& spec : specs) {
    const bool counters = spec.contains("sharedCounters"), devices = spec.contains("devices");
    EXPECT_NE(counters, devices) << "never both since Kubernetes 1.35";
    if (counters) {
      EXPECT_LE(spec.at("sharedCounters").as_array().size(), 8U);
      sets += spec.at("sharedCounters").as_array().size();
    } else {
      EXPECT_LE(spec.at("devices").as_array().size(), 64U);
    }
    EXPECT_EQ(spec.at("pool").at("resourceSliceCount"), 14);
  }
  EXPECT_EQ(sets, 12U);
  for (const JsonObject& spec : SliceSpecs(kNode, gpus, {.combined = true})) {
    EXPECT_TRUE(spec.contains("sharedCounters") && spec.contains("devices"));
  }
}

TEST(GpuSlicesTest, TaintsOneDeviceForAFaultOfItsInstance) {
  GpuOfDriver gpu = H100();
  gpu.device_faults = {{"gpu-0-mig-1g10gb-19-2", "Xid94"}};
  const auto tainted = [](const GpuOfDriver& of) {
    std::vector<std::string> names;
    for (const JsonObject& spec : SliceSpecs(kNode, {of}, {.combined = true})) {
      for (const Json& device : spec.at("devices").as_array()) {
        if (Find(device, "taints") == nullptr) continue;
        names.emplace_back(FindString(device, "name"));
        EXPECT_EQ(FindString(device.at("taints").as_array()[0], "value"), "Xid94");
      }
    }
    return names;
  };
  EXPECT_EQ(tainted(gpu), std::vector<std::string>{"gpu-0-mig-1g10gb-19-2"});
  gpu.fault = "Xid94";
  EXPECT_EQ(tainted(gpu).size(), DevicesOf(gpu).size());
}

TEST(GpuSlicesTest, SaysWhatUsersSelectBy) {
  GpuOfDriver gpu = H100();
  gpu.pci_bus_id = "0000:17:00.0";
  gpu.fault = "Xid79";
  const auto specs = SliceSpecs(kNode, {gpu}, {});
  const Json device = specs[1].at("devices").as_array()[1];
  EXPECT_EQ(FindString(device, "name"), "gpu-0-mig-1g10gb-19-0");
  const Json& attributes = *Find(device, "attributes");
  EXPECT_EQ(FindString(attributes, "profile", "string"), "1g.10gb");
  EXPECT_EQ(FindString(attributes, "parentUUID", "string"), "GPU-0");
  EXPECT_EQ(FindString(attributes, "driverVersion", "version"), "580.95.5");
  EXPECT_EQ(FindString(attributes, "resource.kubernetes.io/pciBusID", "string"), "0000:17:00.0");
  EXPECT_EQ(FindString(device, "capacity", "memory", "value"), "9984Mi");
  EXPECT_EQ(FindString(device.at("taints").as_array()[0], "value"), "Xid79");
  EXPECT_EQ(device.at("bindingConditions"), JsonArray{"nos.nebuly.com/Created"});
  gpu.whole = false;
  for (const DriverDevice& one : DevicesOf(gpu)) EXPECT_NE(one.name, "gpu-0");
  gpu.placements = false;
  gpu.whole = true;
  EXPECT_EQ(SliceSpecs(kNode, {gpu}, {.binding_conditions = false}).size(), 1U);
}

// The API server: stores what was planned.
std::vector<Json> Stored(const std::vector<Json>& before, const SliceWrites& writes) {
  std::map<std::string, Json> by_name;
  for (const Json& slice : before)
    by_name[std::string(FindString(slice, "metadata", "name"))] = slice;
  for (const auto* list : {&writes.create, &writes.update}) {
    for (Json slice : *list) {
      MakeObject(slice, "metadata")["resourceVersion"] = "7";
      by_name[std::string(FindString(slice, "metadata", "name"))] = slice;
    }
  }
  for (const std::string& name : writes.remove) by_name.erase(name);
  std::vector<Json> after;
  for (const auto& [name, slice] : by_name) after.push_back(slice);
  return after;
}

int64_t GenerationIn(const std::vector<Json>& slices) {
  int64_t generation = -1;
  for (const Json& slice : slices) {
    if (FindString(slice, "spec", "driver") != kNosDriver) continue;
    const int64_t own = Find(slice, "spec", "pool", "generation")->as_int64();
    EXPECT_TRUE(generation < 0 || generation == own);
    generation = own;
  }
  return generation;
}

TEST(PlanSlicesTest, WritesOnlyWhatDiffers) {
  const auto plan = [](const std::vector<GpuOfDriver>& gpus, const std::vector<Json>& existing) {
    return PlanSlices(kNode, SliceSpecs(kNode, gpus, {}), existing);
  };
  const Json foreign =
      JsonObject{{"metadata", JsonObject{{"name", "00000-gpu.nvidia.com-gpu-1"}}},
                 {"spec", JsonObject{{"driver", "gpu.nvidia.com"}, {"nodeName", "gpu-1"}}}};
  std::vector<Json> slices = Stored({foreign}, plan({H100(0), H100(1)}, {foreign}));
  EXPECT_EQ(slices.size(), 4U);
  EXPECT_EQ(GenerationIn(slices), 1);
  EXPECT_TRUE(plan({H100(0), H100(1)}, slices).empty()) << "nothing differs";
  // The server adds times to taints and shows empty fields.
  GpuOfDriver ill = H100(1);
  ill.fault = "Xid79";
  slices = Stored(slices, plan({H100(0), ill}, slices));
  EXPECT_EQ(GenerationIn(slices), 2);
  for (Json& slice : slices) {
    Json* devices = slice.as_object().at("spec").as_object().if_contains("devices");
    if (devices == nullptr) continue;
    for (Json& device : devices->as_array()) {
      device.as_object()["allowMultipleAllocations"] = false;
      if (!device.as_object().contains("taints")) continue;
      device.as_object()["taints"].as_array()[0].as_object()["timeAdded"] = "2026-01-01T00:00:00Z";
    }
  }
  EXPECT_TRUE(plan({H100(0), ill}, slices).empty());
  EXPECT_EQ(plan({H100(0), H100(1)}, slices).update.size(), 3U) << "the GPU is healthy again";
  // A GPU less: the slice of the other goes.
  slices = Stored(slices, plan({H100(0)}, slices));
  EXPECT_EQ(slices.size(), 3U);
  EXPECT_EQ(GenerationIn(slices), 3);
  EXPECT_EQ(FindString(slices.back(), "spec", "driver").empty(), false);
}

TEST(PlanSlicesTest, ConvergesFromAnyState) {
  const auto specs = SliceSpecs(kNode, {H100(0)}, {});
  const std::vector<Json> whole = Stored({}, PlanSlices(kNode, specs, {}));
  const auto expect_repair = [&](std::vector<Json> broken, const char* what) {
    const SliceWrites writes = PlanSlices(kNode, specs, broken);
    EXPECT_FALSE(writes.empty()) << what;
    const std::vector<Json> repaired = Stored(broken, writes);
    EXPECT_TRUE(PlanSlices(kNode, specs, repaired).empty()) << what;
    EXPECT_EQ(repaired.size(), 2U) << what;
  };
  expect_repair({whole[0]}, "a slice is missing");
  std::vector<Json> broken = whole;
  MakeObject(broken[1], "spec", "pool")["generation"] = 9;
  expect_repair(broken, "half written");
  broken = whole;
  MakeObject(broken[1], "metadata")["ownerReferences"] = JsonArray();
  expect_repair(broken, "of a former Node object");
  broken = whole;
  MakeObject(broken[1], "metadata")["name"] = "strange";
  expect_repair(broken, "another name");
  broken = whole;
  MakeObject(broken[1], "spec", "pool")["generation"] = 1e300;
  expect_repair(broken, "no number");
  broken = whole;
  MakeObject(broken[1], "spec", "pool")["resourceSliceCount"] = 1e300;
  expect_repair(broken, "no count");
  broken = whole;
  broken[1].as_object()["spec"].as_object()["devices"] = JsonArray{1, "a", nullptr};
  expect_repair(broken, "no devices");
}

TEST(PlanSlicesTest, SeesFieldsThatTheServerDropped) {
  std::vector<Json> slices = PlanSlices(kNode, SliceSpecs(kNode, {H100(0)}, {}), {}).create;
  EXPECT_FALSE(DroppedBetween(slices[1], slices[1]).counters);
  Json stored = slices[1];
  for (Json& device : stored.as_object()["spec"].as_object()["devices"].as_array()) {
    device.as_object().erase("bindingConditions");
  }
  EXPECT_TRUE(DroppedBetween(slices[1], stored).binding_conditions);
  EXPECT_FALSE(DroppedBetween(slices[1], stored).counters);
  for (Json& device : stored.as_object()["spec"].as_object()["devices"].as_array()) {
    device.as_object().erase("consumesCounters");
  }
  EXPECT_TRUE(DroppedBetween(slices[1], stored).counters);
  stored = slices[0];
  stored.as_object()["spec"].as_object().erase("sharedCounters");
  EXPECT_TRUE(DroppedBetween(slices[0], stored).counters);
  slices = PlanSlices(kNode, SliceSpecs(kNode, {Shared(H100(0))}, {}), {}).create;
  EXPECT_FALSE(DroppedBetween(slices[1], slices[1]).shares);
  stored = slices[1];
  for (Json& device : stored.as_object()["spec"].as_object()["devices"].as_array()) {
    device.as_object().erase("allowMultipleAllocations");
  }
  EXPECT_TRUE(DroppedBetween(slices[1], stored).shares);
}

}  // namespace
}  // namespace nos::dra
