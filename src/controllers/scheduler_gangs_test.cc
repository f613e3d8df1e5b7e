// Gangs: placed together or not at all, slices included, without holding anything while they wait.
#include <string>

#include "controllers/scheduler_fixture_test.h"

namespace nos::controllers {
namespace {

class GangTest : public SchedulerFixture {
 protected:
  void Node(const std::string& name, const std::string& cpu) {
    api_.Put({{"kind", "Node"},
              {"metadata", {{"name", name}}},
              {"status", {{"allocatable", {{"cpu", cpu}, {"pods", "110"}}}}}});
  }
  void Group(const std::string& name, int least) {
    api_.Put({{"kind", "PodGroup"},
              {"metadata", {{"namespace", "ml"}, {"name", name}}},
              {"spec", {{"minMember", least}}}});
  }
  void Pod(const std::string& name, const std::string& group, const std::string& resource = "cpu",
           const std::string& amount = "1", int priority = 0) {
    JsonObject labels;
    if (!group.empty()) labels["scheduling.x-k8s.io/pod-group"] = group;
    PutPod(name, resource, amount, priority, labels);
  }
  // As many as are bound of these pods.
  int Bound(const std::string& prefix, int count) {
    int bound = 0;
    for (int i = 0; i < count; ++i) {
      const Json* pod = api_.Find("pods", "ml/" + prefix + std::to_string(i));
      bound += pod != nullptr && !FindString(*pod, "spec", "nodeName").empty() ? 1 : 0;
    }
    return bound;
  }
  void Pods(const std::string& prefix, int count, const std::string& group,
            const std::string& resource = "cpu", const std::string& amount = "1",
            int priority = 0) {
    for (int i = 0; i < count; ++i) {
      Pod(prefix + std::to_string(i), group, resource, amount, priority);
    }
  }
  std::string Why(const std::string& name) {
    const Json* conditions = nos::Find(*api_.Find("pods", "ml/" + name), "status", "conditions");
    return conditions == nullptr
               ? ""
               : std::string(FindString(conditions->get_array().at(0), "message"));
  }
};

TEST_F(GangTest, AllOrNone) {
  Node("n", "3");
  Group("g", 4);
  Pods("p", 4, "g");
  Run();
  EXPECT_EQ(Bound("p", 4), 0);
  EXPECT_EQ(Why("p0"),
            "pod group ml/g: 3 of its pods find a node together, and 4 must; ml/p3: 0/1 nodes are "
            "available: 1 Insufficient cpu.")
      << "all say the same: " << Why("p3");
  Pod("other", "", "cpu", "3");
  Run();
  EXPECT_EQ(FindString(*api_.Find("pods", "ml/other"), "spec", "nodeName"), "n")
      << "nothing is held while it waits";
  Node("m", "4");
  Run();
  EXPECT_EQ(Bound("p", 4), 4);
}

TEST_F(GangTest, WaitsForItsPodsAndItsGroup) {
  Node("n", "9");
  Pods("p", 2, "g");
  Run();
  EXPECT_EQ(Why("p0"), "pod group ml/g: there is no PodGroup ml/g");
  Group("g", 3);
  Run();
  EXPECT_EQ(Why("p0"), "pod group ml/g: 2 of the 3 pods that are placed together are there");
  EXPECT_EQ(Bound("p", 2), 0);
  Pod("p2", "g");
  Run();
  EXPECT_EQ(Bound("p", 3), 3);
  Pod("p3", "g");  // enough of it run: one more is like any pod
  Run();
  EXPECT_EQ(Bound("p", 4), 4);
}

TEST_F(GangTest, AGroupThatAsksForLessGoesAhead) {
  Node("n", "2");
  Group("g", 3);
  Pods("p", 3, "g");
  Run();
  EXPECT_EQ(Bound("p", 3), 0);
  Group("g", 2);
  Run();
  EXPECT_EQ(Bound("p", 3), 2) << "the third waits for room";
}

// Each has half of what it needs, one by one.
TEST_F(GangTest, TwoGangsDoNotWaitForEachOther) {
  Node("a", "2");
  Node("b", "2");
  Group("g", 3);
  Group("h", 3);
  for (int i = 0; i < 3; ++i) {
    Pod("g" + std::to_string(i), "g");
    Pod("h" + std::to_string(i), "h");
  }
  Run();
  EXPECT_EQ(Bound("g", 3), 3);
  EXPECT_EQ(Bound("h", 3), 0);
  for (int i = 0; i < 3; ++i) api_.Remove("pods", "ml/g" + std::to_string(i));
  Run();
  EXPECT_EQ(Bound("h", 3), 3);
}

TEST_F(GangTest, WorkloadsAreGangsToo) {
  Node("n", "2");
  api_.Put({{"kind", "Workload"},
            {"metadata", {{"namespace", "ml"}, {"name", "w"}}},
            {"spec",
             {{"podGroups",
               JsonArray{{{"name", "workers"}, {"policy", {{"gang", {{"minCount", 3}}}}}}}}}}});
  Pods("p", 3, "");
  for (int i = 0; i < 3; ++i) {
    Json pod = *api_.Find("pods", "ml/p" + std::to_string(i));
    MakeObject(pod, "spec")["workloadRef"] = {{"name", "w"}, {"podGroup", "workers"}};
    api_.Put(pod);
  }
  Run();
  EXPECT_EQ(Bound("p", 3), 0);
  Node("m", "1");
  Run();
  EXPECT_EQ(Bound("p", 3), 3);
}

TEST_F(GangTest, RoomIsMadeForAllOrNone) {
  Node("n", "3");
  Pods("low", 3, "", "cpu", "1", 1);
  Run();
  ASSERT_EQ(Bound("low", 3), 3);
  Group("big", 4);
  Pods("b", 4, "big", "cpu", "1", 9);
  Run();
  EXPECT_EQ(Bound("low", 3), 3) << "it would be in vain";
  Group("small", 2);
  Pods("s", 2, "small", "cpu", "1", 9);
  Run();
  EXPECT_EQ(Bound("s", 2), 2);
  EXPECT_EQ(Bound("low", 3), 1);
}

// Their slices are cut on two nodes; nobody is bound before all of them are there.
TEST_F(GangTest, IsBoundWhenAllItsSlicesAreThere) {
  GpuNode("a", 1);
  GpuNode("b", 1);
  Group("g", 2);
  Pods("p", 2, "g", "nvidia.com/mig-7g.40gb", "1");
  Run();
  EXPECT_EQ(Spec("a"), "7g.40gb@0");
  EXPECT_EQ(Spec("b"), "7g.40gb@0");
  const auto cut = [&](const std::string& node) {
    Tell(node,
         {{"nos.nebuly.com/status-layout-0", "7g.40gb@0:free"},
          {"nos.nebuly.com/status-partitioning-plan", Plan(node)}},
         {{"nvidia.com/mig-7g.40gb", "1"}});
  };
  cut("a");
  Run();
  EXPECT_EQ(Bound("p", 2), 0);
  cut("b");
  Run();
  EXPECT_EQ(Bound("p", 2), 2);
}

TEST_F(GangTest, WhatOneDoesNotGetTheOthersGiveBack) {
  GpuNode("a", 1);
  GpuNode("b", 1);
  Group("g", 2);
  Pods("p", 2, "g", "nvidia.com/mig-7g.40gb", "1");
  Run();
  Tell("b", {{"nos.nebuly.com/status-partitioning-plan", Plan("b")},
             {"nos.nebuly.com/partitioning-result",
              WritePlanResult({Plan("b"), false, {{0, "7g.40gb@0", "InUse", "in use"}}})}});
  Run();
  EXPECT_EQ(Bound("p", 2), 0);
  EXPECT_EQ(Spec("a") + Spec("b"), "") << "what was asked for is taken back";
  GpuNode("c", 1);
  Tell("a", {{"nos.nebuly.com/status-partitioning-plan", Plan("a")}});
  Run();
  EXPECT_EQ(Spec("a") + Spec("c"), "7g.40gb@07g.40gb@0") << "b rests";
}

}  // namespace
}  // namespace nos::controllers
