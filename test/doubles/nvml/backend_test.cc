// The real NVML backend over the doubled driver without faults.
#include <gtest/gtest.h>

#include "device/nvml_backend.h"
#include "node.h"

namespace nos::device {
namespace {

using nvml_double::NvmlNode;

constexpr char kNeedsReset[] =
    "GPU 0: nvmlDeviceSetMigMode (activation): NVML_ERROR_RESET_REQUIRED: the GPU must be reset "
    "first: drain the node, then nvidia-smi --gpu-reset or a reboot";

JsonObject Gpu(const char* model, const char* product = "") {
  JsonObject gpu{{"model", model}};
  if (*product != '\0') gpu["product"] = product;
  return gpu;
}

struct Machine {
  explicit Machine(JsonArray gpus) : node(JsonObject{{"node", "n1"}, {"gpus", std::move(gpus)}}) {}
  NvmlNode node;
  std::unique_ptr<NvmlLibrary> library = NvmlLibrary::Open(NvmlNode::library()).value();
  NvmlBackend backend{*library, gpu::Catalogue::Builtin()};
};

TEST(NvmlLibrary, ReportsMissingFunctions) {
  const auto none = NvmlLibrary::Open("/nowhere/libnvidia-ml.so.1");
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.status().code(), Code::kUnavailable);
  EXPECT_EQ(none.status().message(),
            "cannot load NVML (/nowhere/libnvidia-ml.so.1: cannot open shared object file: No such "
            "file or directory): is the NVIDIA driver installed on this node, and are its "
            "libraries visible here? NOS_NVML_LIBRARY may name the file");
  const auto other = NvmlLibrary::Open("libm.so.6");
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.status().code(), Code::kUnimplemented);
  EXPECT_EQ(other.status().message(),
            "libm.so.6 lacks nvmlInit_v2, nvmlShutdown, nvmlDeviceGetCount_v2, "
            "nvmlDeviceGetHandleByIndex_v2, nvmlDeviceGetUUID, nvmlDeviceGetName, "
            "nvmlDeviceGetPciInfo_v3, nvmlDeviceGetMemoryInfo: it is no NVML, or of a driver older "
            "than R470; update the driver");
  const auto old = NvmlLibrary::Open(NvmlNode::old_library());
  ASSERT_TRUE(old.ok());
  EXPECT_TRUE((*old)->Has(nvml::Feature::kMig));
  EXPECT_EQ((*old)->Limits().size(), 5u);
  const auto whole = NvmlLibrary::Open(NvmlNode::library());
  EXPECT_TRUE((*whole)->Limits().empty());
}

TEST(NvmlLibrary, ReadsPathFromEnvironment) {
  setenv("NOS_NVML_LIBRARY", "/nowhere/else.so", 1);  // NOLINT(concurrency-mt-unsafe)
  const auto named = NvmlLibrary::Open();
  unsetenv("NOS_NVML_LIBRARY");  // NOLINT(concurrency-mt-unsafe)
  ASSERT_FALSE(named.ok());
  EXPECT_NE(named.status().message().find("/nowhere/else.so"), std::string::npos);
}

TEST(NvmlBackend, ListsGpusOfSeveralModels) {
  JsonArray gpus{Gpu("A100-40GB", "NVIDIA A100-SXM4-40GB"), Gpu("H100-80GB"), {{"model", ""}}};
  gpus[1].as_object()["mig"] = false;
  Machine m(std::move(gpus));
  const auto infos = m.backend.ListGpus();
  ASSERT_TRUE(infos.ok()) << infos.status().message();
  ASSERT_EQ(infos->size(), 3u);
  const GpuInfo& a100 = (*infos)[0];
  EXPECT_EQ(a100.product, "NVIDIA A100-SXM4-40GB");
  EXPECT_EQ(a100.pci_device_id, 0x20B010DEu);
  EXPECT_EQ(a100.memory_mib, 40960);
  EXPECT_EQ(a100.uuid.substr(0, 4), "GPU-");
  EXPECT_TRUE(a100.mig_capable && a100.mig_enabled && a100.mig_pending);
  EXPECT_TRUE((*infos)[1].mig_capable);
  EXPECT_FALSE((*infos)[1].mig_enabled);
  EXPECT_FALSE((*infos)[2].mig_capable);
  EXPECT_EQ(m.backend.DriverVersion(), "580.95.05");
}

