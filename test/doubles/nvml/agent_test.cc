// The agent and its actuator over the real NVML backend over doubled GPUs.
#include "agent/node_agent.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <memory>

#include "base/random.h"
#include "device/nvml_backend.h"
#include "kube/testing/fake_api.h"
#include "kubelet/testing/fake_kubelet.h"
#include "node.h"
#include "reconcile/runner.h"
#include "reconcile/testing/scene.h"

namespace nos::agent {
namespace {

using device::NvmlBackend;
using device::NvmlLibrary;
using nvml_double::NvmlNode;
using std::chrono::seconds;
using ::testing::ElementsAre;
using Names = std::vector<std::string>;

constexpr const char* kNode = "gpu-1";

class NvmlAgentTest : public ::testing::Test {
 protected:
  NvmlAgentTest() {
    api_.Put({{"kind", "Node"},
              {"metadata",
               {{"name", kNode},
                {"labels",
                 {{"nos.nebuly.com/gpu-partitioning", "mig"},
                  {"nvidia.com/gpu.product", "NVIDIA-A100-SXM4-40GB"},
                  {"nvidia.com/gpu.count", "2"}}}}},
              {"status", {{"allocatable", {{"cpu", "96"}}}}}});
    kubelet_.on_offer = [this] { ReportAllocatable(); };
    Restart();
  }
  // Simulates a new process without state.
  void Restart() {
    runner_.reset();
    agent_.reset();
    backend_ = std::make_unique<NvmlBackend>(*library_, gpu::Catalogue::Builtin());
    agent_ = std::make_unique<Agent>(AgentConfig{}, kNode, gpu::Catalogue::Builtin(), *backend_,
                                     kubelet_, kubelet_);
    runner_ = std::make_unique<reconcile::Runner>(*agent_, api_, reconcile::ForNode(kNode));
  }
  void ReportAllocatable() {
    std::map<std::string, int> counts;
    for (const gpu::Profile& profile : model_.profiles()) counts[profile.resource_name] = 0;
    for (const auto& device : kubelet_.offer()) ++counts[device.resource];
    reconcile::testing::PutAllocatable(api_, kNode, counts);
  }
  void Run(Duration time = seconds(60)) {
    EXPECT_TRUE(reconcile::testing::RunFor(*runner_, clock_, time))
        << "the agent does not come to rest";
  }
  void Plan(const std::string& id, const std::map<int, std::string>& layouts) {
    Json node = *api_.Find("nodes", kNode);
    JsonObject& annotations = MakeObject(node, "metadata", "annotations");
    for (const auto& [gpu, layout] : layouts) {
      annotations["nos.nebuly.com/spec-layout-" + std::to_string(gpu)] = layout;
    }
    annotations["nos.nebuly.com/spec-partitioning-plan"] = id;
    api_.Put(node);
  }
  std::string Annotation(const std::string& key) {
    return reconcile::testing::NodeAnnotation(api_, kNode, key);
  }
  std::string Events() { return reconcile::testing::EventsOf(api_); }
  std::vector<std::string> Messages(std::string_view reason) {
    std::vector<std::string> messages;
    for (const Json& event : api_.All("events")) {
      if (FindString(event, "reason") == reason) {
        messages.emplace_back(FindString(event, "message"));
      }
    }
    return messages;
  }
  void Bind(const std::string& name, const std::string& profile) {
    reconcile::testing::PutBoundPod(api_, name, kNode, profile, "Running");
  }

