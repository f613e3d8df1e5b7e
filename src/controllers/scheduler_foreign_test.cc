// Claims beside those of pods that another scheduler serves, alive or gone.
#include "controllers/scheduler_quota_fixture_test.h"

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
  // The guarantee of a is kept although a pod of another scheduler is promised `node`.
  void ExpectNoHoldUp(const std::string& node) {
    Quota("a", {{"cpu", "2"}});
    Quota("b", {{"cpu", "2"}});
    Quota("c", {{"cpu", "4"}});
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

// The other scheduler is gone (old release uninstalled); its pod keeps its nomination for ever.
TEST_F(SchedulerForeignTest, ADeadSchedulersPromiseHoldsUpNoGuarantee) {
  Node("n1", "8");
  Node("n2", "8");
  ExpectNoHoldUp("n1");
}

// And the same with a nomination for a node that is not there.
TEST_F(SchedulerForeignTest, APromiseOnNoNodeHoldsUpNoGuarantee) {
  Node("n1", "8");
  ExpectNoHoldUp("gone");
}

// The foreign pod's quota vanishes: without one its promise is none of ours, and is not after a
// restart.
TEST_F(SchedulerForeignTest, AForeignPromiseEndsWithItsQuota) {
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

// Its quota appears after the nomination.
TEST_F(SchedulerForeignTest, AForeignPromiseBeginsWithItsQuota) {
  Node("n1", "4");
  Foreign("b", "f", "4", "n1");
  Run();
  Quota("b", {{"cpu", "4"}});
  Run();
  Pod("other", "p", "2", 10);
  Run();
  EXPECT_EQ(At("other/p"), "") << "kept for b/f; so it is after a restart";
}

// A second promise of the quota, which min does not cover, and any event on the first.
TEST_F(SchedulerForeignTest, AnEventOnAGuaranteedClaimLeavesItGuaranteed) {
  Node("na", "4");
  Node("nb", "4");
  Quota("a", {{"cpu", "4"}});
  Quota("b", {{"cpu", "0"}});
  Quota("c", {{"cpu", "8"}});
  Quota("d", {{"cpu", "2"}});
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
  // Beyond its quota's min of 2, a fair share at most: nothing that was freed for a guarantee.
  On("na", "d", "x", "3", 100);
  Run();
  Remove("b", {"p1", "p2", "p3", "p4"});
  Run();
  EXPECT_EQ(At("d/x"), "") << "it took what was set free for a/q1, which min covers";
  EXPECT_EQ(At("a/q1"), "na") << WhyOf("a/q1");
}

// As APromiseOutlastsAMoreImportantOneIfThereIsRoomForBoth, of another scheduler's pod.
TEST_F(SchedulerForeignTest, AForeignPromiseOutlastsAMoreImportantOne) {
  Node("n", "4");
  Quota("a", {{"cpu", "1"}});
  Quota("b", {{"cpu", "1"}});
  Quota("c", {{"cpu", "2"}});
  Pods("c", {"p1", "p2", "p3", "p4"});
  Run();
  LetPodsEndSlowly();
  EvictedByAnother("c/p4");  // for a/f, by its scheduler
  Foreign("a", "f", "1", "n");
  Run();
  Pod("b", "q", "1", 10);
  Run();
  EXPECT_EQ(Count({"c/p1", "c/p2", "c/p3"}, "ending"), 1);
  EXPECT_EQ(NomineeOf("a/f"), "n") << "room for both; and it is not ours to write";
  EXPECT_EQ(NomineeWrites("f"), 0);
}

// And the same where both schedulers are live: who writes how often?
TEST_F(SchedulerForeignTest, TwoSchedulersClaimsOnOneNodeComeToRest) {
  StartSecond();
  NodeWith("n", {{"cpu", "4"}, {"example.com/x", "1"}});
  Quota("a", {{"cpu", "1"}});
  Quota("b", {{"cpu", "1"}});
  Quota("c", {{"cpu", "2"}});
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

// Both are live; each leaves the other's promise to the other.
TEST_F(SchedulerForeignTest, ClaimsOfTwoSchedulersDoNotWaitForEachOther) {
  StartSecond();
  Node("na", "4");
  Node("nb", "100");
  Quota("a", {{"cpu", "4"}});
  Quota("b", {{"cpu", "4"}});
  Quota("c", {{"cpu", "0"}});
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

// A wait that was in vain, long ago, is no reason to wait for nobody now.
TEST_F(SchedulerForeignTest, PatienceOfLongAgo) {
  framework_ = scheduling::Framework::Default(scheduling::GpusCut::kElsewhere);
  const auto cutting = scheduling::Framework::Default(scheduling::GpusCut::kHere);
  RestartWith(&cutting);
  GpuNode("ga", 1);  // its agent is not there
  Quota("a", {{"nos.nebuly.com/gpu-memory", "0"}});
  Quota("b", {{"nos.nebuly.com/gpu-memory", "80"}});
  PodOf("b", "q", "nvidia.com/mig-3g.20gb", "1");
  RunFor(seconds(600));
  ASSERT_EQ(At("b/q"), "");
  // Two more nodes: GPU of gb is free, that of gc is held by who borrows.
  PodWith("a", "p", {{"nvidia.com/mig-7g.40gb", "1"}}, 0, {}, {{"nodeName", "gc"}});
  GpuNode("gb", 1);
  GpuNode("gc", 1);
  Tell("gc",
       {{"nos.nebuly.com/status-layout-0", "7g.40gb@0:used"},
        {"nos.nebuly.com/status-holders-0", "7g.40gb@0=a/p"}},
       {{"nvidia.com/mig-7g.40gb", "1"}});
  for (int i = 0; i < 100 && runner_->Step(clock_); ++i) {
  }
  clock_.Advance(seconds(10));
  for (int i = 0; i < 100 && runner_->Step(clock_); ++i) {
  }
  EXPECT_EQ(At("a/p"), "gc") << "GPU of gb is free, and 30 s are not over: " << WhyOf("b/q");
}

}  // namespace
}  // namespace nos::controllers