TEST(NvmlBackend, ReadsProfilesOfEveryCatalogueModel) {
  JsonArray gpus;
  for (const auto& model : gpu::Catalogue::Builtin().models()) {
    gpus.push_back(Gpu(model->name().c_str()));
  }
  Machine m(std::move(gpus));
  const auto infos = m.backend.ListGpus();
  ASSERT_TRUE(infos.ok());
  for (const GpuInfo& info : *infos) {
    const gpu::Model& model = *gpu::Catalogue::Builtin().models()[info.index];
    const auto profiles = m.backend.ListProfiles(info.index);
    ASSERT_TRUE(profiles.ok()) << model.name() << ": " << profiles.status().message();
    ASSERT_EQ(profiles->size(), model.profiles().size()) << model.name();
    for (const DriverProfile& profile : *profiles) {
      const auto known = model.FindProfile(profile.name);
      ASSERT_TRUE(known) << profile.name;
      const gpu::Profile& row = model.profile(*known);
      EXPECT_EQ(profile.canonical, row.name);
      EXPECT_EQ(profile.slices, row.compute);
      EXPECT_EQ(profile.memory_mib, row.memory_mib);
      ASSERT_EQ(profile.placements.size(), row.starts.size()) << model.name() << row.name;
      for (size_t i = 0; i < row.starts.size(); ++i) {
        EXPECT_EQ(profile.placements[i].start, row.starts[i]);
        EXPECT_EQ(profile.placements[i].size, row.slots);
      }
    }
  }
}

TEST(NvmlBackend, ReadsProfilesWithMigOffOnlyOnHopper) {
  JsonArray gpus{Gpu("A100-40GB"), Gpu("H200-141GB")};
  for (Json& gpu : gpus) gpu.as_object()["mig"] = false;
  Machine m(std::move(gpus));
  EXPECT_TRUE(m.backend.ListProfiles(0)->empty());
  EXPECT_EQ(m.backend.ListProfiles(1)->size(), 7u);
  EXPECT_EQ(m.backend.ListInstances(1).status().code(), Code::kUnimplemented);
  EXPECT_EQ(m.backend.Create(1, "1g.18gb", 0).status().code(), Code::kUnimplemented);
}

TEST(NvmlBackend, CreatesInstanceAtExactStartAndDestroysIt) {
  Machine m({Gpu("A100-40GB"), Gpu("A100-40GB")});
  const auto made = m.backend.Create(1, "3g.20gb", 4);
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_EQ(made->gpu, 1);
  EXPECT_EQ(made->start, 4);
  EXPECT_EQ(made->size, 4);
  EXPECT_EQ(made->profile_id, 9);
  EXPECT_TRUE(made->complete);
  EXPECT_EQ(made->uuid.substr(0, 4), "MIG-");
  EXPECT_EQ(m.node.Layout(0).size(), 0u);
  EXPECT_EQ(m.node.Layout(1), std::vector<std::string>{"3g.20gb@4"});
  ASSERT_TRUE(m.backend.Create(1, "1g.5gb", 0).ok());
  const auto listed = m.backend.ListInstances(1);
  ASSERT_EQ(listed->size(), 2u);
  EXPECT_EQ((*listed)[0].profile, "1g.5gb");
  EXPECT_EQ((*listed)[1].uuid, made->uuid);
  ASSERT_TRUE(m.backend.Destroy(1, made->id).ok());
  EXPECT_EQ(m.node.Layout(1), std::vector<std::string>{"1g.5gb@0"});
  EXPECT_EQ(m.backend.Create(1, "2g.10gb", 2)->uuid, made->uuid) << "ids return, so do UUIDs";
}

TEST(NvmlBackend, ReportsDriverRefusals) {
  Machine m({Gpu("A100-40GB")});
  ASSERT_TRUE(m.backend.Create(0, "3g.20gb", 4).ok());
  EXPECT_EQ(m.backend.Create(0, "1g.5gb", 5).status().code(), Code::kExhausted);
  const Status start = m.backend.Create(0, "3g.20gb", 2).status();
  EXPECT_EQ(start.code(), Code::kInvalid);
  EXPECT_EQ(start.message(), "the driver does not place 3g.20gb at 2, only at 0,4");
  EXPECT_EQ(m.backend.Create(0, "9g.90gb", 0).status().code(), Code::kInvalid);
  EXPECT_EQ(m.backend.Create(7, "1g.5gb", 0).status().code(), Code::kNotFound);
  EXPECT_EQ(m.backend.Destroy(0, 99).code(), Code::kNotFound);
}