  const gpu::Model& model_ = *gpu::Catalogue::Builtin().FindByName("A100-40GB");
  NvmlNode node_{JsonObject{
      {"node", kNode},
      {"gpus", JsonArray{{{"model", "A100-40GB"}, {"product", "NVIDIA A100-SXM4-40GB"}},
                         {{"model", "A100-40GB"}, {"product", "NVIDIA A100-SXM4-40GB"}}}}}};
  std::unique_ptr<NvmlLibrary> library_ = NvmlLibrary::Open(NvmlNode::library()).value();
  ManualClock clock_{Time(seconds(1'000'000))};
  kube::FakeApi api_;
  kubelet::FakeKubelet kubelet_;
  std::unique_ptr<NvmlBackend> backend_;
  std::unique_ptr<Agent> agent_;
  std::unique_ptr<reconcile::Runner> runner_;
};

TEST_F(NvmlAgentTest, AppliesPlanOnDriver) {
  Plan("7", {{0, "3g.20gb@4,1g.5gb@0,1g.5gb@1,2g.10gb@2"}, {1, "7g.40gb@0"}});
  Run();
  EXPECT_EQ(node_.Layout(0), (Names{"1g.5gb@0", "1g.5gb@1", "2g.10gb@2", "3g.20gb@4"}));
  EXPECT_EQ(node_.Layout(1), Names{"7g.40gb@0"});
  EXPECT_EQ(Annotation("status-partitioning-plan"), "7");
  EXPECT_EQ(kubelet_.offer().size(), 5u);
  Plan("8", {{0, "7g.40gb@0"}});
  Run();
  EXPECT_EQ(node_.Layout(0), Names{"7g.40gb@0"});
}

TEST_F(NvmlAgentTest, KeepsHeldInstanceAcrossRestart) {
  Plan("7", {{0, "1g.5gb@5,1g.5gb@6"}});
  Run();
  ASSERT_TRUE(kubelet_.Admit("ml", "a", "nvidia.com/mig-1g.5gb").ok());
  Bind("a", "1g.5gb");
  Restart();
  Plan("8", {{0, "3g.20gb@4,2g.10gb@0"}});
  Run();
  ASSERT_EQ(node_.Layout(0).size(), 2u) << Events();
  EXPECT_EQ(node_.Layout(0)[0], "2g.10gb@0");
  EXPECT_EQ(node_.Layout(0)[1].substr(0, 6), "1g.5gb");
  EXPECT_NE(Annotation("partitioning-result").find("InUse"), std::string::npos);
  kubelet_.Remove("ml", "a");
  api_.Remove("pods", "ml/a");
  Run();
  EXPECT_EQ(node_.Layout(0), (Names{"2g.10gb@0", "3g.20gb@4"})) << Events();
}

TEST_F(NvmlAgentTest, RepairsIncompleteInstances) {
  node_.EditGpu(0, [](JsonObject& gpu) {
    gpu["instances"] = JsonArray{
        {{"id", 3}, {"profile", "4g.20gb"}, {"start", 0}, {"computeInstances", JsonArray{}}}};
  });
  Run();
  EXPECT_TRUE(node_.Layout(0).empty());
}

TEST_F(NvmlAgentTest, ReportsLostGpuAndServesOthers) {
  Run();
  node_.EditGpu(1, [](JsonObject& gpu) { gpu["lost"] = true; });
  Plan("7", {{0, "7g.40gb@0"}, {1, "7g.40gb@0"}});
  Run();
  EXPECT_EQ(node_.Layout(0), Names{"7g.40gb@0"});
  EXPECT_THAT(Messages("GpuNotUsable"),
              ElementsAre("Failed to read GPU 1: nvmlDeviceGetHandleByIndex_v2: "
                          "NVML_ERROR_GPU_IS_LOST: the GPU has fallen off the bus: drain the node "
                          "and reboot it; replace the GPU if it recurs"));
  node_.Reboot();
  Run();
  EXPECT_EQ(node_.Layout(0), Names{"7g.40gb@0"});
  EXPECT_EQ(node_.Layout(1), Names{"7g.40gb@0"}) << Events();
}

TEST_F(NvmlAgentTest, RetriesWhileMonitorHoldsInstance) {
  Plan("7", {{0, "1g.5gb@0"}});
  Run();
  node_.Fault({{"call", "nvmlComputeInstanceDestroy"}, {"error", 19}, {"times", 3}});
  Plan("8", {{0, "7g.40gb@0"}});
  Run(seconds(120));
  EXPECT_EQ(node_.Layout(0), Names{"7g.40gb@0"});
  EXPECT_NE(Events().find("NVML_ERROR_IN_USE"), std::string::npos) << Events();
}

// Hopper changes its MIG mode without a reset.
TEST_F(NvmlAgentTest, EnablesMigWhenMonitorLetsGoOfGpu) {
  node_.EditGpu(0, [](JsonObject& gpu) {
    gpu = JsonObject{{"model", "H100-80GB"},
                     {"product", "NVIDIA H100 80GB HBM3"},
                     {"mig", false},
                     {"inUse", true}};
  });
  Run();
  Plan("7", {{0, "1g.10gb@0"}});
  Run();
  EXPECT_TRUE(node_.Layout(0).empty());
  EXPECT_NE(Events().find("NVML_ERROR_IN_USE"), std::string::npos) << Events();
  node_.EditGpu(0, [](JsonObject& gpu) { gpu["inUse"] = false; });
  Run(seconds(120));
  EXPECT_EQ(node_.Layout(0), Names{"1g.10gb@0"}) << Events();
}

// Random plans, faults and restarts: devices held by pods are never destroyed, and the last plan is
// finally applied.
TEST_F(NvmlAgentTest, ConvergesFromRandomStatesWithFaults) {
  const char* const calls[] = {"nvmlDeviceCreateGpuInstanceWithPlacement",
                               "nvmlGpuInstanceCreateComputeInstance", "nvmlGpuInstanceDestroy",
                               "nvmlComputeInstanceDestroy", "nvmlDeviceGetGpuInstances"};
  const char* const effects[] = {"fail", "late", "lie"};
  const char* const layouts[] = {"7g.40gb@0", "4g.20gb@0,3g.20gb@4", "1g.5gb@6,2g.10gb@4,3g.20gb@0",
                                 "1g.5gb@0,1g.5gb@1,1g.5gb@2,1g.5gb@3,1g.5gb@4", "1g.10gb@6"};
  Random random(20261120);
  Plan("0", {{1, "1g.5gb@3,3g.20gb@4"}});
  Run();
  ASSERT_TRUE(kubelet_.Admit("ml", "a", "nvidia.com/mig-1g.5gb").ok());
  Bind("a", "1g.5gb");
  for (int round = 1; round <= 15; ++round) {
    for (uint64_t i = random.Below(3); i > 0; --i) {
      node_.Fault({{"call", calls[random.Below(5)]},
                   {"effect", effects[random.Below(3)]},
                   {"error", random.Chance(0.5) ? 19 : 999},
                   {"after", random.Below(4)},
                   {"times", 1 + random.Below(3)}});
    }
    Plan(std::to_string(round), {{0, layouts[random.Below(5)]}, {1, layouts[random.Below(5)]}});
    Run(seconds(random.Below(20)));
    if (random.Chance(0.3)) Restart();
    const Names kept = node_.Layout(1);
    ASSERT_NE(std::find(kept.begin(), kept.end(), "1g.5gb@3"), kept.end()) << "round " << round;
  }
  node_.ClearFaults();
  Plan("16", {{0, "4g.20gb@0,3g.20gb@4"}, {1, "3g.20gb@4,1g.5gb@3"}});
  Run(seconds(300));
  EXPECT_EQ(node_.Layout(0), (Names{"4g.20gb@0", "3g.20gb@4"})) << Events();
  EXPECT_EQ(node_.Layout(1), (Names{"1g.5gb@3", "3g.20gb@4"})) << Events();
  EXPECT_EQ(Annotation("status-partitioning-plan"), "16");
}

}  // namespace
}  // namespace nos::agent
