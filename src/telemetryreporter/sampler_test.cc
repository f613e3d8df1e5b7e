#include "telemetryreporter/sampler.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/text.h"
#include "device/mig_parts.h"
#include "device/mps_gpus.h"
#include "device/plain_gpus.h"
#include "device/sim_gpus.h"
#include "kubelet/testing/fake_kubelet.h"
#include "telemetry/records.h"
#include "telemetry/testing/temp_folder.h"
#include "telemetryreporter/dcgm_text.h"
#include "telemetryreporter/gpu_metrics.h"
#include "telemetryreporter/sample_text.h"

namespace nos::telemetry {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

const gpu::Model& A100() { return *gpu::Catalogue::Builtin().FindByName("A100-40GB"); }

// One A100 in MIG mode, one without; ml/train holds 3g.20gb on the first.
class SamplerTest : public testing::Test {
 protected:
  SamplerTest() {
    held_ = gpus_.Place(0, "3g.20gb", 4).value();
    free_ = gpus_.Place(0, "1g.5gb", 0).value();
    kubelet_.Assign({"ml", "train", "main", "nvidia.com/mig-3g.20gb", held_.uuid});
  }
  device::SimHooks Hooks() {
    device::SimHooks hooks;
    hooks.held = [this](const std::string& uuid) { return kubelet_.Holds(uuid); };
    return hooks;
  }
  NodeSample Take() {
    return TakeSample("gpu-1", gpus_, kubelet_, gpu::Catalogue::Builtin(), &health_).value();
  }
  std::vector<Json> Records(const NodeSample& sample, const std::vector<XidEvent>& xids = {}) {
    std::vector<Json> records;
    for (const std::string& text : sampler_.Records(sample, xids, now_)) {
      records.push_back(ParseJson(text).value());
    }
    return records;
  }
  std::vector<Json> Records() { return Records(Take()); }
  static std::vector<std::string> Kinds(const std::vector<Json>& records) {
    std::vector<std::string> kinds;
    for (const Json& record : records) kinds.emplace_back(FindString(record, "kind"));
    return kinds;
  }