TEST(NvmlBackend, DoubleMemorySliceGetsAllMultiprocessors) {
  Machine m({Gpu("H100-80GB"), Gpu("A100-40GB")});
  ASSERT_TRUE(m.backend.Create(0, "1g.20gb", 6).ok());
  ASSERT_TRUE(m.backend.Create(0, "1g.10gb", 0).ok());
  ASSERT_TRUE(m.backend.Create(0, "3g.40gb", 2 + 2).status().code() == Code::kExhausted);
  ASSERT_TRUE(m.backend.Create(1, "1g.10gb", 0).ok());
  const Json state = m.node.Read();
  const auto compute = [&](int gpu, int instance) {
    return state.at("gpus").at(gpu).at("instances").at(instance).at("computeInstances").at(0);
  };
  EXPECT_EQ(compute(0, 0).at("profile").as_int64(), 7) << "profile 0 sees 16 of 26";
  EXPECT_EQ(compute(0, 1).at("profile").as_int64(), 0);
  EXPECT_EQ(compute(1, 0).at("profile").as_int64(), 0) << "Ampere has no such trap";
}

TEST(NvmlBackend, WholeGpuProfileUsesOrdinaryComputeInstance) {
  Machine m({Gpu("H100-80GB")});
  ASSERT_TRUE(m.backend.Create(0, "7g.80gb", 0).ok());
  const Json state = m.node.Read();
  EXPECT_EQ(state.at("gpus")
                .at(0)
                .at("instances")
                .at(0)
                .at("computeInstances")
                .at(0)
                .at("profile")
                .as_int64(),
            4)
      << "8 is for multi-GPU use";
}

TEST(NvmlBackend, NamesProfilesOfOldDriversWithoutNames) {
  const Machine m({Gpu("A100-40GB"), Gpu("H100-80GB"), Gpu("A30"), Gpu("B200")});
  const auto old = NvmlLibrary::Open(NvmlNode::old_library()).value();
  NvmlBackend backend(*old, gpu::Catalogue::Builtin());
  EXPECT_EQ(backend.DriverVersion(), "");
  const auto infos = backend.ListGpus();
  for (const GpuInfo& info : *infos) {
    const gpu::Model& model = *ModelOf(info, gpu::Catalogue::Builtin());
    const auto profiles = backend.ListProfiles(info.index);
    ASSERT_TRUE(profiles.ok());
    std::set<std::string> canonical, known;
    for (const DriverProfile& profile : *profiles) canonical.insert(profile.canonical);
    for (const gpu::Profile& profile : model.profiles()) known.insert(profile.name);
    EXPECT_EQ(canonical, known) << model.name();
  }
  EXPECT_TRUE(backend.Create(0, "2g.10gb", 4).ok());
}

TEST(NvmlBackend, EnablesMigWithoutReset) {
  JsonArray gpus{Gpu("A100-40GB"), Gpu("H200-141GB"), Gpu("H200-141GB"), {{"model", ""}}};
  for (Json& gpu : gpus) gpu.as_object()["mig"] = false;
  gpus[2].as_object()["inUse"] = true;
  Machine m(std::move(gpus));
  const Status ampere = m.backend.EnableMig(0);
  EXPECT_EQ(ampere.code(), Code::kPermission);
  EXPECT_EQ(ampere.message(), kNeedsReset);
  EXPECT_TRUE((*m.backend.ListGpus())[0].mig_pending) << "the next reset brings it";
  EXPECT_TRUE(m.backend.EnableMig(1).ok());
  EXPECT_TRUE(m.backend.Create(1, "1g.18gb", 3).ok());
  EXPECT_EQ(m.backend.EnableMig(2).code(), Code::kUnavailable);
  EXPECT_EQ(m.backend.EnableMig(3).code(), Code::kUnimplemented);
}

TEST(NvmlBackend, DisablesMigWithoutResetIfEmpty) {
  Machine m({Gpu("A100-40GB"), Gpu("H200-141GB"), Gpu("H200-141GB"), {{"model", ""}}});
  const Status ampere = m.backend.DisableMig(0);
  EXPECT_EQ(ampere.code(), Code::kPermission);
  EXPECT_EQ(ampere.message(), kNeedsReset);
  EXPECT_TRUE((*m.backend.ListGpus())[0].mig_enabled);
  EXPECT_FALSE((*m.backend.ListGpus())[0].mig_pending) << "the next reset brings it";
  const GpuInstance made = m.backend.Create(1, "1g.18gb", 3).value();
  const Status used = m.backend.DisableMig(1);
  EXPECT_EQ(used.code(), Code::kUnavailable);
  EXPECT_EQ(used.message(),
            "GPU 1 still has 1 MIG instances, 1g.18gb@3 among them: it stays in MIG mode");
  EXPECT_EQ(m.node.Layout(1), std::vector<std::string>{"1g.18gb@3"});
  ASSERT_TRUE(m.backend.Destroy(1, made.id).ok());
  EXPECT_TRUE(m.backend.DisableMig(1).ok());
  EXPECT_TRUE(m.backend.DisableMig(1).ok()) << "again";
  EXPECT_FALSE((*m.backend.ListGpus())[1].mig_enabled);
  m.node.EditGpu(2, [](JsonObject& gpu) { gpu["inUse"] = true; });
  EXPECT_EQ(m.backend.DisableMig(2).code(), Code::kUnavailable);
  EXPECT_TRUE(m.backend.DisableMig(3).ok()) << "it has none";
  m.node.Reboot();
  const auto after = m.backend.ListGpus();
  EXPECT_FALSE((*after)[0].mig_enabled) << "as it was told to";
  EXPECT_FALSE((*after)[2].mig_enabled) << "Hopper forgets";
}

