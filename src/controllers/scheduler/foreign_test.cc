// Entitlements beside nominations by another scheduler, running or removed.
#include "controllers/scheduler/quota_fixture_test.h"

namespace nos::controllers {
namespace {

class SchedulerForeignTest : public ClaimsFixture {
 protected:
  int NomineeWrites(const std::string& name) {
    int n = 0;
    for (const auto& write : api_.writes) {
      n += write.path.find("/pods/" + name + "/status") != std::string::npos &&
           WriteJson(write.body).find("nominatedNodeName") != std::string::npos;
    }
    return n;
  }
  // The guarantee of quota a holds although a pod of another scheduler is nominated to `node`.
  void ExpectNoHoldUp(const std::string& node) {
    CpuQuotas({{"a", "2"}, {"b", "2"}, {"c", "4"}});
    Pods("c", {"p1", "p2", "p3", "p4", "p5", "p6"});
    Run();
    Foreign("b", "dead", "2", node);
    Run();
    Pod("a", "q", "2");
    RunFor(seconds(7200));
    EXPECT_NE(At("a/q"), "") << WhyOf("a/q") << " nominee " << NomineeOf("a/q");
  }
  void Touch(const std::string& key, const std::string& value) {
    Json pod = *api_.Find("pods", key);
    MakeObject(pod, "metadata", "annotations")["example.com/x"] = value;
    api_.Put(pod);
  }
};

// The other scheduler was uninstalled, so its pod keeps the nomination for ever.
TEST_F(SchedulerForeignTest, StaleNominationDoesNotBlockGuarantee) {
  CpuNodes({{"n1", "8"}, {"n2", "8"}});
  ExpectNoHoldUp("n1");
}

// Nomination to a node that does not exist.
TEST_F(SchedulerForeignTest, NominationToMissingNodeDoesNotBlockGuarantee) {
  Node("n1", "8");
  ExpectNoHoldUp("gone");
}

// Without a quota the foreign nomination does not count, also after a restart.
TEST_F(SchedulerForeignTest, ForeignNominationEndsWithItsQuota) {
  Node("n1", "4");
  Quota("b", {{"cpu", "4"}});
  Foreign("b", "dead", "4", "n1");
  Run();
  api_.Remove("elasticquotas", "b/quota");
  Run();
  Pod("other", "p", "2");
  RunFor(seconds(3600));
  EXPECT_EQ(At("other/p"), "n1") << WhyOf("other/p");
  Restart();
  RunFor(seconds(600));
}

// The quota is created after the nomination.
TEST_F(SchedulerForeignTest, ForeignNominationCountsOnceQuotaExists) {
  Node("n1", "4");
  Foreign("b", "f", "4", "n1");
  Run();
  Quota("b", {{"cpu", "4"}});
  Run();
  Pod("other", "p", "2", 10);
  Run();
  EXPECT_EQ(At("other/p"), "") << "kept for b/f; so it is after a restart";
}

// The quota has a second nomination that min does not cover, and the first pod is updated.
TEST_F(SchedulerForeignTest, PodUpdateKeepsGuaranteedNomination) {
  CpuNodes({{"na", "4"}, {"nb", "4"}});
  CpuQuotas({{"a", "4"}, {"b", "0"}, {"c", "8"}, {"d", "2"}});
  EightPods("b");
  Run();
  LetPodsEndSlowly();
  On("na", "a", "q1", "4");
  Run();
  ASSERT_EQ(Count({"b/p1", "b/p2", "b/p3", "b/p4"}, "ending"), 4);
  On("nb", "a", "q2", "2");
  Run();
  ASSERT_EQ(Count({"b/r1", "b/r2", "b/r3", "b/r4"}, "ending"), 2);
  ASSERT_EQ(NomineeOf("a/q2"), "nb");
  Touch("a/q1", "1");
  Run();
  // The pod exceeds the min of d, so it may only borrow, and must not take capacity freed for a
  // guarantee.
  On("na", "d", "x", "3", 100);
  Run();
  Remove("b", {"p1", "p2", "p3", "p4"});
  Run();
  EXPECT_EQ(At("d/x"), "") << "it took what was set free for a/q1, which min covers";
  EXPECT_EQ(At("a/q1"), "na") << WhyOf("a/q1");
}

// Like KeepsNominationBesideHigherPriorityOneThatFits, for a pod of another scheduler.
TEST_F(SchedulerForeignTest, ForeignNominationStaysBesideHigherPriorityOne) {
  Node("n", "4");
  CpuQuotas({{"a", "1"}, {"b", "1"}, {"c", "2"}});
  Pods("c", {"p1", "p2", "p3", "p4"});
  Run();
  LetPodsEndSlowly();
  EvictedByAnother("c/p4");  // for a/f, by its own scheduler
  Foreign("a", "f", "1", "n");
  Run();
  Pod("b", "q", "1", 10);
  Run();
  EXPECT_EQ(Count({"c/p1", "c/p2", "c/p3"}, "ending"), 1);
  EXPECT_EQ(NomineeOf("a/f"), "n") << "room for both; and it is not ours to write";
  EXPECT_EQ(NomineeWrites("f"), 0);
}

// With both schedulers running: limits how often nominations are written.
TEST_F(SchedulerForeignTest, TwoSchedulersNominationsOnOneNodeSettle) {
  StartSecond();
  NodeWith("n", {{"cpu", "4"}, {"example.com/x", "1"}});
  CpuQuotas({{"a", "1"}, {"b", "1"}, {"c", "2"}});
  for (const char* name : {"p1", "p2"}) Pod("c", name);
  PodWith("c", "p3", {{"cpu", "1"}, {"example.com/x", "1"}});
  Pod("c", "p4");
  RunBoth();
  LetPodsEndSlowly();
  PodWith("a", "q", {{"cpu", "1"}}, 0, {}, {{"schedulerName", "second"}});
  RunBoth();
  PodWith("b", "q", {{"cpu", "1"}, {"example.com/x", "1"}}, 10);
  RunBoth();
  for (int i = 0; i < 20; ++i) Pod("c", "w" + std::to_string(i));
  RunBoth();
  const int n1 = NomineeWrites("q");
  for (int i = 0; i < 360; ++i) {
    clock_.Advance(seconds(5));
    RunBoth();
  }
  EXPECT_LT(NomineeWrites("q") - n1, 20);
  EXPECT_EQ(Count({"c/p1", "c/p2", "c/p3", "c/p4"}, "ending"), 2);
}

// Both are running; each leaves the other's nominations alone.
TEST_F(SchedulerForeignTest, GuaranteedPodsOfTwoSchedulersDoNotBlockEachOther) {
  StartSecond();
  CpuNodes({{"na", "4"}, {"nb", "100"}});
  CpuQuotas({{"a", "4"}, {"b", "4"}, {"c", "0"}});
  for (const char* p : {"p1", "p2", "p3", "p4"}) On("na", "c", p, "1");
  for (const char* p : {"r1", "r2", "r3", "r4"}) On("nb", "c", p, "1");
  RunBoth();
  LetPodsEndSlowly();
  On("na", "a", "q", "4");
  RunBoth();
  PodWith("b", "q", {{"cpu", "4"}}, 0, {},
          {{"nodeSelector", {{"name", "nb"}}}, {"schedulerName", "second"}});
  RunBoth();
  for (int i = 0; i < 720; ++i) {
    RemoveEnding("c", {"p1", "p2", "p3", "p4", "r1", "r2", "r3", "r4"});
    RunBoth();
    clock_.Advance(seconds(10));
  }
  EXPECT_EQ(At("a/q"), "na") << WhyOf("a/q") << " nominee " << NomineeOf("a/q");
  EXPECT_EQ(At("b/q"), "nb") << WhyOf("b/q") << " nominee " << NomineeOf("b/q");
}

// One pod has to be evicted for both. Neither preemptor waits for the other, also after updates.
TEST_F(SchedulerForeignTest, NominatedPodsOfTwoSchedulersBothRunAfterOneEviction) {
  StartSecond();
  CpuNodes({{"n0", "2"}, {"n1", "3"}});
  CpuQuotas({{"a", "3"}, {"b", "2"}, {"c", "0"}});
  On("n0", "b", "x", "2");
  On("n1", "c", "v", "3");
  RunBoth();
  LetPodsEndSlowly();
  PodWith("a", "q2", {{"cpu", "1"}}, 0, {}, {{"schedulerName", "second"}});
  RunBoth();
  Pod("a", "q1", "2");
  RunBoth();
  ASSERT_EQ(NomineeOf("a/q1"), "n1");
  ASSERT_EQ(NomineeOf("a/q2"), "n1");
  Remove("c", {"v"});
  PodWith("b", "y", {{"cpu", "1"}}, 0, {},
          {{"schedulerName", "knows-no-quotas"}, {"nodeName", "n1"}});
  for (int i = 0; i < 12; ++i) {
    RunBoth();
    RemoveEnding("b", {"x", "y"});
    RunBoth();
    clock_.Advance(seconds(10));
    Node("tiny" + std::to_string(i), "0");
  }
  EXPECT_EQ(At("a/q1"), "n1") << WhyOf("a/q1");
  EXPECT_EQ(At("a/q2"), "n1") << WhyOf("a/q2");
  EXPECT_EQ(At("b/x"), "n0");
}

// A pod terminates for ever, because its node is lost, or outlives its grace period for a long time
// on a healthy node.
class SchedulerStuckPodTest : public SchedulerForeignTest,
                              public ::testing::WithParamInterface<bool> {};

TEST_P(SchedulerStuckPodTest, DoesNotExtendStaleNominationForEver) {
  const bool lost = GetParam();
  CpuNodes({{"n1", "4"}, {"n3", "1"}});
  CpuQuotas({{"a", "4"}, {"b", "1"}, {"c", "0"}});
  On("n3", "c", "stuck", "1");
  Run();
  EvictedByAnother("c/stuck", true);
  if (lost) Lose("n3");
  Foreign("b", "dead", "1", "n1");
  Run();
  On("n1", "a", "q", "4");
  RunFor(seconds(lost ? 1200 : 3600));
  EXPECT_EQ(At("a/q"), "n1") << WhyOf("a/q");
}

INSTANTIATE_TEST_SUITE_P(On, SchedulerStuckPodTest, ::testing::Bool(),
                         [](const auto& test) { return test.param ? "LostNode" : "HealthyNode"; });

// An expired nomination does not count again because another pod terminates and a node changes.
TEST_F(SchedulerForeignTest, ExpiredForeignNominationStaysExpired) {
  CpuNodes({{"n1", "4"}, {"n9", "1"}});
  CpuQuotas({{"a", "4"}, {"b", "1"}, {"c", "0"}});
  On("n9", "c", "z", "1");
  Foreign("b", "dead", "1", "n1");
  RunFor(seconds(1200));
  EvictedByAnother("c/z", true);
  Run();
  Node("n9", "2");
  Run();
  On("n1", "a", "q", "4");
  Run();
  EXPECT_EQ(At("a/q"), "n1") << WhyOf("a/q");
}

// kube-scheduler preempts a pod without quota.
TEST_F(SchedulerForeignTest, EvictsNothingForStaleNominationDuringOtherPreemption) {
  UseQuotaArguments("{reclaimMaxGracePeriodSeconds: 3600}");
  CpuNodes({{"n1", "12"}, {"n9", "2"}});
  CpuQuotas({{"a", "4"}, {"b", "4"}, {"c", "0"}, {"d", "4"}});
  const std::vector<std::string> keys = Borrowers("c", 12, "n1");
  On("n9", "other", "z", "1");
  Run();
  EvictedByAnother("other/z");
  LetPodsEndSlowly(seconds(1800));
  Foreign("b", "dead", "4", "n1");
  Run();
  On("n1", "a", "q", "4");
  RunFor(seconds(900));
  EXPECT_EQ(Count(keys, "ending"), 4);
}

// Victims of this scheduler are not mistaken for victims of the other one, also after a restart.
TEST_F(SchedulerForeignTest, EvictsNothingForStaleNominationAfterRestart) {
  Node("n1", "12");
  CpuQuotas({{"a", "4"}, {"b", "4"}, {"c", "0"}, {"d", "4"}});
  const std::vector<std::string> keys = Borrowers("c", 12, "n1");
  Run();
  LetPodsEndSlowly();
  Foreign("b", "dead", "4", "n1");
  Run();
  On("n1", "a", "q", "4");
  Run();
  ASSERT_EQ(Count(keys, "ending"), 4);
  Restart();
  RunFor(seconds(60));
  EXPECT_EQ(Count(keys, "ending"), 4);
}

// An earlier expired wait must not shorten a new one.
TEST_F(SchedulerForeignTest, WaitsForPartitionerAgainAfterEarlierTimeout) {
  LeavePartitioningToPartitioner();
  GpuNode("ga", 1);  // has no agent
  Quota("a", {{"nos.nebuly.com/gpu-memory", "0"}});
  Quota("b", {{"nos.nebuly.com/gpu-memory", "80"}});
  PodOf("b", "q", "nvidia.com/mig-3g.20gb", "1");
  RunFor(seconds(600));
  ASSERT_EQ(At("b/q"), "");
  // Two more nodes: the GPU of gb is free, the GPU of gc is used by a borrower.
  PodWith("a", "p", {{"nvidia.com/mig-7g.40gb", "1"}}, 0, {}, {{"nodeName", "gc"}});
  GpuNode("gb", 1);
  GpuNode("gc", 1);
  Report("gc", "7g.40gb@0:used", "7g.40gb@0=a/p");
  for (int i = 0; i < 100 && runner_->Step(clock_); ++i) {
  }
  clock_.Advance(seconds(10));
  for (int i = 0; i < 100 && runner_->Step(clock_); ++i) {
  }
  EXPECT_EQ(At("a/p"), "gc") << "GPU of gb is free, and 30 s are not over: " << WhyOf("b/q");
}

}  // namespace
}  // namespace nos::controllers
