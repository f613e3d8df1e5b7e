// A hybrid node with A100s: the agent over the real backend, with doubles of the driver and
// nvidia-smi.
#include <gmock/gmock.h>

#include <memory>

#include "agent/node_agent.h"
#include "device/mps_gpus.h"
#include "device/nvml_backend.h"
#include "device/plain_gpus.h"
#include "kube/testing/fake_api.h"
#include "kubelet/testing/fake_kubelet.h"
#include "node.h"
#include "reconcile/plan_result.h"
#include "reconcile/runner.h"
#include "reconcile/testing/scene.h"

namespace nos::agent {
namespace {

using device::NvmlBackend;
using device::NvmlLibrary;
using nvml_double::NvmlNode;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

constexpr const char* kNode = "gpu-1";

class NvmlAgentResetTest : public ::testing::Test {
 protected:
  NvmlAgentResetTest() {
    api_.Put({{"kind", "Node"},
              {"metadata",
               {{"name", kNode}, {"labels", {{"nos.nebuly.com/gpu-partitioning", "hybrid"}}}}},
              {"status", {{"allocatable", {{"cpu", "96"}}}}}});
    kubelet_.on_offer = [this] {
      std::map<std::string, int> counts;
      for (const auto& device : kubelet_.offer()) ++counts[device.resource];
      reconcile::testing::PutAllocatable(api_, kNode, counts);
    };
    AgentExtras extras;
    extras.modes =
        AllSharingModes({.mps = true, .whole = true, .time_slices = 4, .resets = ResetRule::kGpu});
    agent_ = std::make_unique<Agent>(AgentConfig{}, kNode, gpu::Catalogue::Builtin(), plain_,
                                     kubelet_, kubelet_, extras);
    runner_ = std::make_unique<reconcile::Runner>(*agent_, api_, reconcile::ForNode(kNode));
  }

  void Run(Duration time = seconds(60)) {
    EXPECT_TRUE(reconcile::testing::RunFor(*runner_, clock_, time))
        << "the agent does not come to rest";
  }
  void Plan(const std::string& id, const std::string& layout) {
    Json node = *api_.Find("nodes", kNode);
    JsonObject& annotations = MakeObject(node, "metadata", "annotations");
    annotations["nos.nebuly.com/spec-layout-0"] = layout;
    annotations["nos.nebuly.com/spec-partitioning-plan"] = id;
    api_.Put(node);
  }
  std::string Annotation(const std::string& key) {
    return reconcile::testing::NodeAnnotation(api_, kNode, key);
  }

  NvmlNode node_{
      JsonObject{{"node", "n1"},
                 {"gpus", JsonArray{JsonObject{{"model", "A100-40GB"}, {"mig", false}},
                                    JsonObject{{"model", "A100-40GB"}, {"mig", false}}}}}};
  std::unique_ptr<NvmlLibrary> library_ = NvmlLibrary::Open(NvmlNode::library()).value();
  NvmlBackend nvml_{*library_, gpu::Catalogue::Builtin(), nullptr, {NvmlNode::nvidia_smi()}};
  device::MpsGpus shares_{nvml_};
  device::PlainGpus plain_{shares_};
  ManualClock clock_{Time(seconds(1'000'000))};
  kube::FakeApi api_;
  kubelet::FakeKubelet kubelet_;
  std::unique_ptr<Agent> agent_;
  std::unique_ptr<reconcile::Runner> runner_;
};

TEST_F(NvmlAgentResetTest, SwitchesGpuBetweenMigAndWhole) {
  Run();
  EXPECT_EQ(Annotation("status-model-0"), "A100-40GB+GPU+TIME-4");
  Plan("1", "3g.20gb@4,1g.5gb@0");
  Run();
  EXPECT_EQ(node_.Layout(0), (std::vector<std::string>{"1g.5gb@0", "3g.20gb@4"}));
  EXPECT_EQ(Annotation("status-partitioning-plan"), "1");
  Plan("2", "gpu@0");
  Run();
  EXPECT_EQ(Annotation("status-layout-0"), "gpu@0:free");
  EXPECT_THAT(Annotation("partitioning-result"), HasSubstr("applied"));
  EXPECT_TRUE(node_.Layout(1).empty());
}

TEST_F(NvmlAgentResetTest, KeepsModeWhileMonitorHoldsGpu) {
  node_.EditGpu(0, [](JsonObject& gpu) { gpu["inUse"] = true; });
  Run();
  Plan("1", "3g.20gb@4");
  Run(seconds(40));
  const auto result = reconcile::ReadPlanResult(Annotation("partitioning-result"));
  ASSERT_TRUE(result.ok()) << result.status().ToString();
  ASSERT_EQ(result->obstacles.size(), 1u);
  EXPECT_EQ(result->obstacles[0].code, "NotReset");
  EXPECT_THAT(
      result->obstacles[0].message,
      MatchesRegex("GPU 0 keeps its MIG mode for now: GPU 0: .*/nvidia-smi --gpu-reset -i "
                   "GPU-[-0-9a-f]+ failed \\(exit status 255\\): The following GPUs could not be "
                   "reset:   GPU GPU-[-0-9a-f]+: In use by another client  1 device is .*"));
  EXPECT_EQ(Annotation("status-model-0"), "GPU-40GB+GPU+TIME-4");
  node_.EditGpu(0, [](JsonObject& gpu) { gpu["inUse"] = false; });
  Run(seconds(120));
  EXPECT_EQ(node_.Layout(0), std::vector<std::string>{"3g.20gb@4"});
}

}  // namespace
}  // namespace nos::agent