TEST(NvmlBackend, DriverRefusesToDisableMigWithInstances) {
  Machine m({Gpu("H200-141GB")});
  ASSERT_TRUE(m.backend.Create(0, "1g.18gb", 3).ok());
  NvmlSession session(*m.library);
  ASSERT_TRUE(session.Open().ok());
  nvml::Device device = nullptr;
  nvml::Return activation = nvml::kSuccess;
  m.library->call().nvmlDeviceGetHandleByIndex_v2(0, &device);
  EXPECT_EQ(m.library->call().nvmlDeviceSetMigMode(device, 0, &activation), nvml::kSuccess);
  EXPECT_EQ(activation, nvml::kInUse);
  EXPECT_EQ(m.node.Layout(0), std::vector<std::string>{"1g.18gb@3"});
}

TEST(NvmlBackend, SetsAndRestoresComputeMode) {
  Machine m({Gpu("A100-40GB"), {{"model", ""}}});
  for (const int gpu : {0, 1}) {
    const auto mode = [&] { return (*m.backend.ListGpus())[gpu].compute_mode; };
    EXPECT_EQ(mode(), ComputeMode::kDefault);
    ASSERT_TRUE(m.backend.SetComputeMode(gpu, ComputeMode::kExclusiveProcess).ok());
    EXPECT_EQ(mode(), ComputeMode::kExclusiveProcess);
    ASSERT_TRUE(m.backend.SetComputeMode(gpu, ComputeMode::kDefault).ok());
    EXPECT_EQ(mode(), ComputeMode::kDefault);
  }
  ASSERT_TRUE(m.backend.SetComputeMode(0, ComputeMode::kExclusiveProcess).ok());
  m.node.Reboot();
  EXPECT_EQ((*m.backend.ListGpus())[0].compute_mode, ComputeMode::kDefault);
  m.node.EditGpu(0, [](JsonObject& gpu) { gpu["computeMode"] = 2; });
  EXPECT_EQ((*m.backend.ListGpus())[0].compute_mode, ComputeMode::kOther);
  EXPECT_EQ(m.backend.SetComputeMode(0, ComputeMode::kOther).code(), Code::kInvalid);
  EXPECT_EQ(m.backend.SetComputeMode(9, ComputeMode::kDefault).code(), Code::kNotFound);
}

TEST(NvmlBackend, ChangingModesNeedsRoot) {
  Machine m({Gpu("H200-141GB")});
  m.node.Edit([](Json& state) { state.as_object()["root"] = false; });
  const Status refused = m.backend.SetComputeMode(0, ComputeMode::kExclusiveProcess);
  EXPECT_EQ(refused.code(), Code::kPermission);
  EXPECT_EQ(refused.message(),
            "GPU 0: nvmlDeviceSetComputeMode: NVML_ERROR_NO_PERMISSION: not allowed: it needs root "
            "(CAP_SYS_ADMIN) and, for MIG, the capability devices in /dev/nvidia-caps");
  EXPECT_EQ(m.backend.DisableMig(0).code(), Code::kPermission);
  EXPECT_TRUE(m.backend.SetComputeMode(0, ComputeMode::kDefault).ok()) << "it is";
}

TEST(NvmlBackend, ToleratesUnreadableComputeMode) {
  Machine m({Gpu("A100-40GB")});
  m.node.Fault({{"call", "nvmlDeviceGetComputeMode"}, {"error", 999}});
  const auto infos = m.backend.ListGpus();
  EXPECT_EQ((*infos)[0].problem, "");
  EXPECT_FALSE((*infos)[0].compute_mode);
  m.node.Fault({{"call", "nvmlDeviceSetComputeMode"}, {"effect", "lie"}});
  const Status lied = m.backend.SetComputeMode(0, ComputeMode::kExclusiveProcess);
  EXPECT_EQ(lied.code(), Code::kUnavailable);
  EXPECT_EQ(lied.message(), "the driver accepted the compute mode of GPU 0, but reports another");
}

}  // namespace
}  // namespace nos::device
