// Entitlements of several quotas at the same time, and changes by other clients meanwhile.
#include "controllers/scheduler/quota_fixture_test.h"

namespace nos::controllers {
namespace {

class SchedulerClaimsTest : public ClaimsFixture {};

// A/q lacks capacity and quota; b/q lacks only quota.
TEST_F(SchedulerClaimsTest, GuaranteedPodsOfTwoQuotasDoNotBlockEachOther) {
  CpuNodes({{"na", "4"}, {"nb", "100"}});
  CpuQuotas({{"a", "4"}, {"b", "4"}, {"c", "0"}});
  EightPods("c");
  Run();
  ASSERT_EQ(Count({"c/p1", "c/p2", "c/p3", "c/p4"}, "na"), 4);
  ASSERT_EQ(Count({"c/r1", "c/r2", "c/r3", "c/r4"}, "nb"), 4);
  LetPodsEndSlowly();
  On("na", "a", "q", "4");
  Run();
  EXPECT_EQ(Count({"c/p1", "c/p2", "c/p3", "c/p4"}, "ending"), 4);
  On("nb", "b", "q", "4");
  Run();
  RemoveEnding("c", {"p1", "p2", "p3", "p4", "r1", "r2", "r3", "r4"});
  RunFor(seconds(1800));
  RemoveEnding("c", {"p1", "p2", "p3", "p4", "r1", "r2", "r3", "r4"});
  RunFor(seconds(1800));
  EXPECT_EQ(At("a/q"), "na") << WhyOf("a/q") << " nominee " << NomineeOf("a/q");
  EXPECT_EQ(At("b/q"), "nb") << WhyOf("b/q") << " nominee " << NomineeOf("b/q");
}

TEST_F(SchedulerClaimsTest, GuaranteedPodRunsAfterLeaderChange) {
  CpuNodes({{"na", "4"}, {"nb", "100"}});
  CpuQuotas({{"a", "4"}, {"b", "4"}, {"c", "0"}});
  EightPods("c");
  Run();
  LetPodsEndSlowly();
  On("na", "a", "q", "4");
  Run();
  On("nb", "b", "q", "4");
  Run();
  Remove("c", {"p1", "p2", "p3", "p4"});
  RunFor(seconds(1800));
  Restart();
  RunFor(seconds(1800));
  EXPECT_EQ(At("a/q"), "na") << WhyOf("a/q") << " nominee " << NomineeOf("a/q");
}

// A terminating pod counts against max as long as it runs.
TEST_F(SchedulerClaimsTest, ParentMaxHoldsWhileVictimsTerminate) {
  Node("na", "10");
  Quota("p", {{"cpu", "10"}}, {{"cpu", "10"}});
  Quota("c1", {{"cpu", "5"}}, {}, "p/quota");
  Quota("c2", {{"cpu", "5"}}, {}, "p/quota");
  for (int i = 0; i < 10; ++i) Pod("c2", "p" + std::to_string(i));
  Run();
  Node("nb", "10");
  LetPodsEndSlowly();
  Pod("c1", "q", "4");
  RunFor(seconds(60));
  int runs = 0;
  for (int i = 0; i < 10; ++i) {
    const std::string at = At("c2/p" + std::to_string(i));
    runs += at != "gone" && at != "" ? 1 : 0;
  }
  runs += At("c1/q") != "" ? 4 : 0;
  EXPECT_LE(runs, 10) << "max of p is 10; c1/q at " << At("c1/q");
}

// The second pod of quota a exceeds min together with the first, so it is not guaranteed.
TEST_F(SchedulerClaimsTest, GuaranteedPodIsNotBlockedByNominatedBorrower) {
  CpuNodes({{"na", "4"}, {"nb", "4"}, {"nc", "8"}});
  CpuQuotas({{"a", "4"}, {"b", "0"}, {"c", "8"}});
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
  On("nc", "c", "q", "4");
  Run();
  EXPECT_EQ(At("c/q"), "nc") << WhyOf("c/q");
  On("nc", "c", "q8", "4");
  RunFor(seconds(3600));
  EXPECT_EQ(At("c/q8"), "nc") << WhyOf("c/q8") << " nominee " << NomineeOf("c/q8") << " ending r "
                              << Count({"b/r1", "b/r2", "b/r3", "b/r4"}, "ending");
}

TEST_F(SchedulerClaimsTest, KeepsNominationBesideHigherPriorityOneThatFits) {
  NodeWith("n", {{"cpu", "4"}, {"example.com/x", "1"}});
  CpuQuotas({{"a", "1"}, {"b", "1"}, {"c", "2"}});
  for (const char* name : {"p1", "p2"}) Pod("c", name);
  PodWith("c", "p3", {{"cpu", "1"}, {"example.com/x", "1"}});
  Pod("c", "p4");
  Run();
  ASSERT_EQ(Count({"c/p1", "c/p2", "c/p3", "c/p4"}, "n"), 4);
  LetPodsEndSlowly();
  Pod("a", "q");
  RunSteps();
  ASSERT_EQ(NomineeOf("a/q"), "n");
  ASSERT_EQ(At("c/p4"), "ending");
  PodWith("b", "q", {{"cpu", "1"}, {"example.com/x", "1"}}, 10);
  RunSteps();
  ASSERT_EQ(At("c/p3"), "ending");
  EXPECT_EQ(NomineeOf("a/q"), "n") << "there is room for both";
  Pod("other", "stranger", "1", 1000);
  api_.Remove("pods", "c/p4");
  api_.Remove("pods", "c/p3");
  RunSteps();
  EXPECT_EQ(At("other/stranger"), "");
  RunFor(seconds(60));
}

TEST_F(SchedulerClaimsTest, EvictsAllBorrowersWhenLendersUseTheirMin) {
  Node("n", "100");
  CpuQuotas({{"a", "4"}, {"b", "4"}, {"c", "0"}});
  Pods("c", {"p1", "p2", "p3", "p4", "p5", "p6", "p7", "p8"});
  Run();
  LetPodsEndSlowly();
  Pod("a", "q", "4");
  Run();
  ASSERT_EQ(At("a/q"), "n");
  Pod("b", "q", "4");
  Run();
  ASSERT_EQ(At("b/q"), "n");
  const std::vector<std::string> all = {"c/p1", "c/p2", "c/p3", "c/p4",
                                        "c/p5", "c/p6", "c/p7", "c/p8"};
  EXPECT_EQ(Count(all, "ending"), 8)
      << "min of all is 8, a and b use them; without a's in flight all go";
}

// Two releases of the scheduler with pods of their own; both enforce quotas.
TEST_F(SchedulerClaimsTest, KeepsCapacityFreedForPodOfOtherScheduler) {
  StartSecond();
  int made = 0;
  std::vector<std::string> keys;
  const auto borrower = [&] {
    const std::string name = "p" + std::to_string(made++);
    PodWith("c", name, {{"cpu", "1"}}, 0, {}, {{"schedulerName", "second"}});
    keys.push_back("c/" + name);
  };
  Node("n", "4");
  CpuQuotas({{"a", "1"}, {"c", "3"}});
  for (int i = 0; i < 8; ++i) borrower();
  RunBoth();
  LetPodsEndSlowly();
  Pod("a", "q");
  int evictions = 0;
  for (int i = 0; i < 120 && At("a/q") == ""; ++i) {
    RunBoth();
    clock_.Advance(seconds(5));
    for (const std::string& key : std::vector<std::string>(keys)) {
      if (At(key) != "ending") continue;
      ++evictions;
      api_.Remove("pods", key);
      borrower();
    }
  }
  EXPECT_EQ(At("a/q"), "n") << WhyOf("a/q");
  EXPECT_LE(evictions, 1);
}

TEST_F(SchedulerClaimsTest, PublishesNoPreemptedEventWithoutEviction) {
  Node("n", "4");
  CpuQuotas({{"a", "2"}, {"b", "2"}});
  Pods("b", {"p1", "p2", "p3", "p4"});
  Run();
  Refuse(api_, "PATCH", "a/pods/q/status", kube::HttpStatus(500));  // no nomination is written
  Pod("a", "q");
  RunFor(seconds(120));
  EXPECT_EQ(Count({"b/p1", "b/p2", "b/p3", "b/p4"}, "n"), 4);
  EXPECT_EQ(CountEvents("Preempted"), 0) << WhyOf("a/q");
}

TEST_F(SchedulerClaimsTest, TwoNominationsOnOneNodeSettle) {
  UseQuotaArguments("{reclaimMaxGracePeriodSeconds: 3600}");
  NodeWith("n", {{"cpu", "4"}, {"example.com/x", "1"}});
  CpuQuotas({{"a", "1"}, {"b", "1"}, {"c", "2"}});
  for (const char* name : {"p1", "p2"}) Pod("c", name);
  PodWith("c", "p3", {{"cpu", "1"}, {"example.com/x", "1"}});
  Pod("c", "p4");
  Run();
  LetPodsEndSlowly(seconds(3600));
  Pod("a", "q");
  RunSteps();
  PodWith("b", "q", {{"cpu", "1"}, {"example.com/x", "1"}}, 10);
  for (int i = 0; i < 20; ++i) Pod("c", "w" + std::to_string(i));  // these wait for their quota
  clock_.Advance(seconds(60));
  RunSteps();
  ASSERT_EQ(Count({"c/p3", "c/p4"}, "ending"), 2);
  const size_t before = api_.writes.size();
  const Time end = clock_.Now() + seconds(1800);
  size_t nominees = 0;
  while (clock_.Now() < end) {
    for (int i = 0; i < 100 && runner_->Step(clock_); ++i) {
    }
    const auto due = runner_->NextDue();
    clock_.AdvanceTo(due && *due < clock_.Now() + seconds(10) ? std::max(*due, clock_.Now())
                                                              : clock_.Now() + seconds(10));
  }
  for (size_t i = before; i < api_.writes.size(); ++i) {
    nominees += WriteJson(api_.writes[i].body).find("nominatedNodeName") != std::string::npos;
  }
  EXPECT_LT(api_.writes.size() - before, 100) << nominees << " of nominated nodes, in 30 min";
}

// Cases of waiting for victims that no other test covers.
TEST_F(SchedulerClaimsTest, PreemptionPolicyNeverEvictsNothing) {
  Node("n", "4");
  CpuQuotas({{"a", "2"}, {"b", "2"}});
  for (const char* name : {"p1", "p2", "p3", "p4"}) Pod("b", name);
  Run();
  PodWith("a", "q", {{"cpu", "1"}}, 0, {}, {{"preemptionPolicy", "Never"}});
  Run();
  EXPECT_EQ(Count({"b/p1", "b/p2", "b/p3", "b/p4"}, "n"), 4);
}

TEST_F(SchedulerClaimsTest, DropsNominationToCordonedNode) {
  CpuNodes({{"n1", "2"}, {"n2", "2"}});
  CpuQuotas({{"a", "2"}, {"b", "2"}});
  for (const char* name : {"p1", "p2", "p3", "p4"}) Pod("b", name);
  Run();
  LetPodsEndSlowly();
  Pod("a", "q");
  Run();
  const std::string first = NomineeOf("a/q");
  Cordon(first);
  // No event wakes the pod: like kube-scheduler, the queue retries it after a while.
  RunFor(seconds(600));
  EXPECT_NE(NomineeOf("a/q"), first) << WhyOf("a/q");
}

// The victim is preempted by priority within the quota, on the nominated node.
TEST_F(SchedulerClaimsTest, WaitsForVictimOfSameQuota) {
  Node("n", "2");
  Quota("a", {{"cpu", "2"}}, {{"cpu", "2"}});
  for (const char* name : {"p1", "p2"}) Pod("a", name);
  Run();
  LetPodsEndSlowly(seconds(120));
  Pod("a", "q", "1", 10);
  RunFor(seconds(120));
  EXPECT_EQ(Count({"a/p1", "a/p2"}, "ending"), 1);
  EXPECT_EQ(NomineeOf("a/q"), "n");
}

}  // namespace
}  // namespace nos::controllers
