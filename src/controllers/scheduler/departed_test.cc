// GPUs of pods whose objects vanished before a kubelet reported that they ended.
#include <string>

#include "controllers/scheduler/fixture_test.h"

namespace nos::controllers {
namespace {

class DepartedPodsTest : public SchedulerFixture {
 protected:
  void SetUp() override {
    Node({});
    Pod("old");
    Run();
    ASSERT_EQ(NodeOf("old"), "n");
  }
  // A node with one whole GPU, which no agent reports.
  void Node(const JsonArray& taints) { Node("n", taints); }
  void Node(const std::string& name, const JsonArray& taints) {
    api_.Put(
        {{"kind", "Node"},
         {"metadata", {{"name", name}}},
         {"spec", {{"taints", taints}}},
         {"status", {{"allocatable", {{"cpu", "9"}, {"pods", "110"}, {"nvidia.com/gpu", "1"}}}}}});
  }
  void Pod(const std::string& name) { PutPod(name, "nvidia.com/gpu", "1", 0); }
};

TEST_F(DepartedPodsTest, GpuOfEndedPodIsFreeAtOnce) {
  api_.Remove("pods", "ml/old");
  Pod("new");
  Run();
  EXPECT_EQ(NodeOf("new"), "n");
}

TEST_F(DepartedPodsTest, GpuOfVanishedPodWaitsForItsGracePeriod) {
  api_.RemoveByForce("ml/old");
  Pod("new");
  RunInSteps(seconds(30));
  EXPECT_EQ(NodeOf("new"), "");
  RunInSteps(seconds(12));
  EXPECT_EQ(NodeOf("new"), "n");
}

TEST_F(DepartedPodsTest, PodOfSameNameWaitsToo) {
  api_.RemoveByForce("ml/old");
  Pod("old");
  RunInSteps(seconds(30));
  EXPECT_EQ(NodeOf("old"), "");
  RunInSteps(seconds(12));
  EXPECT_EQ(NodeOf("old"), "n");
}

TEST_F(DepartedPodsTest, GracePeriodBeginsWhenLostNodeReturns) {
  Node(JsonArray{{{"key", "node.kubernetes.io/unreachable"}, {"effect", "NoSchedule"}}});
  Run();
  api_.RemoveByForce("ml/old");
  RunInSteps(std::chrono::minutes(10));
  Node({});
  Pod("new");
  RunInSteps(seconds(30));
  EXPECT_EQ(NodeOf("new"), "");
  RunInSteps(seconds(12));
  EXPECT_EQ(NodeOf("new"), "n");
}

// Both may run elsewhere at once, and wait for the device when the node returns.
TEST_F(DepartedPodsTest, AbsentNodeKeepsItsDevicesButNoQuota) {
  api_.Put({{"apiVersion", "nos.nebuly.com/v1alpha1"},
            {"kind", "ElasticQuota"},
            {"metadata", {{"namespace", "ml"}, {"name", "quota"}, {"uid", "quota"}}},
            {"spec", {{"min", {{"nvidia.com/gpu", "1"}}}, {"max", {{"nvidia.com/gpu", "1"}}}}}});
  Run();
  api_.RemoveByForce("ml/old");
  Run();
  Pod("new");
  RunInSteps(seconds(5));
  ASSERT_EQ(NodeOf("new"), "");
  api_.Remove("nodes", "n");
  Node("other", {});
  RunInSteps(seconds(5));
  EXPECT_EQ(NodeOf("new"), "other");

  api_.Remove("pods", "ml/new");
  api_.Remove("nodes", "other");
  Node({});
  Pod("next");
  RunInSteps(seconds(30));
  EXPECT_EQ(NodeOf("next"), "");
  RunInSteps(seconds(12));
  EXPECT_EQ(NodeOf("next"), "n");
}

}  // namespace
}  // namespace nos::controllers
