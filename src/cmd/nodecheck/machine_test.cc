// The checks of a machine as functions of its facts. test/integration/check_node_test.sh runs the
// command over the doubled driver.
#include "cmd/nodecheck/machine.h"

#include <gtest/gtest.h>

#include "cmd/nodecheck/memory_probe.h"
#include "cmd/nodecheck/smi.h"
#include "cmd/nodecheck/topics.h"

namespace nos::cmd {
namespace {

namespace metric = device::metric;

class MachineTest : public ::testing::Test {
 protected:
  MachineTest() {
    machine_.driver = "580.95.05";
    machine_.cuda = "13.0";
    machine_.files = device::DriverFiles{};
    GpuFacts gpu;
    gpu.described.info.uuid = "GPU-1";
    gpu.described.info.product = "NVIDIA A100";
    gpu.described.info.mig_capable = gpu.described.info.mig_enabled = true;
    gpu.described.info.mig_pending = true;
    gpu.described.model = gpu::Catalogue::Builtin().FindByName("A100-40GB");
    gpu.readings.metrics = {{std::string(metric::kMemoryTotal), 40960},
                            {std::string(metric::kMemoryUsed), 512},
                            {std::string(metric::kTemperature), 33}};
    machine_.gpus.push_back(gpu);
    machine_.smi_gpus["GPU-1"] = {{"name", "NVIDIA A100"},        {"driver_version", "580.95.05"},
                                  {"memory.total", "40960"},      {"memory.used", "540"},
                                  {"power.draw", "[N/A]"},        {"temperature.gpu", "34"},
                                  {"mig.mode.current", "Enabled"}};
    machine_.has_capabilities = true;
  }
  std::optional<Verdict> VerdictOf(std::string_view code) {
    Findings findings;
    CheckMachine(machine_, findings);
    for (const Finding& finding : findings.all()) {
      if (finding.code == code) return finding.verdict;
    }
    return std::nullopt;
  }
  device::Readings& readings() { return machine_.gpus.at(0).readings; }

  Machine machine_;
};

TEST_F(MachineTest, GoodValues) {
  for (const char* code :
       {"DriverAnswers", "DriverVersion", "XidEvents", "NvidiaSmi", "GpusAnswer", "GpuModel",
        "MigMode", "ReadingMemoryUsed", "ReadingTemperature", "MigCapabilities", "CdiFolder"}) {
    EXPECT_EQ(VerdictOf(code), Verdict::kOk) << code;
  }
  EXPECT_EQ(VerdictOf("ReadingPower"), Verdict::kNotChecked) << "it was not measured";
}

TEST_F(MachineTest, ImplausibleReadings) {
  readings().metrics[std::string(metric::kMemoryUsed)] = 50000;
  EXPECT_EQ(VerdictOf("ReadingMemoryUsed"), Verdict::kFailed) << "more than the total";
  readings().metrics[std::string(metric::kTemperature)] = 0;
  EXPECT_EQ(VerdictOf("ReadingTemperature"), Verdict::kFailed);
  readings().metrics[std::string(metric::kUtilization)] = 1.5;
  EXPECT_EQ(VerdictOf("ReadingUtilization"), Verdict::kFailed);
  readings().metrics[std::string(metric::kEccUncorrected)] = 1;
  EXPECT_EQ(VerdictOf("ReadingEccUncorrected"), Verdict::kFailed);
  readings().unmeasured[std::string(metric::kProcesses)] = "no right";
  EXPECT_EQ(VerdictOf("ReadingProcesses"), Verdict::kWarning);
}

TEST_F(MachineTest, ValuesThatNvidiaSmiDoesNotConfirm) {
  size_t compared = 0;
  EXPECT_TRUE(SmiDifferences(machine_, compared).empty());
  EXPECT_EQ(compared, 6u);
  machine_.smi_gpus["GPU-1"]["mig.mode.current"] = "Disabled";
  machine_.smi_gpus["GPU-1"]["temperature.gpu"] = "60";
  EXPECT_EQ(SmiDifferences(machine_, compared).size(), 2u);
  EXPECT_EQ(VerdictOf("NvidiaSmi"), Verdict::kFailed);
  machine_.smi_gpus.clear();
  EXPECT_EQ(VerdictOf("NvidiaSmi"), Verdict::kFailed) << "it does not list the GPU";
  machine_.smi = NotFound("there is none");
  EXPECT_EQ(VerdictOf("NvidiaSmi"), Verdict::kNotChecked);
}

TEST_F(MachineTest, TableOfNvidiaSmi) {
  const auto rows = ReadSmiTable(
      "GPU-1, NVIDIA A100, 580, 40960, 0, [N/A], 400.00, 33, Enabled\ngarbage, line\n\n");
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows.at("GPU-1").at("memory.total"), "40960");
  EXPECT_EQ(rows.at("GPU-1").at("mig.mode.current"), "Enabled");
}

TEST_F(MachineTest, DriversAndFiles) {
  machine_.driver = "470.57.02";
  EXPECT_EQ(VerdictOf("DriverVersion"), Verdict::kFailed);
  machine_.driver = "";
  EXPECT_EQ(VerdictOf("DriverVersion"), Verdict::kWarning);
  machine_.events = Status(Code::kUnimplemented, "too old");
  EXPECT_EQ(VerdictOf("XidEvents"), Verdict::kWarning);
  machine_.cdi.usable = Status(Code::kPermission, "read-only");
  EXPECT_EQ(VerdictOf("CdiFolder"), Verdict::kFailed);
  machine_.has_capabilities = false;
  EXPECT_EQ(VerdictOf("MigCapabilities"), Verdict::kFailed);
  machine_.files->missing_node = "/dev/nvidia-uvm is not on the host";
  EXPECT_EQ(VerdictOf("DeviceNodes"), Verdict::kFailed);
  machine_.files = NotFound("no libcuda.so");
  EXPECT_EQ(VerdictOf("DriverFiles"), Verdict::kFailed);
  machine_.device_plugins.usable = machine_.pod_resources.usable = NotFound("no folder");
  EXPECT_EQ(VerdictOf("KubeletSockets"), Verdict::kNotChecked);
  machine_.gpus.at(0).described.info.problem = "it is lost";
  EXPECT_EQ(VerdictOf("GpusAnswer"), Verdict::kFailed);
  machine_.gpus.clear();
  EXPECT_EQ(VerdictOf("GpusAnswer"), Verdict::kFailed);
}

TEST(MemoryProbeTest, TheLimitHoldsOrNot) {
  EXPECT_EQ(ProblemOf({1, 1024}, 1024), "");
  EXPECT_EQ(ProblemOf({1, 256}, 1024), "") << "the rest is the context's";
  EXPECT_NE(ProblemOf({1, 1088}, 1024), "");
  EXPECT_NE(ProblemOf({1, 192}, 1024), "");
  EXPECT_NE(ProblemOf({2, 1024}, 1024), "");
  EXPECT_NE(ProblemOf({0, 0}, 1024), "");
  EXPECT_EQ(ProbeMemory("libcuda.so.1", 0, {}).status().code(), Code::kNotFound);
}

}  // namespace
}  // namespace nos::cmd