  kubelet::FakeKubelet kubelet_;
  device::GpuHealth health_;
  device::SimGpus gpus_{{{&A100(), "NVIDIA A100-SXM4-40GB"}, {&A100(), "", false}}, "n", Hooks()};
  device::GpuInstance held_, free_;
  Sampler sampler_;
  Time now_{std::chrono::milliseconds(1'763'760'000'123)};
};

TEST_F(SamplerTest, ReportsDevicesAndMeasurements) {
  const std::vector<Json> records = Records();
  ASSERT_THAT(Kinds(records), ElementsAre("layout", "gpu", "instance", "instance", "gpu"));
  const Json& layout = records[0];
  EXPECT_EQ(layout.at("at"), 1'763'760'000'123);
  EXPECT_EQ(FindString(layout, "node"), "gpu-1");
  EXPECT_EQ(FindString(layout, "mode"), "mig");
  ASSERT_EQ(layout.at("gpus").as_array().size(), 2u);
  const Json& gpu = layout.at("gpus").as_array()[0];
  EXPECT_EQ(gpu.at("slots"), 8);
  EXPECT_EQ(gpu.at("mig"), true);
  EXPECT_EQ(gpu.at("memory"), 40960);
  EXPECT_EQ(FindString(gpu, "health"), "");
  ASSERT_EQ(gpu.at("instances").as_array().size(), 2u);
  const Json& instance = gpu.at("instances").as_array()[0];
  EXPECT_EQ(FindString(instance, "instance"), held_.uuid);
  EXPECT_EQ(FindString(instance, "profile"), "3g.20gb");
  EXPECT_EQ(instance.at("start"), 4);
  EXPECT_EQ(instance.at("size"), 4);
  EXPECT_EQ(instance.at("holders"),
            (Json(JsonArray{{{"namespace", "ml"}, {"pod", "train"}, {"container", "main"}}})));
  EXPECT_EQ(layout.at("gpus").as_array()[1].at("slots"), 0) << "without MIG";
  EXPECT_EQ(FindString(records[1], "gpu"), FindString(gpu, "gpu"));
  EXPECT_GT(records[1].at("metrics").at("power").to_number<double>(), 50);
  EXPECT_EQ(FindString(records[2], "instance"), held_.uuid);
  EXPECT_GT(records[2].at("metrics").at("utilization").to_number<double>(), 0);
  EXPECT_EQ(records[3].at("metrics").at("utilization"), 0);
}

TEST_F(SamplerTest, PodsHoldTheDevicesOfTheirClaims) {
  const auto holders = [](const Json& gpu) {
    std::string text = WriteJson(gpu.at("holders"));
    for (const Json& instance : gpu.at("instances").as_array()) {
      text +=
          " " + std::string(FindString(instance, "profile")) + WriteJson(instance.at("holders"));
    }
    return text;
  };
  kubelet_.AssignClaim({"ml", "a", "main", "gpu.nvidia.com", "gpu-0-mig-1g5gb-19-0"});
  kubelet_.AssignClaim({"ml", "a", "side", "gpu.nvidia.com", "gpu-0-mig-1g5gb-19-0"});
  kubelet_.AssignClaim({"ml", "b", "main", "gpu.nos.nebuly.com", "gpu-1"});
  kubelet_.AssignClaim(
      {"ml", "c", "main", "gpu.nvidia.com", "gpu-0-mig-1g5gb-19-3"});  // not created
  kubelet_.AssignClaim(
      {"ml", "c", "main", "gpu.nvidia.com", "gpu-0-mig-2g10gb-14-0"});  // as before
  kubelet_.AssignClaim({"ml", "d", "main", "nic.example.com", "gpu-1"});
  kubelet_.AssignClaim({"ml", "e", "main", "gpu.nvidia.com", "gpu-7"});
  const std::vector<Json> records = Records();
  const JsonArray& gpus = records[0].at("gpus").as_array();
  EXPECT_EQ(holders(gpus[0]), R"([] 3g.20gb[{"namespace":"ml","pod":"train","container":"main"}])"
                              R"( 1g.5gb[{"namespace":"ml","pod":"a","container":"main"},)"
                              R"({"namespace":"ml","pod":"a","container":"side"}])");
  EXPECT_EQ(holders(gpus[1]), R"([{"namespace":"ml","pod":"b","container":"main"}])");
  EXPECT_EQ(FindString(records[2], "kind"), "instance");
}

// The driver numbers device nodes in an order of its own.
TEST_F(SamplerTest, DeviceOfNvidiasDriverIsFoundByMinorNumber) {
  const TempFolder host;
  const auto list = [&](int index, int minor) {
    const std::string folder =
        fmt::format("{}/driver/nvidia/gpus/0000:0{}:00.0", host.path(), minor);
    std::filesystem::create_directories(folder);
    std::ofstream(folder + "/information")
        << "GPU UUID: " << gpus_.ListGpus()->at(index).uuid << "\nDevice Minor: " << minor << "\n";
  };
  list(0, 1);
  list(1, 0);
  kubelet_.AssignClaim({"ml", "a", "main", "gpu.nvidia.com", "gpu-0"});
  kubelet_.AssignClaim({"ml", "b", "main", "gpu.nos.nebuly.com", "gpu-0"});
  NodeSettings settings;
  settings.host.proc = host.path();
  const NodeSample sample =
      TakeSample("gpu-1", gpus_, kubelet_, gpu::Catalogue::Builtin(), &health_, settings).value();
  EXPECT_THAT(sample.gpus[0].holders, ElementsAre(Holder{"ml", "b", "main"}));
  EXPECT_THAT(sample.gpus[1].holders, ElementsAre(Holder{"ml", "a", "main"}));
}

TEST_F(SamplerTest, ReportsLayoutOnChangeAndEveryFiveMinutes) {
  EXPECT_EQ(Kinds(Records())[0], "layout");
  now_ += seconds(10);
  EXPECT_EQ(Kinds(Records())[0], "gpu");
  kubelet_.Remove("ml", "train");
  EXPECT_EQ(Kinds(Records())[0], "layout");
  EXPECT_EQ(Kinds(Records())[0], "gpu");
  now_ += minutes(5);
  EXPECT_EQ(Kinds(Records())[0], "layout");
  health_.Add({device::HealthCondition::Kind::kXid, 1, {}, 79, "GPU 1 has fallen off the bus"});
  const std::vector<Json> records = Records();
  EXPECT_EQ(Kinds(records)[0], "layout");
  EXPECT_EQ(FindString(records[0].at("gpus").as_array()[1], "health"),
            "GPU 1 has fallen off the bus");
}

TEST_F(SamplerTest, KeepsLayoutWhileKubeletDoesNotAnswer) {
  (void)Records();
  kubelet_.down = true;
  now_ += minutes(10);
  EXPECT_THAT(Kinds(Records()), ElementsAre("gpu", "instance", "instance", "gpu"));
  kubelet_.down = false;
  EXPECT_EQ(Kinds(Records())[0], "layout");
}

TEST_F(SamplerTest, LostGpuKeepsIndexAndInstances) {
  (void)Records();
  gpus_.Lose(0);
  NodeSample sample = Take();
  sample.gpus[0].health = "it is lost";
  const std::vector<Json> records = Records(sample);
  ASSERT_THAT(Kinds(records), ElementsAre("layout", "gpu", "gpu"));
  EXPECT_EQ(records[0].at("gpus").as_array()[0].at("instances").as_array().size(), 2u);
  EXPECT_TRUE(records[1].at("metrics").as_object().empty());
  EXPECT_THAT(FindString(records[1], "unmeasured", "utilization"), HasSubstr("GPU_IS_LOST"));
}

TEST_F(SamplerTest, GpuThatNeverAnsweredKeepsIndex) {
  NodeSample sample;
  sample.node = "gpu-1";
  sample.gpus.resize(1);
  sample.gpus[0].health = std::string(2000, 'x');
  const std::vector<Json> records = Records(sample);
  ASSERT_THAT(Kinds(records), ElementsAre("layout"));
  EXPECT_EQ(FindString(records[0].at("gpus").as_array()[0], "gpu"), "gpu-1/0");
  EXPECT_LE(FindString(records[0].at("gpus").as_array()[0], "health").size(), 400u);
}

TEST_F(SamplerTest, JoinsXidsAndProcessesWithGpusAndPods) {
  NodeSample sample = Take();
  sample.gpus[0].readings.processes = {{7, "python3", 900, held_.id}, {8, "", {}, free_.id}};
  sample.gpus[1].readings.processes = {{9, "x", {}, {}}};
  sample.gpus[1].holders = {{"a", "p", "c"}, {"a", "q", "c"}};
  const std::vector<Json> records = Records(sample, {{now_ - seconds(3), 0, 31, "a fault"}});
  ASSERT_EQ(Kinds(records)[1], "xid");
  EXPECT_EQ(records[1].at("xid"), 31);
  EXPECT_EQ(records[1].at("at"), 1'763'759'997'123);
  EXPECT_EQ(FindString(records[1], "gpu"), sample.gpus[0].info.uuid);
  const JsonArray& processes = records[2].at("processes").as_array();
  EXPECT_EQ(FindString(processes[0], "instance"), held_.uuid);
  EXPECT_EQ(FindString(processes[0], "pod", "name"), "train");
  EXPECT_EQ(processes[0].at("memory"), 900);
  EXPECT_FALSE(processes[1].as_object().contains("pod"));
  EXPECT_FALSE(processes[1].as_object().contains("memory"));
  EXPECT_FALSE(records.back().at("processes").as_array()[0].as_object().contains("pod"))
      << "shared: it may belong to either pod";
}

TEST_F(SamplerTest, SharedGpuHasSeveralHolders) {
  const std::string uuid = Take().gpus[1].info.uuid;
  kubelet_.Assign({"b", "two", "c", "nvidia.com/gpu.shared", uuid + "::1"});
  kubelet_.Assign({"a", "one", "c", "nvidia.com/gpu.shared", uuid + "::0"});
  kubelet_.Assign({"a", "one", "c", "nvidia.com/gpu.shared", uuid + "::2"});
  const NodeSample sample = Take();
  EXPECT_THAT(sample.gpus[1].holders,
              ElementsAre(Holder{"a", "one", "c"}, Holder{"b", "two", "c"}));
  EXPECT_EQ(SoleHolder(sample.gpus[1].holders), nullptr);
}

TEST_F(SamplerTest, DcgmFillsUnmeasuredUtilization) {
  NodeSample sample = Take();
  const std::string uuid = sample.gpus[0].info.uuid;
  sample.gpus[0].instances[0].readings = device::NothingMeasured("not here");
  sample.gpus[0].readings = device::NothingMeasured("not here");
  const std::string name = "DCGM_FI_PROF_GR_ENGINE_ACTIVE";
  const auto line = [&](const std::string& labels, const std::string& value) {
    return name + "{gpu=\"0\",UUID=\"" + uuid + "\"" + labels + "} " + value + "\n";
  };
  FillUtilization(ReadDcgmText("# HELP " + name + " Ratio\n# TYPE " + name + " gauge\n" +
                               line("", "0.25") + "DCGM_FI_DEV_SM_CLOCK{gpu=\"0\"} 5\n" +
                               line(",GPU_I_PROFILE=\"3g.20gb\",GPU_I_ID=\"" +
                                        std::to_string(held_.id) + "\",pod=\"a\\\"}\\n\"",
                                    "0.750000 1763760000123") +
                               line(",GPU_I_ID=\"" + std::to_string(free_.id) + "\"", "0.9")),
                  sample);
  EXPECT_EQ(sample.gpus[0].readings.Find("utilization"), 0.25);
  EXPECT_EQ(sample.gpus[0].instances[0].readings.Find("utilization"), 0.75);
  EXPECT_FALSE(sample.gpus[0].instances[0].readings.unmeasured.contains("utilization"));
  EXPECT_EQ(sample.gpus[0].instances[1].readings.Find("utilization"), 0)
      << "values of the driver are kept";
}

TEST(DcgmText, SkipsHostileLines) {
  const std::string name = "DCGM_FI_PROF_GR_ENGINE_ACTIVE";
  for (const std::string& bad :
       {name, name + "{", name + "{}", name + "{} 1", name + "{UUID=\"G", name + "{UUID=\"G\\",
        name + "{UUID=\"G\"", name + "{UUID=\"G\"}", name + "{UUID=\"G\"} ",
        name + "{UUID=\"G\"} x", name + "{UUID=\"G\"} NaN", name + "{UUID=\"G\"} -1",
        name + "{UUID=\"G\"} 1e9", name + "{UUID=\"G\",GPU_I_ID=\"-1\"} 1",
        name + "{UUID=\"G\",GPU_I_ID=\"99999999999\"} 1", name + "{UUID=\"G\",x} 1",
        name + "_X{UUID=\"G\"} 1", name + "{UUID=\"" + std::string(10'000, 'G') + "\"} 1",
        std::string("\0\xff{}", 4)}) {
    EXPECT_TRUE(ReadDcgmText(bad).empty()) << bad;
    EXPECT_EQ(ReadDcgmText(bad + "\n" + name + "{UUID=\"G\"} 1\n").size(), 1u) << bad;
  }
  std::string many;
  for (int i = 0; i < 10'000; ++i) many += name + "{UUID=\"G\"} 1\n";
  EXPECT_EQ(ReadDcgmText(many).size(), 4096u);
}

TEST_F(SamplerTest, MetricsUseDcgmExporterNames) {
  Metrics metrics;
  GpuMetrics shown(metrics);
  NodeSample sample = Take();
  sample.gpus[0].readings.metrics["utilization"] = 0.5;
  sample.gpus[0].instances[0].readings.metrics["utilization"] = 0.75;
  shown.Show(sample, std::vector<XidEvent>{{now_, 1, 79, ""}});
  std::string text = metrics.Text();
  const std::string uuid = sample.gpus[0].info.uuid;
  EXPECT_THAT(text,
              HasSubstr("DCGM_FI_DEV_GPU_UTIL{GPU_I_ID=\"\",GPU_I_PROFILE=\"\",Hostname=\"gpu-1\","
                        "UUID=\"" +
                        uuid +
                        "\",container=\"\",device=\"nvidia0\",gpu=\"0\","
                        "modelName=\"NVIDIA A100-SXM4-40GB\",namespace=\"\",pod=\"\"} 50\n"));
  EXPECT_THAT(text,
              HasSubstr("DCGM_FI_PROF_GR_ENGINE_ACTIVE{GPU_I_ID=\"" + std::to_string(held_.id) +
                        "\",GPU_I_PROFILE=\"3g.20gb\",Hostname=\"gpu-1\",UUID=\"" + uuid +
                        "\",container=\"main\",device=\"nvidia0\",gpu=\"0\",modelName=\"NVIDIA "
                        "A100-SXM4-40GB\",namespace=\"ml\",pod=\"train\"} 0.75\n"));
  EXPECT_THAT(text, HasSubstr("DCGM_FI_DEV_XID_ERRORS{GPU_I_ID=\"\",GPU_I_PROFILE=\"\","
                              "Hostname=\"gpu-1\",UUID=\"" +
                              sample.gpus[1].info.uuid));
  for (const char* name :
       {"DCGM_FI_DEV_FB_USED{", "DCGM_FI_DEV_FB_FREE{", "DCGM_FI_DEV_POWER_USAGE{",
        "DCGM_FI_DEV_GPU_TEMP{", "DCGM_FI_DEV_SM_CLOCK{"}) {
    EXPECT_THAT(text, HasSubstr(name));
  }
  kubelet_.Remove("ml", "train");
  gpus_.Lose(1);
  shown.Show(Take(), {});
  text = metrics.Text();
  EXPECT_THAT(text, Not(HasSubstr("pod=\"train\"")));
  EXPECT_THAT(text, Not(HasSubstr("DCGM_FI_DEV_GPU_UTIL{GPU_I_ID=\"\",GPU_I_PROFILE=\"\",Hostname="
                                  "\"gpu-1\",UUID=\"" +
                                  sample.gpus[1].info.uuid)));
}

TEST_F(SamplerTest, MpsSharesHaveTheirOwnHolders) {
  device::MpsGpus shares(gpus_);
  ASSERT_TRUE(shares.EnableMps(1).ok());
  const std::string held = shares.Create(1, "10gb", 0)->uuid;
  ASSERT_TRUE(shares.Create(1, "20gb", 1).ok());
  kubelet_.Assign({"ml", "serve", "main", "nvidia.com/gpu-10gb", held});
  const auto look = [&](device::Backend& backend) {
    return Records(
        TakeSample("gpu-1", backend, kubelet_, gpu::Catalogue::Builtin(), nullptr).value())[0];
  };
  const Json layout = look(shares);
  EXPECT_EQ(FindString(layout, "mode"), "mps");
  const Json& gpu = layout.at("gpus").as_array()[1];
  EXPECT_EQ(gpu.at("mig"), false);
  EXPECT_EQ(gpu.at("slots"), 39) << "GiB";
  EXPECT_TRUE(gpu.at("holders").as_array().empty());
  const JsonArray& instances = gpu.at("instances").as_array();
  ASSERT_EQ(instances.size(), 2u);
  EXPECT_EQ(FindString(instances[0], "instance"), held);
  EXPECT_EQ(FindString(instances[0], "profile"), "10gb");
  EXPECT_EQ(instances[0].at("size"), 10);
  EXPECT_EQ(instances[1].at("start"), 1);
  const Json holder{{"namespace", "ml"}, {"pod", "serve"}, {"container", "main"}};
  EXPECT_EQ(instances[0].at("holders"), Json(JsonArray{holder}));
  EXPECT_TRUE(instances[1].at("holders").as_array().empty());
  // Shares of an unknown device plugin: their holders are holders of the whole GPU.
  const Json others = look(gpus_);
  EXPECT_EQ(FindString(others, "mode"), "mig");
  EXPECT_EQ(others.at("gpus").as_array()[1].at("holders"), Json(JsonArray{holder}));
}

// Each GPU of a hybrid node reports its sharing mode and possible other modes.
TEST_F(SamplerTest, HybridGpusReportSharingModes) {
  device::SimGpus gpus(
      {{gpu::Catalogue::Builtin().FindByName("H100-80GB"), "NVIDIA H100 80GB HBM3", false},
       {gpu::Catalogue::Builtin().FindByName("H100-80GB"), "NVIDIA H100 80GB HBM3", false},
       {gpu::Catalogue::Builtin().FindByName("H100-80GB"), "NVIDIA H100 80GB HBM3", true},
       {gpu::Catalogue::Builtin().FindByName("H100-80GB"), "NVIDIA H100 80GB HBM3", false}},
      "hybrid");
  device::MpsGpus shares(gpus);
  device::PlainGpus plain(shares);
  plain.GiveWhole(true);
  ASSERT_TRUE(plain.ListGpus().ok());
  const std::string slice = plain.Create(0, "shared", 2)->uuid;
  ASSERT_TRUE(plain.Create(0, "shared", 6).ok());
  const std::string whole = plain.Create(1, "gpu", 0)->uuid;
  ASSERT_TRUE(plain.Create(2, "1g.10gb", 0).ok());
  kubelet_.Assign({"ml", "turn", "main", "nvidia.com/gpu.shared", slice});
  kubelet_.Assign({"ml", "all", "main", "nvidia.com/gpu", whole});
  const NodeSample sample =
      TakeSample("gpu-1", plain, kubelet_, gpu::Catalogue::Builtin(), nullptr, {4}).value();
  const Json layout = Records(sample)[0];
  EXPECT_EQ(FindString(layout, "mode"), "hybrid");
  const JsonArray& reported = layout.at("gpus").as_array();
  const char* modes[] = {"time slices", "whole", "MIG", ""};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(FindString(reported[i], "sharing_mode"), modes[i]) << i;
    EXPECT_EQ(FindString(reported[i], "way"), modes[i]) << i;
  }
  EXPECT_EQ(reported[0].at("switches"), Json(JsonArray{"MIG", "MPS", "whole"}));
  EXPECT_EQ(reported[3].at("switches").as_array().size(), 4u);
  const Json turn{{"namespace", "ml"}, {"pod", "turn"}, {"container", "main"}};
  const JsonArray& turns = reported[0].at("instances").as_array();
  ASSERT_EQ(turns.size(), 2u);
  EXPECT_EQ(reported[0].at("slots"), 8);
  EXPECT_EQ(turns[0].at("start"), 2);
  EXPECT_EQ(turns[0].at("size"), 2) << "the slots of its placement";
  EXPECT_EQ(turns[0].at("holders"), Json(JsonArray{turn}));
  EXPECT_TRUE(reported[0].at("holders").as_array().empty());
  EXPECT_EQ(reported[1].at("slots"), 0) << "it is not divided";
  EXPECT_TRUE(reported[1].at("instances").as_array().empty());
  EXPECT_EQ(reported[1].at("holders").as_array().size(), 1u);
  // A server parses the record and returns it unchanged.
  Json body = layout;
  const auto record = ReadRecord(std::move(body));
  ASSERT_TRUE(record.ok()) << record.status().ToString();
  const auto& read = std::get<Layout>(record->what);
  EXPECT_TRUE(read.gpus[0].InTurns());
  EXPECT_FALSE(read.gpus[0].SharedByMps());
  EXPECT_EQ(LayoutRecord(record->at, read).at("gpus"), layout.at("gpus"));
}

// If the agent may reset the GPU, or waits for a reboot, it reports MIG as possible to the planner.
TEST_F(SamplerTest, GpuThatNeedsResetReportsMigIfAgentResetsIt) {
  device::SimGpus gpus(
      {{gpu::Catalogue::Builtin().FindByName("A100-40GB"), "NVIDIA A100-SXM4-40GB", false}}, "a");
  device::PlainGpus plain(gpus);
  plain.GiveWhole(true);
  const auto switches = [&](bool resets) {
    const NodeSample sample =
        TakeSample("gpu-1", plain, kubelet_, gpu::Catalogue::Builtin(), nullptr, {4, resets})
            .value();
    return sample.gpus[0].switches;
  };
  const std::vector<std::string> stays{"time slices", "whole"};
  EXPECT_EQ(switches(false), stays);
  EXPECT_EQ(switches(true), (std::vector<std::string>{"MIG", "time slices", "whole"}));
  EXPECT_FALSE(gpus.EnableMig(0).ok());
  EXPECT_EQ(switches(true), stays) << "a mode change waits for a reboot";
}

// Applies if the agent creates the time slices, whether or not its MIG mode can be enabled.
TEST_F(SamplerTest, TimeSlicesOfSmallGpuUseItsSlots) {
  device::SimGpus gpus({{gpu::Catalogue::Builtin().FindByName("A30"), "NVIDIA A30", false}}, "a30");
  device::PlainGpus plain(gpus);
  plain.GiveWhole(true);
  ASSERT_TRUE(plain.ListGpus().ok());
  for (uint8_t start = 0; start < 4; ++start) ASSERT_TRUE(plain.Create(0, "shared", start).ok());
  const NodeSample sample =
      TakeSample("gpu-1", plain, kubelet_, gpu::Catalogue::Builtin(), nullptr, {4}).value();
  ASSERT_EQ(sample.gpus[0].instances.size(), 4u);
  EXPECT_EQ(sample.gpus[0].slots, 4);
  EXPECT_EQ(sample.gpus[0].instances[3].instance.start, 3);
  EXPECT_EQ(sample.gpus[0].instances[3].instance.size, 1);
}

// One GPU whose instances may be divided.
struct SimulatedParts {
  SimulatedParts() {
    parts.GiveWhole(true);
    EXPECT_TRUE(parts.ListGpus().ok());
  }
  device::SimGpus gpus{{{gpu::Catalogue::Builtin().FindByName("A100-40GB"), ""}}, "divided"};
  device::MigParts parts{gpus, gpu::Catalogue::Builtin(), {{"3g.20gb", 2}}};
};

TEST_F(SamplerTest, PartsReplaceTheirInstance) {
  SimulatedParts one;
  const auto made = one.parts.Create(0, "3g.20gb.mps2", 5);
  ASSERT_TRUE(made.ok());
  kubelet_.Assign({"ml", "serve", "main", "nvidia.com/mig-3g.20gb.mps2", made->uuid});
  const auto instances_of = [&](device::Backend& backend) {
    const NodeSample sample =
        TakeSample("gpu-1", backend, kubelet_, gpu::Catalogue::Builtin(), nullptr).value();
    return Records(sample)[0].at("gpus").as_array()[0].at("instances").as_array();
  };
  const Json holder{{"namespace", "ml"}, {"pod", "serve"}, {"container", "main"}};
  const JsonArray parts = instances_of(one.parts);
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_EQ(FindString(parts[0], "instance"), made->uuid);
  EXPECT_EQ(FindString(parts[0], "profile"), "3g.20gb.mps2");
  EXPECT_EQ(parts[0].at("start"), 5);
  EXPECT_EQ(parts[0].at("size"), 2);
  EXPECT_EQ(parts[0].at("id"), one.gpus.Truth(0)[0].id) << "as the driver counts them";
  EXPECT_EQ(parts[0].at("holders"), Json(JsonArray{holder}));
  // Reported by a backend that does not know the division.
  const JsonArray whole = instances_of(one.gpus);
  ASSERT_EQ(whole.size(), 1u);
  EXPECT_EQ(FindString(whole[0], "profile"), "3g.20gb");
  EXPECT_EQ(whole[0].at("holders"), Json(JsonArray{holder}));
}

TEST_F(SamplerTest, PrintsTable) {
  NodeSample sample = Take();
  sample.gpus[0].readings.metrics["utilization"] = 0.5;
  sample.gpus[0].readings.processes = {{7, "python3", 900, held_.id}};
  sample.gpus[0].instances[1].readings = device::NothingMeasured("not measurable here");
  const std::string text = SampleText(sample);
  EXPECT_THAT(text, HasSubstr("3g.20gb@4"));
  EXPECT_THAT(text, HasSubstr("50 %"));
  EXPECT_THAT(text, HasSubstr("ml/train (main)"));
  EXPECT_THAT(text, HasSubstr("900 MiB"));
  EXPECT_THAT(Split(text, '\n'), Contains("unmeasured: memory_total (1x), memory_used (1x), "
                                          "utilization (1x): not measurable here"));
  kubelet_.down = true;
  EXPECT_THAT(Split(SampleText(Take()), '\n'),
              Contains("holders of GPUs are not known: the kubelet does not answer"));
  const Json json = SampleJson(sample);
  EXPECT_EQ(FindString(json.at("gpus").as_array()[0].at("instances").as_array()[0], "profile"),
            "3g.20gb");
}

}  // namespace
}  // namespace nos::telemetry
