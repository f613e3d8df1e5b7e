// Current usage and nominations decide whether a nomination is guaranteed. Evictability is decided
// by the resulting state, not by intermediate steps.
#include "controllers/scheduler/quota_fixture_test.h"

namespace nos::controllers {
namespace {

class SchedulerQuotaStandingTest : public ClaimsFixture {
 protected:
  void Bound(const std::string& ns, const std::string& name, const std::string& cpu,
             const std::string& node) {
    PodWith(ns, name, {{"cpu", cpu}}, 0, {},
            {{"schedulerName", "old-release"}, {"nodeName", node}});
  }
  void BreakGang() {
    Node("n", "9");
    CpuQuotas({{"a", "3"}, {"c", "0"}, {"d", "6"}});
    Group("c", "v", 3);
    Members("c", "v", {"v1", "v2", "v3"});
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

// The nomination by a scheduler that no longer runs was guaranteed. Then a pod of its quota uses up
// min; this or the other scheduler binds it.
class SchedulerUsedUpMinTest : public SchedulerQuotaStandingTest,
                               public ::testing::WithParamInterface<bool> {};

TEST_P(SchedulerUsedUpMinTest, StaleNominationIsNoGuaranteeOnceQuotaUsesItsMin) {
  CpuNodes({{"n1", "8"}, {"n2", "8"}});
  CpuQuotas({{"a", "4"}, {"b", "4"}});
  Foreign("b", "dead", "4", "n1");
  Run();
  if (GetParam()) {
    Bound("b", "p", "4", "n2");
  } else {
    Pod("b", "p", "4");
  }
  Run();
  EXPECT_NE(At("b/p"), "") << WhyOf("b/p");
  Pod("a", "q", "4");
  RunFor(seconds(7200));
  EXPECT_NE(At("a/q"), "") << WhyOf("a/q") << " nominee " << NomineeOf("a/q");
}

INSTANTIATE_TEST_SUITE_P(BoundBy, SchedulerUsedUpMinTest, ::testing::Bool(), [](const auto& test) {
  return test.param ? "AnotherScheduler" : "ThisScheduler";
});

// A gang of three lost a member to a quota, and the evicting scheduler crashed. The next guarantee
// takes the rest of this gang and no other pod, for a gang and for a single pod.
TEST_F(SchedulerQuotaStandingTest, EvictsRestOfBrokenGangForGang) {
  BreakGang();
  Group("a", "g", 3);
  Members("a", "g", {"g1", "g2", "g3"});
  Run();
  ExpectItsRestGoes();
}
TEST_F(SchedulerQuotaStandingTest, EvictsRestOfBrokenGangForPod) {
  BreakGang();
  Pod("a", "q", "3");
  Run();
  ExpectItsRestGoes();
}

// A pod of higher priority in the same quota displaces a guarantee, then is deleted.
TEST_F(SchedulerQuotaStandingTest, NominationIsGuaranteedAgainAfterHigherPriorityPodIsDeleted) {
  CpuNodes({{"na", "4"}, {"nb", "4"}});
  CpuQuotas({{"a", "4"}, {"c", "0"}, {"d", "4"}});
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
TEST_F(SchedulerQuotaStandingTest, EvictsOtherQuotasPodsOnlyWithinMin) {
  Node("n", "9");
  CpuQuotas({{"a", "3"}, {"b", "6"}});
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
TEST_F(SchedulerQuotaStandingTest, ReclaimsResourceThatChildBorrowsThroughParent) {
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
TEST_F(SchedulerQuotaStandingTest, StaleNominationBlocksItsOwnQuotaOnlyForAWhile) {
  Node("n1", "16");
  CpuQuotas({{"a", "4"}, {"b", "4"}});
  Foreign("a", "dead", "8", "n1");
  Run();
  Pod("a", "q", "4");
  RunFor(seconds(3600));
  EXPECT_EQ(At("a/q"), "n1") << WhyOf("a/q");
}

// The other scheduler wrote its nomination and stopped before any eviction. The node has room, or
// is full.
class SchedulerStaleNominationTest : public SchedulerQuotaStandingTest,
                                     public ::testing::WithParamInterface<const char*> {};

TEST_P(SchedulerStaleNominationTest, EvictsNothingForIt) {
  Node("n1", GetParam());
  CpuQuotas({{"a", "4"}, {"b", "4"}, {"c", "0"}, {"d", "4"}});
  const std::vector<std::string> keys = Borrowers("c", 12);
  Run();
  ASSERT_EQ(Count(keys, "n1"), 12);
  LetPodsEndSlowly();
  Foreign("b", "dead", "4", "n1");
  Run();
  Pod("a", "q", "4");
  Run();
  EXPECT_EQ(Count(keys, "ending"), 4) << "a/q asks for 4";
}

INSTANTIATE_TEST_SUITE_P(Cpu, SchedulerStaleNominationTest, ::testing::Values("100", "12"));

// A pod of quota a and a pod of quota b, which another scheduler has nominated for a share, request
// one GPU of the same node each.
struct GpuSize {
  const char* name;
  int gb;            // of a GPU; the default is 32
  int min_a, min_c;  // b has one GPU, which its other pod uses
  Duration time;
  const char* at;  // of the pod of a
};

class SchedulerGpuSizeTest : public SchedulerQuotaStandingTest,
                             public ::testing::WithParamInterface<GpuSize> {};

TEST_P(SchedulerGpuSizeTest, GuaranteePrecedesNominatedShare) {
  const GpuSize& size = GetParam();
  const auto quota = [&](const std::string& ns, int gb) {
    if (gb > 0) Quota(ns, {{"nos.nebuly.com/gpu-memory", std::to_string(gb)}});
  };
  NodeWith("n", {{"cpu", "10"}, {"nvidia.com/gpu", "3"}},
           {{"nvidia.com/gpu.memory", std::to_string(size.gb * 1024)}});
  quota("a", size.min_a);
  quota("b", size.gb);
  quota("c", size.min_c);
  PodWith("b", "r", {{"nvidia.com/gpu", "1"}});
  Run();
  PodWith("b", "p", {{"nvidia.com/gpu", "1"}}, 0, {}, {{"schedulerName", "other"}});
  Nominate("b/p", "n");
  Run();
  PodWith("a", "q", {{"nvidia.com/gpu", "1"}});
  RunFor(size.time);
  EXPECT_EQ(At("a/q"), size.at) << WhyOf("a/q");
}

// On GPUs of 80 GB a/q exceeds min, so it requests a share itself, and b/p's is promised: no other
// pod wants the idle amount.
INSTANTIATE_TEST_SUITE_P(
    On, SchedulerGpuSizeTest,
    ::testing::Values(GpuSize{"SmallGpus", 16, 16, 0, seconds(3600), "n"},
                      GpuSize{"GpusOfDefaultSize", 32, 32, 0, seconds(3600), "n"},
                      GpuSize{"NotBeyondMinOnLargeGpus", 80, 40, 40, seconds(300), ""}),
    [](const auto& test) { return test.param.name; });

class SchedulerQuotaStandingBindTest : public SchedulerQuotaStandingTest {
 protected:
  void Go(bool quota_event) {
    Node("na", "4");
    CpuQuotas({{"a", "4"}, {"c", "0"}, {"d", "4"}});
    for (const char* name : {"p1", "p2", "p3", "p4"}) On("na", "c", name, "1");
    Run();
    On("na", "a", "q", "4");
    Refuse(api_, "", "/binding", Status(Code::kDeadline, "timeout"));
    for (int i = 0; i < 60 && scheduler_->bindings() == 0; ++i) (void)runner_->Step(clock_);
    ASSERT_EQ(Count({"c/p1", "c/p2", "c/p3", "c/p4"}, "gone"), 4);
    ASSERT_EQ(scheduler_->bindings(), 1u);
    if (quota_event) Quota("z", {{"cpu", "1"}});
    for (int i = 0; i < 20; ++i) (void)runner_->Step(clock_);
    On("na", "d", "x", "4");
    for (int i = 0; i < 20; ++i) (void)runner_->Step(clock_);
    api_.intercept = nullptr;
    for (int i = 0; i < 40; ++i) {
      clock_.Advance(milliseconds(500));
      for (int k = 0; k < 20; ++k) (void)runner_->Step(clock_);
    }
    EXPECT_EQ(At("a/q"), "na") << WhyOf("a/q") << " d/x at " << At("d/x");
  }
  using milliseconds = std::chrono::milliseconds;
};
TEST_F(SchedulerQuotaStandingBindTest, KeepsGuaranteedNominationAfterLostBinding) { Go(false); }
TEST_F(SchedulerQuotaStandingBindTest, KeepsGuaranteedNominationWhenQuotaIsCreated) { Go(true); }

// Beyond min, a pod evicts pods without a quota only if their priority is lower.
TEST_F(SchedulerQuotaStandingTest, DoesNotEvictPodWithoutQuotaOfHigherPriorityBeyondMin) {
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
TEST_F(SchedulerQuotaStandingTest, EvictsOtherQuotasPodsOnlyWithinMinIfOnlyQuotaIsMissing) {
  Node("n", "100");
  CpuQuotas({{"a", "3"}, {"b", "6"}});
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
TEST_F(SchedulerQuotaStandingTest, TwoSchedulersEvictNoMoreThanBothNeed) {
  StartSecond();
  CpuNodes({{"na", "6"}, {"nb", "6"}});
  CpuQuotas({{"a", "4"}, {"b", "4"}, {"c", "0"}, {"d", "4"}});
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
TEST_F(SchedulerQuotaStandingTest, EvictsNothingForCapacityOfPodOnLostNode) {
  NodeWith("n1", {{"cpu", "1"}}, {{"name", "n1"}, {"pool", "x"}});
  NodeWith("n2", {{"cpu", "1"}}, {{"name", "n2"}});
  NodeWith("n3", {{"cpu", "2"}}, {{"name", "n3"}});
  CpuQuotas({{"a", "1"}, {"c", "1"}, {"e", "1"}});
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
