// Current usage and nominations decide whether a nomination is guaranteed. Evictability is judged
// by the resulting state, not by intermediate steps.
#include "controllers/scheduler/quota_fixture_test.h"

namespace nos::controllers {
namespace {

class SchedulerStandingsTest : public ClaimsFixture {
 protected:
  void Bound(const std::string& ns, const std::string& name, const std::string& cpu,
             const std::string& node) {
    PodWith(ns, name, {{"cpu", cpu}}, 0, {},
            {{"schedulerName", "old-release"}, {"nodeName", node}});
  }
  void BreakGang() {
    Node("n", "9");
    Quota("a", {{"cpu", "3"}});
    Quota("c", {{"cpu", "0"}});
    Quota("d", {{"cpu", "6"}});
    Group("c", "v", 3);
    for (const char* name : {"v1", "v2", "v3"}) {
      Pod("c", name, "1", 0, {{"scheduling.x-k8s.io/pod-group", "v"}});
    }
    Run();
    Pods("c", {"s1", "s2", "s3", "s4", "s5", "s6"});
    Run();
    LetPodsEndSlowly();
    EvictedByAnother("c/v1", true);
    Restart();
  }
  void ExpectItsRestGoes() {
    EXPECT_EQ(Count({"c/v1", "c/v2", "c/v3"}, "ending"), 3);
    EXPECT_EQ(Count({"c/s1", "c/s2", "c/s3", "c/s4", "c/s5", "c/s6"}, "ending"), 0);
  }
};

// The nomination by a scheduler that no longer runs was guaranteed. Then pods of its quota use up
// min.
TEST_F(SchedulerStandingsTest, StaleNominationIsNoGuaranteeOnceQuotaUsesItsMin) {
  Node("n1", "8");
  Node("n2", "8");
  Quota("a", {{"cpu", "4"}});
  Quota("b", {{"cpu", "4"}});
  Foreign("b", "dead", "4", "n1");
  Run();
  Pod("b", "p", "4");
  Run();
  EXPECT_NE(At("b/p"), "") << WhyOf("b/p");
  Pod("a", "q", "4");
  RunFor(seconds(7200));
  EXPECT_NE(At("a/q"), "") << WhyOf("a/q") << " nominee " << NomineeOf("a/q");
}

// Like the test above, with a pod of b bound by the other scheduler.
TEST_F(SchedulerStandingsTest, StaleNominationIsNoGuaranteeBesidePodsBoundByOthers) {
  Node("n1", "8");
  Node("n2", "8");
  Quota("a", {{"cpu", "4"}});
  Quota("b", {{"cpu", "4"}});
  Foreign("b", "dead", "4", "n1");
  Run();
  Bound("b", "p", "4", "n2");
  Run();
  Pod("a", "q", "4");
  RunFor(seconds(7200));
  EXPECT_NE(At("a/q"), "") << WhyOf("a/q") << " nominee " << NomineeOf("a/q");
}

// A gang of three lost a member to a quota, and the evicting scheduler crashed. The next guarantee
// takes the rest of this gang and no other pod, for a gang and for a single pod.
TEST_F(SchedulerStandingsTest, EvictsRestOfBrokenGangForGang) {
  BreakGang();
  Group("a", "g", 3);
  for (const char* name : {"g1", "g2", "g3"}) {
    Pod("a", name, "1", 0, {{"scheduling.x-k8s.io/pod-group", "g"}});
  }
  Run();
  ExpectItsRestGoes();
}
TEST_F(SchedulerStandingsTest, EvictsRestOfBrokenGangForPod) {
  BreakGang();
  Pod("a", "q", "3");
  Run();
  ExpectItsRestGoes();
}

// A pod of higher priority in the same quota displaces a guarantee, then is deleted.
TEST_F(SchedulerStandingsTest, NominationIsGuaranteedAgainAfterHigherPriorityPodIsDeleted) {
  Node("na", "4");
  Node("nb", "4");
  Quota("a", {{"cpu", "4"}});
  Quota("c", {{"cpu", "0"}});
  Quota("d", {{"cpu", "4"}});
  EightPods("c");
  Run();
  LetPodsEndSlowly();
  On("na", "a", "q1", "4");
  Run();
  On("nb", "a", "q2", "4", 10);
  Run();
  api_.Remove("pods", "a/q2");
  Run();
  On("na", "d", "x", "4", 0);  // d's min covers it, but it is younger than a/q1
  Run();
  Remove("c", {"p1", "p2", "p3", "p4"});
  Run();
  EXPECT_EQ(At("a/q1"), "na") << WhyOf("a/q1");
  EXPECT_EQ(At("d/x"), "") << "it took what was freed for a/q1, which min covers";
}

// Table in docs/quotas.md: beyond min, a pod of another quota is evicted only if the preemptor's
// quota stays within min and share. Shares of the idle 1: a 3/9, b 6/9, both rounded down to 0.
TEST_F(SchedulerStandingsTest, EvictsOtherQuotasPodsOnlyWithinMin) {
  Node("n", "9");
  Quota("a", {{"cpu", "3"}});
  Quota("b", {{"cpu", "6"}});
  Pod("a", "x", "1", 10);
  for (const char* name : {"r1", "r2", "r3", "r4", "r5"}) Pod("b", name, "1", 10);
  Pod("b", "p0", "2", 20);
  Run();
  ASSERT_EQ(At("b/p0"), "n");
  Pod("a", "q0", "3", 20);
  Run();
  EXPECT_TRUE(At("b/p0") == "n" || At("a/x") != "n") << "a would use 4 of its 3, its share is 0";
  // ReplicaSets create both again.
  int evictions = 0, b = 0, a = 0;
  for (int i = 0; i < 60; ++i) {
    if (At("b/p" + std::to_string(b)) == "gone") {
      ++evictions;
      Pod("b", "p" + std::to_string(++b), "2", 20);
    }
    if (At("a/q" + std::to_string(a)) == "gone") {
      ++evictions;
      Pod("a", "q" + std::to_string(++a), "3", 20);
    }
    if (pods_ > 46) break;
    Run();
    clock_.Advance(seconds(20));
  }
  EXPECT_LE(evictions, 1);
}

// The child does not name a resource of its parent and borrows it through the parent.
TEST_F(SchedulerStandingsTest, ReclaimsResourceThatChildBorrowsThroughParent) {
  NodeWith("n", {{"cpu", "100"}, {"example.com/g", "4"}});
  Quota("org", {{"cpu", "4"}, {"example.com/g", "1"}});
  Quota("team", {{"cpu", "4"}}, {}, "org/quota");
  Quota("c", {{"cpu", "4"}, {"example.com/g", "3"}});
  for (const char* name : {"p1", "p2", "p3", "p4"}) {
    PodWith("team", name, {{"cpu", "1"}, {"example.com/g", "1"}});
  }
  Run();
  ASSERT_EQ(Count({"team/p1", "team/p2", "team/p3", "team/p4"}, "n"), 4);
  PodWith("c", "q", {{"cpu", "1"}, {"example.com/g", "3"}});
  RunFor(seconds(3600));
  EXPECT_EQ(At("c/q"), "n") << WhyOf("c/q");
}

// A stale nomination of the pod's own quota that was never guaranteed.
TEST_F(SchedulerStandingsTest, StaleNominationBlocksItsOwnQuotaOnlyForAWhile) {
  Node("n1", "16");
  Quota("a", {{"cpu", "4"}});
  Quota("b", {{"cpu", "4"}});
  Foreign("a", "dead", "8", "n1");
  Run();
  Pod("a", "q", "4");
  RunFor(seconds(3600));
  EXPECT_EQ(At("a/q"), "n1") << WhyOf("a/q");
}

// The other scheduler wrote its nomination and stopped before any eviction.
TEST_F(SchedulerStandingsTest, EvictsNothingForStaleNomination) {
  Node("n1", "100");
  Quota("a", {{"cpu", "4"}});
  Quota("b", {{"cpu", "4"}});
  Quota("c", {{"cpu", "0"}});
  Quota("d", {{"cpu", "4"}});
  std::vector<std::string> keys;
  for (int i = 0; i < 12; ++i) {
    Pod("c", "p" + std::to_string(i));
    keys.push_back("c/p" + std::to_string(i));
  }
  Run();
  ASSERT_EQ(Count(keys, "n1"), 12);
  LetPodsEndSlowly();
  Foreign("b", "dead", "4", "n1");
  Run();
  Pod("a", "q", "4");
  Run();
  EXPECT_EQ(Count(keys, "ending"), 4) << "a/q asks for 4";
}

// Like the test above, on a full node.
TEST_F(SchedulerStandingsTest, EvictsNothingForStaleNominationOnFullNode) {
  Node("n1", "12");
  Quota("a", {{"cpu", "4"}});
  Quota("b", {{"cpu", "4"}});
  Quota("c", {{"cpu", "0"}});
  Quota("d", {{"cpu", "4"}});
  std::vector<std::string> keys;
  for (int i = 0; i < 12; ++i) {
    Pod("c", "p" + std::to_string(i));
    keys.push_back("c/p" + std::to_string(i));
  }
  Run();
  LetPodsEndSlowly();
  Foreign("b", "dead", "4", "n1");
  Run();
  Pod("a", "q", "4");
  Run();
  EXPECT_EQ(Count(keys, "ending"), 4) << "a/q asks for 4";
}

// GPUs of 16 GB, default 32 GB: min covers a/q on every node of the cluster.
TEST_F(SchedulerStandingsTest, GuaranteeOnSmallGpusPrecedesNominatedShare) {
  NodeWith("n", {{"cpu", "10"}, {"nvidia.com/gpu", "3"}}, {{"nvidia.com/gpu.memory", "16384"}});
  Quota("a", {{"nos.nebuly.com/gpu-memory", "16"}});
  Quota("b", {{"nos.nebuly.com/gpu-memory", "16"}});
  PodWith("b", "r", {{"nvidia.com/gpu", "1"}});
  Run();
  PodWith("b", "p", {{"nvidia.com/gpu", "1"}}, 0, {}, {{"schedulerName", "other"}});
  Json pod = *api_.Find("pods", "b/p");
  MakeObject(pod, "status")["nominatedNodeName"] = "n";
  api_.Put(pod);
  Run();
  PodWith("a", "q", {{"nvidia.com/gpu", "1"}});
  RunFor(seconds(3600));
  EXPECT_EQ(At("a/q"), "n") << WhyOf("a/q");
}
TEST_F(SchedulerStandingsTest, GuaranteeOnGpusOfDefaultSizePrecedesNominatedShare) {
  NodeWith("n", {{"cpu", "10"}, {"nvidia.com/gpu", "3"}}, {{"nvidia.com/gpu.memory", "32768"}});
  Quota("a", {{"nos.nebuly.com/gpu-memory", "32"}});
  Quota("b", {{"nos.nebuly.com/gpu-memory", "32"}});
  PodWith("b", "r", {{"nvidia.com/gpu", "1"}});
  Run();
  PodWith("b", "p", {{"nvidia.com/gpu", "1"}}, 0, {}, {{"schedulerName", "other"}});
  Json pod = *api_.Find("pods", "b/p");
  MakeObject(pod, "status")["nominatedNodeName"] = "n";
  api_.Put(pod);
  Run();
  PodWith("a", "q", {{"nvidia.com/gpu", "1"}});
  RunFor(seconds(3600));
  EXPECT_EQ(At("a/q"), "n") << WhyOf("a/q");
}

// GPUs of 80 GB, default 32 GB: a/q exceeds min on every node, so it is not guaranteed.
TEST_F(SchedulerStandingsTest, RequestBeyondMinOnLargeGpusIsNoGuarantee) {
  NodeWith("n", {{"cpu", "10"}, {"nvidia.com/gpu", "3"}}, {{"nvidia.com/gpu.memory", "81920"}});
  Quota("a", {{"nos.nebuly.com/gpu-memory", "40"}});
  Quota("b", {{"nos.nebuly.com/gpu-memory", "80"}});
  Quota("c", {{"nos.nebuly.com/gpu-memory", "40"}});
  PodWith("b", "r", {{"nvidia.com/gpu", "1"}});
  Run();
  // B's share of the idle amount is reserved for b/p, since no other pod wants it.
  PodWith("b", "p", {{"nvidia.com/gpu", "1"}}, 0, {}, {{"schedulerName", "other"}});
  Json pod = *api_.Find("pods", "b/p");
  MakeObject(pod, "status")["nominatedNodeName"] = "n";
  api_.Put(pod);
  Run();
  PodWith("a", "q", {{"nvidia.com/gpu", "1"}});
  RunFor(seconds(300));
  EXPECT_EQ(At("a/q"), "") << "80 of 40 on n: a share, and b/p's is promised";
}

class SchedulerStandingsBindTest : public SchedulerStandingsTest {
 protected:
  void Go(bool quota_event) {
    Node("na", "4");
    Quota("a", {{"cpu", "4"}});
    Quota("c", {{"cpu", "0"}});
    Quota("d", {{"cpu", "4"}});
    for (const char* name : {"p1", "p2", "p3", "p4"}) On("na", "c", name, "1");
    Run();
    On("na", "a", "q", "4");
    bool lost = true;
    api_.intercept = [&lost](const kube::ApiRequest& request) {
      std::optional<Result<kube::ApiResponse>> answer;
      if (lost && request.path.ends_with("/binding")) {
        answer = Result<kube::ApiResponse>(Status(Code::kDeadline, "timeout"));
      }
      return answer;
    };
    for (int i = 0; i < 60; ++i) (void)runner_->Step(clock_);
    clock_.Advance(milliseconds(1100));
    for (int i = 0; i < 5; ++i) (void)runner_->Step(clock_);
    ASSERT_EQ(Count({"c/p1", "c/p2", "c/p3", "c/p4"}, "gone"), 4);
    ASSERT_EQ(scheduler_->bindings(), 1u);
    if (quota_event) Quota("z", {{"cpu", "1"}});
    for (int i = 0; i < 20; ++i) (void)runner_->Step(clock_);
    On("na", "d", "x", "4");
    for (int i = 0; i < 20; ++i) (void)runner_->Step(clock_);
    lost = false;
    for (int i = 0; i < 40; ++i) {
      clock_.Advance(milliseconds(500));
      for (int k = 0; k < 20; ++k) (void)runner_->Step(clock_);
    }
    EXPECT_EQ(At("a/q"), "na") << WhyOf("a/q") << " d/x at " << At("d/x");
  }
  using milliseconds = std::chrono::milliseconds;
};
TEST_F(SchedulerStandingsBindTest, KeepsGuaranteedNominationAfterLostBinding) { Go(false); }
TEST_F(SchedulerStandingsBindTest, KeepsGuaranteedNominationWhenQuotaIsCreated) { Go(true); }

// Beyond min, a pod evicts pods without a quota only if their priority is lower.
TEST_F(SchedulerStandingsTest, DoesNotEvictPodWithoutQuotaOfHigherPriorityBeyondMin) {
  Node("n", "4");
  Quota("a", {{"cpu", "3"}});
  Quota("b", {{"cpu", "6"}});  // idle
  Pod("a", "x", "1", 10);
  Pod("other", "s", "3", 100);
  Run();
  ASSERT_EQ(At("other/s"), "n");
  Pod("a", "q", "3", 20);
  Run();
  EXPECT_TRUE(At("other/s") == "n" || At("a/x") != "n")
      << "priority 100, for one of 20 that would use 4 of 3";
}
TEST_F(SchedulerStandingsTest, EvictsOtherQuotasPodsOnlyWithinMinIfOnlyQuotaIsMissing) {
  Node("n", "100");
  Quota("a", {{"cpu", "3"}});
  Quota("b", {{"cpu", "6"}});
  Pod("a", "x", "1", 10);
  for (const char* name : {"r1", "r2", "r3", "r4", "r5"}) Pod("b", name, "1", 10);
  Pod("b", "p0", "2", 20);
  Run();
  ASSERT_EQ(At("b/p0"), "n");
  Pod("a", "q0", "3", 20);
  Run();
  EXPECT_TRUE(At("b/p0") == "n" || At("a/x") != "n") << "a would use 4 of its 3, its share is 0";
}

// Both schedulers run: this one sees the other's nomination before its evictions.
TEST_F(SchedulerStandingsTest, TwoSchedulersEvictNoMoreThanBothNeed) {
  StartSecond();
  Node("na", "6");
  Node("nb", "6");
  Quota("a", {{"cpu", "4"}});
  Quota("b", {{"cpu", "4"}});
  Quota("c", {{"cpu", "0"}});
  Quota("d", {{"cpu", "4"}});
  std::vector<std::string> keys;
  for (int i = 0; i < 12; ++i) {
    On(i < 6 ? "na" : "nb", "c", "p" + std::to_string(i), "1");
    keys.push_back("c/p" + std::to_string(i));
  }
  RunBoth();
  ASSERT_EQ(Count(keys, "na") + Count(keys, "nb"), 12);
  LetPodsEndSlowly();
  const auto slowly = api_.intercept;
  bool begun = false;
  api_.intercept = [&](const kube::ApiRequest& request) {
    if (!begun && request.method == "PATCH" &&
        WriteJson(request.body).find("DisruptionTarget") != std::string::npos) {
      begun = true;  // the first victim is being evicted for b/f
      On("nb", "a", "q", "4");
      for (int i = 0; i < 30; ++i) (void)runner_->Step(clock_);
    }
    return slowly(request);
  };
  PodWith("b", "f", {{"cpu", "4"}}, 0, {},
          {{"nodeSelector", {{"name", "na"}}}, {"schedulerName", "second"}});
  for (int i = 0; i < 50; ++i) (void)second_runner_->Step(clock_);
  RunBoth();
  EXPECT_TRUE(begun);
  EXPECT_LE(Count(keys, "ending"), 8) << "a/q and b/f ask for 4 each";
}

// Only capacity is missing: the quota of the pod on the lost node counts as free.
TEST_F(SchedulerStandingsTest, EvictsNothingForCapacityOfPodOnLostNode) {
  NodeWith("n1", {{"cpu", "1"}}, {{"name", "n1"}, {"pool", "x"}});
  NodeWith("n2", {{"cpu", "1"}}, {{"name", "n2"}});
  NodeWith("n3", {{"cpu", "2"}}, {{"name", "n3"}});
  Quota("a", {{"cpu", "1"}});
  Quota("c", {{"cpu", "1"}});
  Quota("e", {{"cpu", "1"}});
  On("n3", "c", "c0", "1");
  On("n3", "c", "c1", "1");
  On("n1", "c", "c2", "1");
  On("n2", "other", "s", "1");
  Run();
  ASSERT_EQ(Count({"c/c0", "c/c1", "c/c2", "other/s"}, ""), 0);
  LetPodsEndSlowly();
  PodWith("a", "q", {{"cpu", "1"}}, 0, {}, {{"nodeSelector", {{"pool", "x"}}}});
  Run();
  ASSERT_EQ(At("c/c2"), "ending");
  Lose("n1");
  NodeWith("n2", {{"cpu", "1"}}, {{"name", "n2"}, {"pool", "x"}});
  RunFor(seconds(600));
  EXPECT_EQ(Count({"c/c0", "c/c1"}, "ending"), 0);
}

}  // namespace
}  // namespace nos::controllers
