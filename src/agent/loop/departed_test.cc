// Pods that are deleted before they have ended: their containers may still run.
#include "agent/loop/use_fixture_test.h"

namespace nos::agent {
namespace {

// A pod with terminationGracePeriodSeconds 30 holds the second slice, another pod the first.
class AgentDepartedPodTest : public AgentUseTest {
 protected:
  AgentDepartedPodTest() {
    Hold("a", "mig-1g.5gb", second_.uuid);
    Hold("b", "mig-1g.5gb", first_.uuid);
    Run();
  }
  bool IsHealthy(const std::string& uuid) const {
    return std::ranges::any_of(kubelet_.offer(), [&](const auto& device) {
      return device.device_id == uuid && device.healthy;
    });
  }
  void ExpectHeld() {
    EXPECT_EQ(destroyed_, 0);
    EXPECT_EQ(Annotation("status-layout-0"), "1g.5gb@0:used,1g.5gb@1:used");
    EXPECT_FALSE(IsHealthy(second_.uuid)) << "the kubelet would give it to the next pod";
    EXPECT_TRUE(IsHealthy(first_.uuid));
    EXPECT_EQ(Allocatable("1g.5gb"), 1);
  }
  void ExpectFree() {
    EXPECT_EQ(Annotation("status-layout-0"), "1g.5gb@0:used,1g.5gb@1:free");
    EXPECT_TRUE(IsHealthy(second_.uuid));
    EXPECT_EQ(Allocatable("1g.5gb"), 2);
  }
};

TEST_F(AgentDepartedPodTest, HoldsSliceForGracePeriod) {
  DeleteByForce("a");
  Run(seconds(1));
  ExpectHeld();
  Plan("7", {{0, "1g.5gb@0"}});
  Run(seconds(37));
  EXPECT_EQ(destroyed_, 0);
  Run(seconds(5));
  EXPECT_EQ(destroyed_, 1);
  EXPECT_EQ(Annotation("status-partitioning-plan"), "7");
}

TEST_F(AgentDepartedPodTest, PodThatHadEndedHoldsNothing) {
  End("a");
  Run(milliseconds(100));
  ExpectFree();
}

TEST_F(AgentDepartedPodTest, HoldsSliceWhileProcessesRunAndNoLonger) {
  cgroups_.pods = std::map<std::string, bool>{{"a-uid", true}};
  DeleteByForce("a");
  Run(seconds(300));
  ExpectHeld();
  cgroups_.pods = std::map<std::string, bool>{{"other", true}};
  Run(seconds(2));
  ExpectFree();
}

TEST_F(AgentDepartedPodTest, PodWithoutCgroupMayStillBeAboutToStart) {
  cgroups_.pods = std::map<std::string, bool>();
  DeleteByForce("a");
  Run(seconds(1));
  ExpectHeld();
  Run(seconds(3));
  ExpectFree();
}

TEST_F(AgentDepartedPodTest, ForgottenCgroupHoldsSliceForGracePeriodOnly) {
  cgroups_.pods = std::map<std::string, bool>{{"a-uid", false}};
  DeleteByForce("a");
  Run(seconds(38));
  ExpectHeld();
  Run(seconds(5));
  ExpectFree();
}

TEST_F(AgentDepartedPodTest, NextPodOfTheSameNameGetsAnotherSlice) {
  DeleteByForce("a");
  End("b");
  Bind("a", "1g.5gb");
  Apply("7", {{0, "1g.5gb@1"}}, seconds(20));
  EXPECT_EQ(destroyed_, 0) << "what the new pod is about to get";
  EXPECT_FALSE(IsHealthy(second_.uuid));
}

TEST_F(AgentDepartedPodTest, GracePeriodDoesNotPassWithoutKubelet) {
  DeleteByForce("a");
  Run(seconds(1));
  kubelet_.down = true;
  Run(seconds(100));
  kubelet_.down = false;
  Run(seconds(35));
  ExpectHeld();
  Run(seconds(60));
  ExpectFree();
}

TEST_F(AgentDepartedPodTest, RestartedAgentHoldsSlice) {
  DeleteByForce("a");
  Run(seconds(1));
  Restart();
  Run(seconds(38));
  ExpectHeld();
  Run(seconds(3));
  ExpectFree();
}

// With a name that a controller gives to the next pod too.
TEST_F(AgentDepartedPodTest, RestartedAgentHoldsSliceOfFormerPodOfTheSameName) {
  DeleteByForce("a");
  Run(seconds(1));
  Bind("a", "1g.5gb");
  Run(seconds(1));
  Restart();
  Run(seconds(20));
  ExpectHeld();
}

TEST_F(AgentDepartedPodTest, KubeletHasNotEndedPodsOfLostNodes) {
  Json pod = *api_.Find("pods", "ml/a");
  MakeObject(pod, "status")["phase"] = "Failed";
  pod.at("status")
      .at("conditions")
      .get_array()
      .push_back(JsonObject{
          {"type", "DisruptionTarget"}, {"status", "True"}, {"reason", "DeletionByPodGC"}});
  api_.Put(pod);
  kubelet_.Remove("ml", "a");
  Run(seconds(1));
  ExpectHeld();
  DeleteByForce("a");
  Run(seconds(20));
  ExpectHeld();
}

TEST_F(AgentDepartedPodTest, PodThatHasEndedHoldsSliceWhileProcessesRun) {
  cgroups_.pods = std::map<std::string, bool>{{"a-uid", true}};
  End("a");
  Run(seconds(60));
  ExpectHeld();
  cgroups_.pods = std::map<std::string, bool>{{"a-uid", false}};
  Run(seconds(2));
  ExpectFree();
}

TEST_F(AgentDepartedPodTest, CgroupOfStaticPodHasHashOfItsManifest) {
  Json pod = *api_.Find("pods", "ml/a");
  MakeObject(pod, "metadata", "annotations")["kubernetes.io/config.mirror"] = "hash";
  api_.Put(pod);
  Run(seconds(1));
  cgroups_.pods = std::map<std::string, bool>{{"hash", true}};
  DeleteByForce("a");
  Run(seconds(60));
  ExpectHeld();
}

// The kubelet does not list devices of init containers, so it may be any that is free.
TEST_F(AgentUseTest, SliceOfInitContainerStaysWhileItRunsAfterDeletionByForce) {
  AnInitContainerRuns();
  const std::string held = kubelet_.Holds(first_.uuid) ? first_.uuid : second_.uuid;
  cgroups_.pods = std::map<std::string, bool>{{"u1", true}};
  DeleteByForce("a");
  Run(seconds(2));
  for (const auto& device : kubelet_.offer()) {
    EXPECT_FALSE(device.device_id == held && device.healthy) << "the next pod would get it";
  }
  Plan("7", {{0, "7g.40gb@0"}});
  Run(seconds(60));
  EXPECT_EQ(destroyed_, 0);
  cgroups_.pods = std::map<std::string, bool>();
  Run(seconds(10));
  EXPECT_EQ(destroyed_, 2);
}

// The agent's watch was interrupted, and the pod was gone when it went on.
TEST_F(AgentDepartedPodTest, HoldsSliceOfPodThatOnlyTheKubeletHasNamed) {
  End("a");
  Run(seconds(1));
  kubelet_.Assign({"ml", "unseen", "c", kSlice, second_.uuid});
  Run(seconds(30));
  ASSERT_EQ(Annotation("status-layout-0"), "1g.5gb@0:used,1g.5gb@1:used");
  kubelet_.Remove("ml", "unseen");
  cgroups_.pods = std::map<std::string, bool>{{"b-uid", true}, {"unseen-uid", true}};
  Run(seconds(60));
  ExpectHeld();
  cgroups_.pods = std::map<std::string, bool>{{"b-uid", true}};
  Run(seconds(2));
  ExpectFree();
}

// NVIDIA's plugin does not know that the device is unhealthy.
TEST_F(AgentDepartedPodTest, PluginThatReadsDevicesIsNotDisturbed) {
  PluginThatCannotWithdraw();
  DeleteByForce("a");
  Run(seconds(20));
  EXPECT_EQ(Annotation("status-layout-0"), "1g.5gb@0:used,1g.5gb@1:used");
  EXPECT_TRUE(IsHealthy(second_.uuid));
}

TEST_F(AgentDepartedPodTest, RestartedAgentLooksForCgroupOfUnknownPod) {
  api_.Put({{"kind", "Pod"},
            {"metadata",
             {{"namespace", "kube-system"},
              {"name", "proxy"},
              {"uid", "mirror-uid"},
              {"annotations", {{"kubernetes.io/config.mirror", "hash"}}}}},
            {"spec", {{"nodeName", kNode}}}});
  cgroups_.pods = std::map<std::string, bool>{{"a-uid", true}, {"hash", true}};
  DeleteByForce("a");
  Run(seconds(1));
  Restart();
  Run(seconds(100));
  ExpectHeld();
  cgroups_.pods = std::map<std::string, bool>{{"hash", true}};
  Run(seconds(2));
  ExpectFree();
}

TEST_F(AgentDepartedPodTest, ForeignCgroupDoesNotHoldSliceForEver) {
  cgroups_.pods = std::map<std::string, bool>{{"of-another-kubelet", true}};
  DeleteByForce("a");
  Run(seconds(1));
  Restart();
  Run(std::chrono::minutes(9));
  ExpectHeld();
  Run(std::chrono::minutes(2));
  ExpectFree();
}

}  // namespace
}  // namespace nos::agent
