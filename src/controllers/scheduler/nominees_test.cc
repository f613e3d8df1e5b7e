// Pods beside other pods that are nominated to a node.
#include <optional>
#include <string>

#include "controllers/scheduler/fixture_test.h"

namespace nos::controllers {
namespace {

class SchedulerNomineesTest : public SchedulerFixture {
 protected:
  void Node(const std::string& name, const std::string& cpu) {
    api_.Put({{"kind", "Node"},
              {"metadata", {{"name", name}, {"labels", {{"name", name}}}}},
              {"status", {{"allocatable", {{"cpu", cpu}, {"pods", "110"}}}}}});
  }
  // A pod for this node only.
  void PodFor(const std::string& node, const std::string& name, const std::string& cpu,
              int priority) {
    PutPod(name, "cpu", cpu, priority);
    Select(name, "name", node);
  }
  void Select(const std::string& name, const std::string& label, const std::string& value) {
    ChangePod(name, [&](Json& pod) {
      MakeObject(pod, "spec")["nodeSelector"] = JsonObject{{label, value}};
    });
  }
  void Label(const std::string& name, const std::string& label, const std::string& value) {
    Json node = *api_.Find("nodes", name);
    MakeObject(node, "metadata", "labels")[label] = value;
    api_.Put(node);
  }
};

TEST_F(SchedulerNomineesTest, RetriesPodWhenBlockingNominationEnds) {
  Node("a", "4");
  Node("b", "2");
  PodFor("b", "low", "1", 0);
  Run();
  ASSERT_EQ(NodeOf("low"), "b");
  LetPodsEndSlowly();
  PodFor("b", "high", "2", 9);
  Run();
  ASSERT_EQ(FindString(*api_.Find("pods", "ml/high"), "status", "nominatedNodeName"), "b");
  PodFor("b", "mid", "1", 5);
  Run();
  EXPECT_EQ(NodeOf("mid"), "") << "there is room, which was promised";
  api_.Remove("pods", "ml/high");
  Run();
  EXPECT_EQ(NodeOf("mid"), "b");
}

// "high" is nominated to "a", where "low" would fit beside the terminating pod.
class PromisedElsewhereTest : public SchedulerNomineesTest {
 protected:
  void Promise(const std::string& cpu) {
    Label("a", "pool", "x");
    PutPod("ending", "cpu", "60", 0);
    BindElsewhere("ending", "a");
    LetPodsEndSlowly();
    PutPod("high", "cpu", cpu, 9);
  }
  void LowWaits() {
    Run();
    ASSERT_EQ(Nominee("high"), "a");
    PodFor("a", "low", "30", 0);
    Run();
    ASSERT_EQ(NodeOf("low"), "");
  }
};

TEST_F(PromisedElsewhereTest, BindingElsewhereEndsNomination) {
  Node("a", "96");
  Node("b", "1");
  Promise("60");
  LowWaits();
  BindElsewhere("high", "b");
  Run();
  EXPECT_EQ(NodeOf("low"), "a");
}

TEST_F(PromisedElsewhereTest, PartitioningElsewhereEndsNomination) {
  GpuNode("a", 1);
  Label("a", "name", "a");
  GpuNode("b", 1);
  Promise("60");
  SetLimit("high", "nvidia.com/mig-7g.40gb", "1");
  Select("high", "pool", "x");
  LowWaits();
  Label("b", "pool", "x");
  Run();
  ASSERT_EQ(Spec("b"), "7g.40gb@0");
  EXPECT_EQ(NodeOf("low"), "a");
}

// "leader" has evicted a slow victim on n1. "helper" must be near "leader" and fits nowhere before
// it runs.
TEST_F(SchedulerNomineesTest, EvictsNothingForPodThatNeedsNominatedNeighbour) {
  for (int i = 1; i <= 5; ++i) {
    const std::string name = "n" + std::to_string(i), low = "low" + std::to_string(i);
    const std::string cpu = i == 1 ? "2" : "1";  // only n1 is large enough for the leader
    Node(name, cpu);
    Label(name, "zone", "z");
    PutPod(low, "cpu", cpu, 0);
    BindElsewhere(low, name);
  }
  Run();
  LetPodsEndSlowly();
  PutPod("leader", "cpu", "2", 9, {{"app", "leader"}});
  Run();
  ASSERT_EQ(Nominee("leader"), "n1");
  PutPod("helper", "cpu", "1", 9);
  ChangePod("helper", [&](Json& pod) {
    MakeObject(pod, "spec", "affinity",
               "podAffinity")["requiredDuringSchedulingIgnoredDuringExecution"] = JsonArray{
        {{"topologyKey", "zone"}, {"labelSelector", {{"matchLabels", {{"app", "leader"}}}}}}};
  });
  for (int round = 0; round < 6; ++round) {
    Run();
    for (int i = 2; i <= 5; ++i) {
      EXPECT_FALSE(IsEnding("low" + std::to_string(i))) << "low" << i << " in round " << round;
    }
    clock_.Advance(seconds(15));
  }
}

// A pod that never preempts is nominated to node "n", where slices are to be created for it. They
// turn out to be in use.
class VainPromiseTest : public SchedulerNomineesTest {
 protected:
  void PromiseSlices() {
    GpuNode("n", 1);
    PutPod("p", "cpu", "60", 0);
    SetLimit("p", "nvidia.com/mig-7g.40gb", "1");
    ChangePod("p", [](Json& pod) { MakeObject(pod, "spec")["preemptionPolicy"] = "Never"; });
    Run();
    ASSERT_EQ(Spec("n"), "7g.40gb@0");
    ASSERT_EQ(Nominee("p"), "n");
  }
  void SomebodyHasThem() {
    Report("n", "1g.5gb@0:used");
    Run();
  }
  void OtherGetsItsPlace() {
    PutPod("other", "cpu", "60", 0);
    for (int i = 0; i < 30; ++i) {
      Run();
      clock_.Advance(std::chrono::minutes(1));
    }
    EXPECT_EQ(NodeOf("other"), "n") << Why("other");
    EXPECT_EQ(Nominee("p"), "") << Why("p");
  }
};

TEST_F(VainPromiseTest, NextLeaderDropsUselessNomination) {
  PromiseSlices();
  Restart();
  SomebodyHasThem();
  OtherGetsItsPlace();
}

TEST_F(VainPromiseTest, ProfileWithoutPreemptionDropsUselessNomination) {
  PromiseSlices();
  UseProfiles({{"default-scheduler", framework_.get(), std::nullopt}});
  SomebodyHasThem();
  OtherGetsItsPlace();
}

TEST_F(VainPromiseTest, GangDropsUselessNomination) {
  Group("g", 2);
  CpuNode("m", "1");
  PutPod("q", "cpu", "1", 0, {{"scheduling.x-k8s.io/pod-group", "g"}});
  GpuNode("n", 1);
  PutPod("p", "cpu", "60", 0, {{"scheduling.x-k8s.io/pod-group", "g"}});
  for (const char* name : {"p", "q"}) {
    ChangePod(name, [](Json& pod) { MakeObject(pod, "spec")["preemptionPolicy"] = "Never"; });
  }
  SetLimit("p", "nvidia.com/mig-7g.40gb", "1");
  Run();
  ASSERT_EQ(Nominee("p"), "n");
  Restart();
  SomebodyHasThem();
  OtherGetsItsPlace();
}

TEST_F(VainPromiseTest, RetriesLostRemovalOfNomination) {
  PromiseSlices();
  int lost = 0;
  api_.intercept = [&](const kube::ApiRequest& request) {
    std::optional<Result<kube::ApiResponse>> answer;
    const bool takes_back = request.method == "PATCH" && request.path.ends_with("/p/status") &&
                            Find(request.body, "status", "nominatedNodeName") != nullptr;
    if (takes_back && lost++ == 0) {
      answer = Result<kube::ApiResponse>(Status(Code::kUnavailable, "connection reset"));
    }
    return answer;
  };
  SomebodyHasThem();
  OtherGetsItsPlace();
  EXPECT_GE(lost, 1);
}

TEST_F(SchedulerNomineesTest, PartitionsGpusForTightlyFittingSlices) {
  GpuNode("n", 2);
  PutPod("p", "nvidia.com/mig-1g.5gb", "8", 0);
  SetLimit("p", "nvidia.com/mig-3g.20gb", "2");
  Run();
  EXPECT_EQ(Spec("n", 0), "1g.5gb@0,1g.5gb@1,1g.5gb@2,1g.5gb@3,3g.20gb@4");
  EXPECT_EQ(Spec("n", 1), Spec("n", 0));
}

}  // namespace
}  // namespace nos::controllers
