// Capacity freed for a quota stays reserved for its pod, and no pod is evicted without need.
#include "controllers/scheduler/quota_fixture_test.h"

namespace nos::controllers {
namespace {

class SchedulerPromisesTest : public ClaimsFixture {
 protected:
  void DeletedByItsUser(const std::string& key) {
    Json pod = *api_.Find("pods", key);
    MakeObject(pod, "metadata")["deletionTimestamp"] = "2027-01-15T08:00:00Z";
    api_.Put(pod);
  }
  // A pod of namespace a is nominated for a share of the idle amount, and a pod of b is evicted.
  void ClaimShare(const std::string& name) {
    CpuNode("n", "12");
    CpuQuotas({{"a", "4"}, {"b", "1"}, {"c", "7"}});
    Pods("b", {"p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7"});
    Pods("a", {"m0", "m1", "m2", "m3"});
    Run();
    LetPodsEndSlowly();
    Pod("a", name);
    Run();
    ASSERT_EQ(At("b/p7"), "ending");
  }
};

TEST_F(SchedulerPromisesTest, EvictsGangWithMemberTerminatingElsewhere) {
  for (const char* node : {"n1", "n2"}) CpuNode(node, "1");
  CpuQuotas({{"a", "0"}, {"b", "2"}});
  Group("a", "g", 2);
  Members("a", "g", {"g1", "g2"});
  Run();
  ASSERT_EQ(Count({"a/g1", "a/g2"}, ""), 0);
  DeletedByItsUser("a/g2");
  Pod("b", "q");
  Run();
  EXPECT_NE(At("b/q"), "");
}

TEST_F(SchedulerPromisesTest, EvictsRestOfBrokenGangFirst) {
  CpuNode("n", "4");
  CpuQuotas({{"a", "1"}, {"b", "3"}});
  Group("a", "g", 2);
  Pod("a", "p");
  Members("a", "g", {"g1", "g2"});
  Pod("a", "young");
  Run();
  LetPodsEndSlowly();
  EvictedByAnother("a/g1", true);  // after which its scheduler crashed
  Restart();
  Pod("b", "q", "2");
  Run();
  EXPECT_EQ(At("a/g2"), "ending");
  EXPECT_EQ(At("a/young"), "n");
}

TEST_F(SchedulerPromisesTest, DoesNotWaitForVictimOnLostNode) {
  CpuNode("n1", "3");
  CpuQuotas({{"a", "1"}, {"b", "3"}});
  Pods("a", {"p1", "p2", "p3"});
  Run();
  CpuNode("n2", "1");
  Pod("a", "p4");
  Run();
  LetPodsEndSlowly();
  Pod("b", "q");
  Run();
  ASSERT_EQ(At("a/p4"), "ending");
  Lose("n2");
  RunFor(seconds(60));
  EXPECT_EQ(At("a/p3"), "ending");
  api_.Remove("pods", "a/p3");
  RunFor(seconds(60));
  EXPECT_EQ(At("b/q"), "n1");
}

TEST_F(SchedulerPromisesTest, PlacesPodBeforeVictimEndsIfCapacityIsFree) {
  for (const char* node : {"n1", "n2"}) CpuNode(node, "2");
  CpuQuotas({{"a", "1"}, {"b", "1"}});
  Pods("a", {"p1", "p2"});
  Run();
  LetPodsEndSlowly();
  Pod("b", "q");
  RunFor(seconds(60));
  EXPECT_EQ(At("a/p2"), "ending");
  EXPECT_NE(At("b/q"), "");
}

TEST_F(SchedulerPromisesTest, NominatedPodsDoNotWaitForEachOthersVictims) {
  for (const char* node : {"n1", "n2"}) CpuNode(node, "2");
  CpuQuotas({{"a", "0"}, {"b", "2"}, {"c", "2"}});
  Pods("a", {"p1", "p2", "p3", "p4"});
  Run();
  LetPodsEndSlowly();
  Pod("b", "q");
  Run();
  Pod("c", "q");
  Run();
  ASSERT_EQ(Count({"a/p1", "a/p2", "a/p3", "a/p4"}, "ending"), 2);
  api_.Remove("pods", "a/p4");
  RunFor(seconds(60));
  EXPECT_NE(At("b/q"), "");
  EXPECT_EQ(At("c/q"), "");
}

// A pod without quota could not preempt the nominated pod after it runs either.
TEST_F(SchedulerPromisesTest, PodWithoutQuotaDoesNotTakeNominatedCapacity) {
  ClaimShare("more");
  Pod("other", "high", "1", 5);
  Run();
  api_.Remove("pods", "b/p7");
  RunFor(seconds(60));
  EXPECT_EQ(At("a/more"), "n");
  EXPECT_EQ(At("b/p6"), "n");
}

TEST_F(SchedulerPromisesTest, KeepsGuaranteedNominationBesidePreemption) {
  NodeWith("n", {{"cpu", "10"}, {"nvidia.com/gpu", "2"}});
  Quota("a", {{"nvidia.com/gpu", "1"}});
  Quota("b", {{"nvidia.com/gpu", "1"}});
  for (const char* name : {"b1", "b2"}) PodWith("b", name, {{"nvidia.com/gpu", "1"}});
  PodWith("other", "low", {{"cpu", "8"}}, -1);
  Run();
  LetPodsEndSlowly();
  PodWith("a", "q", {{"nvidia.com/gpu", "1"}});
  RunSteps();
  ASSERT_EQ(At("b/b2"), "ending");
  PodWith("other", "high", {{"cpu", "8"}}, 100);
  RunSteps();
  ASSERT_EQ(At("other/low"), "ending");
  EXPECT_EQ(NomineeOf("a/q"), "n");
}

// The memory of the nominated node's GPUs counts, not the assumed default.
TEST_F(SchedulerPromisesTest, KeepsGuaranteedNominationOnSmallGpus) {
  NodeWith("n", {{"cpu", "10"}, {"nvidia.com/gpu", "2"}}, {{"nvidia.com/gpu.memory", "16384"}});
  Quota("a", {{"nos.nebuly.com/gpu-memory", "16"}});
  Quota("b", {{"nos.nebuly.com/gpu-memory", "16"}});
  for (const char* name : {"b1", "b2"}) PodWith("b", name, {{"nvidia.com/gpu", "1"}});
  Run();
  LetPodsEndSlowly();
  PodWith("a", "q", {{"nvidia.com/gpu", "1"}});
  Run();
  ASSERT_EQ(At("b/b2"), "ending");
  PodWith("stranger", "s", {{"nvidia.com/gpu", "1"}}, 5);
  Run();
  api_.Remove("pods", "b/b2");
  RunFor(seconds(60));
  EXPECT_EQ(At("a/q"), "n");
}

TEST_F(SchedulerPromisesTest, NominatedShareIsNoGuaranteeAfterRestart) {
  ClaimShare("0more");  // by its name it is listed before running pods
  Restart();
  Run();
  Pod("c", "q", "7");
  Run();
  EXPECT_EQ(NomineeOf("c/q"), "n") << "what is guaranteed goes before a share";
}

TEST_F(SchedulerPromisesTest, NewNodeWakesPodRefusedByItsQuota) {
  CpuNode("n1", "4");
  CpuQuotas({{"a", "2"}, {"b", "2"}});
  Pods("a", {"p1", "p2", "p3", "p4"});
  Run();
  Cordon("n1");
  Pod("b", "q");
  Run();
  ASSERT_EQ(At("b/q"), "");
  CpuNode("n2", "4");
  RunFor(seconds(60));
  EXPECT_EQ(At("b/q"), "n2");
}

TEST_F(SchedulerPromisesTest, EvictsNothingWhileFreeGpuIsPartitioned) {
  PartitionBesideABorrower();
  PodOf("b", "q", "nvidia.com/mig-7g.40gb", "1");
  Run();
  EXPECT_EQ(At("a/p"), "g");
  UpdateNode("g", {{"nos.nebuly.com/status-layout-1", "1g.5gb@0:free"},
                   {"nos.nebuly.com/status-partitioning-plan", "77"}});
  Run();
  EXPECT_EQ(Spec("g", 1), "7g.40gb@0");
  EXPECT_EQ(At("a/p"), "g");
}

TEST_F(SchedulerPromisesTest, NewLeaderKnowsHoldersOfInstances) {
  GpuNode("g", 1);
  std::string layout = "1g.5gb@0:free,1g.5gb@1:free", holders;
  for (const char* start : {"2", "3", "4", "5", "6"}) {
    PodWith("a", std::string("p") + start, {{"nvidia.com/mig-1g.5gb", "1"}}, 0, {},
            {{"nodeName", "g"}});
    layout += std::string(",1g.5gb@") + start + ":used";
    holders += std::string(",1g.5gb@") + start + "=a/p" + start;
  }
  Report("g", layout, holders.substr(1));
  Restart();
  PodOf("b", "q", "nvidia.com/mig-2g.10gb", "1");
  Run();
  EXPECT_NE(Spec("g").find("2g.10gb@0"), std::string::npos) << WhyOf("b/q");
}

TEST_F(SchedulerPromisesTest, NewLeaderEnforcesMaxOnAdoptedPlan) {
  GpuNode("g", 1);
  Quota("a", {{"nos.nebuly.com/gpu-memory", "20"}}, {{"nos.nebuly.com/gpu-memory", "20"}});
  PodOf("a", "p", "nvidia.com/mig-3g.20gb", "1");
  Run();
  ASSERT_NE(Spec("g"), "");
  Quota("a", {{"nos.nebuly.com/gpu-memory", "0"}}, {{"nos.nebuly.com/gpu-memory", "0"}});
  Restart();
  Run();
  Report("g", Spec("g") + ":free");
  Run();
  EXPECT_EQ(At("a/p"), "");
}

}  // namespace
}  // namespace nos::controllers
