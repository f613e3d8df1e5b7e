// Readings of the real NVML backend over the doubled driver.
#include <gtest/gtest.h>

#include "device/nvml_backend.h"
#include "node.h"

namespace nos::device {
namespace {

using nvml_double::NvmlNode;

JsonObject BusyGpu(const char* model, bool mig) {
  return {{"model", model},
          {"mig", mig},
          {"readings", JsonObject{{"utilization", 63},
                                  {"memoryUtilization", 21},
                                  {"memoryUsedMiB", 12345},
                                  {"reservedMiB", 600},
                                  {"powerMilliwatts", 312500},
                                  {"temperature", 57},
                                  {"smClock", 1410},
                                  {"eccCorrected", 3},
                                  {"pcieTxMiB", 20},
                                  {"pcieRxMiB", 40}}}};
}

struct Machine {
  explicit Machine(JsonArray gpus, const std::string& file = NvmlNode::library())
      : node(JsonObject{{"node", "n1"}, {"gpus", std::move(gpus)}}),
        library(NvmlLibrary::Open(file).value()) {}
  // Sets the readings of an instance and its load from now on.
  void SetInstance(int gpu, const JsonObject& readings) {
    node.EditGpu(gpu, [&](JsonObject& changed) {
      changed["instances"].as_array().at(0).as_object()["readings"] = readings;
    });
  }
  NvmlNode node;
  std::unique_ptr<NvmlLibrary> library;
  NvmlBackend backend{*library, gpu::Catalogue::Builtin()};
};

TEST(NvmlReadings, ReadsGpuWithoutMig) {
  Machine m({BusyGpu("A100-40GB", false)});
  const Readings readings = m.backend.MeasureGpu(0);
  EXPECT_EQ(readings.Find(metric::kUtilization), 0.63);
  EXPECT_EQ(readings.Find(metric::kMemoryUtilization), 0.21);
  EXPECT_EQ(readings.Find(metric::kMemoryUsed), 12345) << "without what the driver keeps";
  EXPECT_EQ(readings.Find(metric::kMemoryTotal), 40960);
  EXPECT_EQ(readings.Find(metric::kPower), 312.5);
  EXPECT_EQ(readings.Find(metric::kPowerLimit), 400);
  EXPECT_EQ(readings.Find(metric::kTemperature), 57);
  EXPECT_EQ(readings.Find(metric::kSmClock), 1410);
  EXPECT_EQ(readings.Find(metric::kMemoryClock), 1593);
  EXPECT_EQ(readings.Find(metric::kEccCorrected), 3);
  EXPECT_EQ(readings.Find(metric::kEccUncorrected), 0);
  ASSERT_EQ(readings.unmeasured.size(), 2u) << "PCIe comes from GPM";
  EXPECT_EQ(readings.unmeasured.at("pcie_tx"),
            "not measurable here: this GPU has no GPM, which begins with Hopper");
}

TEST(NvmlReadings, ComparesGpmCountersOnHopperInMigMode) {
  Machine m({BusyGpu("H100-80GB", true)});
  const GpuInstance made = m.backend.Create(0, "1g.10gb", 3).value();
  m.SetInstance(0, {{"utilization", 80}, {"memoryUsedMiB", 5000}});
  Readings gpu = m.backend.MeasureGpu(0), instance = m.backend.MeasureInstance(made);
  EXPECT_EQ(instance.Find(metric::kMemoryUsed), 5000);
  EXPECT_GT(*instance.Find(metric::kMemoryTotal), 9000);
  for (const Readings* first : {&gpu, &instance}) {
    EXPECT_FALSE(first->Find(metric::kUtilization));
    EXPECT_EQ(first->unmeasured.at("utilization"), "the first reading has nothing to compare with");
  }
  m.SetInstance(0, {{"utilization", 42}, {"memoryUtilization", 7}});
  gpu = m.backend.MeasureGpu(0);
  instance = m.backend.MeasureInstance(made);
  EXPECT_EQ(gpu.Find(metric::kUtilization), 0.63);
  EXPECT_EQ(gpu.Find(metric::kPcieTx), 20 * 1024);
  EXPECT_EQ(gpu.Find(metric::kPcieRx), 40 * 1024);
  EXPECT_TRUE(gpu.unmeasured.empty());
  EXPECT_EQ(instance.Find(metric::kUtilization), 0.42);
  EXPECT_EQ(instance.Find(metric::kMemoryUtilization), 0.07);
  EXPECT_TRUE(instance.unmeasured.empty());
}

TEST(NvmlReadings, DoesNotCompareRecreatedInstanceWithOldOne) {
  Machine m({BusyGpu("H100-80GB", true)});
  const GpuInstance first = m.backend.Create(0, "1g.10gb", 3).value();
  (void)m.backend.MeasureInstance(first);
  ASSERT_TRUE(m.backend.Destroy(0, first.id).ok());
  const GpuInstance second = m.backend.Create(0, "1g.10gb", 3).value();
  ASSERT_EQ(first.uuid, second.uuid);
  EXPECT_FALSE(m.backend.MeasureInstance(second).Find(metric::kUtilization));
  EXPECT_TRUE(m.backend.MeasureInstance(second).Find(metric::kUtilization));
}

TEST(NvmlReadings, ReportsMissingUtilizationOnAmpereInMigMode) {
  Machine m({BusyGpu("A100-40GB", true)});
  const GpuInstance made = m.backend.Create(0, "1g.5gb", 6).value();
  for (int i = 0; i < 2; ++i) {
    const Readings gpu = m.backend.MeasureGpu(0), instance = m.backend.MeasureInstance(made);
    EXPECT_EQ(gpu.Find(metric::kMemoryUsed), 12345);
    EXPECT_EQ(instance.Find(metric::kMemoryUsed), 0);
    for (const Readings* each : {&gpu, &instance}) {
      EXPECT_FALSE(each->Find(metric::kUtilization));
      EXPECT_EQ(
          each->unmeasured.at("utilization"),
          "not measurable here: this GPU has no GPM, which begins with Hopper; a DCGM exporter "
          "may report it");
      EXPECT_EQ(each->unmeasured.at("memory_utilization"),
                "not measurable here: this GPU has no GPM, which begins with Hopper");
    }
  }
}

TEST(NvmlReadings, ReadsAvailableMetricsOfOldDriver) {
  Machine m({BusyGpu("A100-40GB", false)}, NvmlNode::old_library());
  const Readings readings = m.backend.MeasureGpu(0);
  EXPECT_EQ(readings.Find(metric::kMemoryUsed), 12945) << "it does not report what it reserves";
  EXPECT_EQ(readings.metrics.size(), 2u);
  EXPECT_EQ(readings.unmeasured.at("power"),
            "nvmlDeviceGetPowerUsage: NVML_ERROR_FUNCTION_NOT_FOUND: the driver is too old for it");
  EXPECT_TRUE(readings.unmeasured.contains("processes"));
  EXPECT_TRUE(readings.unmeasured.contains("utilization"));
}

TEST(NvmlReadings, OneFailedMetricDoesNotAffectOthers) {
  Machine m({BusyGpu("A100-40GB", false)});
  m.node.Fault({{"call", "nvmlDeviceGetPowerUsage"}, {"error", 999}});
  m.node.Fault({{"call", "nvmlDeviceGetComputeRunningProcesses_v3"}, {"count", 4'000'000}});
  m.node.Fault({{"call", "nvmlDeviceGetUtilizationRates"}, {"count", 4'294'967'295}});
  const Readings readings = m.backend.MeasureGpu(0);
  EXPECT_EQ(readings.unmeasured.at("power"),
            "nvmlDeviceGetPowerUsage: NVML_ERROR_UNKNOWN: the driver failed; see the kernel log "
            "(NVRM, Xid)");
  EXPECT_EQ(readings.unmeasured.at("processes"), "the driver says there are 4000000 processes");
  EXPECT_EQ(readings.unmeasured.at("utilization"), "the driver says 42949672.95, which cannot be");
  EXPECT_EQ(readings.Find(metric::kTemperature), 57);
  EXPECT_EQ(m.backend.MeasureGpu(0).Find(metric::kPower), 312.5);
}

TEST(NvmlReadings, LostGpuHasNoReadings) {
  Machine m({BusyGpu("A100-40GB", false)});
  m.node.EditGpu(0, [](JsonObject& gpu) { gpu["lost"] = true; });
  const Readings readings = m.backend.MeasureGpu(0);
  EXPECT_TRUE(readings.metrics.empty());
  EXPECT_EQ(
      readings.unmeasured.at("utilization"),
      "nvmlDeviceGetHandleByIndex_v2: NVML_ERROR_GPU_IS_LOST: the GPU has fallen off the bus: "
      "drain the node and reboot it; replace the GPU if it recurs");
}

TEST(NvmlReadings, NamesProcessesAndTheirInstances) {
  Machine m({BusyGpu("H100-80GB", true)});
  m.node.EditGpu(0, [](JsonObject& gpu) {
    gpu["processes"] = JsonArray{
        {{"pid", 77}, {"name", "/usr/bin/python3\x1b[2J"}, {"memoryMiB", 900}, {"instance", 3}},
        {{"pid", 12}, {"name", "idle"}}};
  });
  const Readings readings = m.backend.MeasureGpu(0);
  ASSERT_EQ(readings.processes.size(), 2u);
  EXPECT_EQ(readings.processes[0].pid, 12u);
  EXPECT_FALSE(readings.processes[0].memory_mib);
  EXPECT_FALSE(readings.processes[0].instance);
  EXPECT_EQ(readings.processes[1].name.find('\x1b'), std::string::npos);
  EXPECT_TRUE(readings.processes[1].name.starts_with("python3"));
  EXPECT_EQ(readings.processes[1].memory_mib, 900);
  EXPECT_EQ(readings.processes[1].instance, 3u);
}

}  // namespace
}  // namespace nos::device
