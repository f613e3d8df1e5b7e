// Elastic quotas in the scheduler: admission of pods, and evictions for guarantees.
#include <string>

#include "controllers/scheduler/quota_fixture_test.h"
#include "reconcile/testing/scene.h"

namespace nos::controllers {
namespace {

class SchedulerQuotaTest : public QuotaFixture {};

TEST_F(SchedulerQuotaTest, EnforcesMax) {
  CpuNode("n", "10");
  Quota("a", {{"cpu", "1"}}, {{"cpu", "2"}});
  Quota("b", {{"cpu", "5"}});
  for (const char* name : {"p1", "p2", "p3"}) Pod("a", name);
  Run();
  EXPECT_EQ(At("a/p1"), "n");
  EXPECT_EQ(At("a/p2"), "n");
  EXPECT_EQ(At("a/p3"), "");
  EXPECT_EQ(WhyOf("a/p3"),
            "0/1 nodes are available: elastic quota a/quota allows at most 2 of cpu: 2 used, 1 "
            "asked for. Remedy: raise max of cpu in elastic quota a/quota to 3, or wait until pods "
            "of its namespaces that have 1 of it end.");
  api_.Remove("pods", "a/p1");
  Run();
  EXPECT_EQ(At("a/p3"), "n");
}

TEST_F(SchedulerQuotaTest, BorrowsIdleQuota) {
  CpuNode("n", "10");
  Quota("a", {{"cpu", "1"}});
  Quota("b", {{"cpu", "2"}});
  for (const char* name : {"p1", "p2", "p3", "p4"}) Pod("a", name);
  Run();
  EXPECT_EQ(Count({"a/p1", "a/p2", "a/p3"}, "n"), 3);
  EXPECT_EQ(At("a/p4"), "");
  // The node has capacity, but there is nothing left to borrow.
  Quota("b", {{"cpu", "3"}});
  Run();
  EXPECT_EQ(At("a/p4"), "n");
}

TEST_F(SchedulerQuotaTest, FollowsCreatedAndDeletedQuota) {
  CpuNode("n", "10");
  Pod("a", "p1");
  Pod("a", "p2");
  Run();
  Quota("a", {{"cpu", "1"}});  // counts running pods, too
  Run();
  Pod("a", "p3");
  Run();
  EXPECT_EQ(At("a/p3"), "");
  api_.Remove("elasticquotas", "a/quota");
  Run();
  EXPECT_EQ(At("a/p3"), "n");
}

TEST_F(SchedulerQuotaTest, DoesNotLimitUnnamedResource) {
  CpuNode("n", "10");
  Quota("a", {{"nvidia.com/gpu", "1"}}, {{"nvidia.com/gpu", "1"}});
  Pod("a", "p");
  Run();
  EXPECT_EQ(At("a/p"), "n");
}

// Evicts the youngest borrowers, and no more than needed.
TEST_F(SchedulerQuotaTest, ReclaimsGuaranteeFromYoungestBorrower) {
  CpuNode("n", "4");
  Quota("a", {{"cpu", "2"}});
  Quota("b", {{"cpu", "2"}});
  for (const char* name : {"p1", "p2", "p3", "p4"}) Pod("a", name);
  Run();
  ASSERT_EQ(Count({"a/p1", "a/p2", "a/p3", "a/p4"}, "n"), 4);
  Pod("b", "q");
  Run();
  EXPECT_EQ(At("b/q"), "n");
  EXPECT_EQ(At("a/p4"), "gone");
  EXPECT_EQ(Count({"a/p1", "a/p2", "a/p3"}, "n"), 3);
  EXPECT_NE(reconcile::testing::EventsOf(api_).find("its elastic quota has a right"),
            std::string::npos);
}

// B uses only its min, so a cannot evict its pods at any priority.
TEST_F(SchedulerQuotaTest, DoesNotEvictPodWithinMin) {
  CpuNode("n", "4");
  Quota("a", {{"cpu", "2"}});
  Quota("b", {{"cpu", "2"}});
  for (const char* name : {"p1", "p2"}) Pod("b", name, "1", -5);
  Run();
  for (const char* name : {"q1", "q2", "q3"}) Pod("a", name, "1", 1000);
  Run();
  EXPECT_EQ(Count({"b/p1", "b/p2", "a/q1", "a/q2"}, "n"), 4);
  EXPECT_EQ(At("a/q3"), "");
}

// One node has capacity, and the borrower runs on another: only quota is missing.
TEST_F(SchedulerQuotaTest, EvictsBorrowerOnAnotherNode) {
  CpuNode("full", "2");
  Quota("a", {{"cpu", "1"}});
  Quota("b", {{"cpu", "1"}});
  Pod("a", "p1");
  Pod("a", "p2");
  Run();
  ASSERT_EQ(Count({"a/p1", "a/p2"}, "full"), 2);
  CpuNode("empty", "4");
  Pod("b", "q");
  Run();
  EXPECT_EQ(At("b/q"), "empty");
  EXPECT_EQ(At("a/p2"), "gone");
  EXPECT_EQ(At("a/p1"), "full");
}

// While the victims terminate, no further pod is evicted, and their quota stays reserved.
TEST_F(SchedulerQuotaTest, EvictsOnceForGuaranteeAcrossRestart) {
  CpuNode("n", "4");
  Quota("a", {{"cpu", "2"}});
  Quota("b", {{"cpu", "2"}});
  for (const char* name : {"p1", "p2", "p3", "p4"}) Pod("a", name);
  Run();
  LetPodsEndSlowly();
  Pod("b", "q");
  Run();
  EXPECT_EQ(At("a/p4"), "ending");
  Pod("a", "p5");  // would use the freed quota
  Run();
  Restart();  // the scheduler forgets its evictions
  Run();
  EXPECT_EQ(Count({"a/p1", "a/p2", "a/p3", "a/p4"}, "ending"), 1);
  EXPECT_EQ(At("b/q"), "");
  api_.Remove("pods", "a/p4");
  Run();
  EXPECT_EQ(At("b/q"), "n");
  EXPECT_EQ(At("a/p5"), "");
  EXPECT_EQ(Count({"a/p1", "a/p2", "a/p3"}, "n"), 3);
}

// The scheduler crashed between two evictions and before it wrote the nomination.
TEST_F(SchedulerQuotaTest, CountsEarlierVictimsAfterCrash) {
  CpuNode("n", "4");
  Quota("a", {{"cpu", "2"}});
  Quota("b", {{"cpu", "2"}});
  for (const char* name : {"p1", "p2", "p3", "p4"}) Pod("a", name);
  Run();
  LetPodsEndSlowly();
  EvictedByAnother("a/p4");
  Restart();
  Pod("b", "q", "2");
  Run();
  EXPECT_EQ(Count({"a/p1", "a/p2", "a/p3", "a/p4"}, "ending"), 2);
}

// Pods without a quota are evicted, because min would otherwise be no guarantee. System pods stay.
TEST_F(SchedulerQuotaTest, EvictsPodWithoutQuotaForGuarantee) {
  CpuNode("n", "3");
  Quota("a", {{"cpu", "2"}});
  Pod("kube-system", "dns");
  Pod("other", "p1", "1", 100);
  Pod("other", "p2", "1", 1);
  Run();
  Pod("a", "q");
  Run();
  EXPECT_EQ(At("a/q"), "n");
  EXPECT_EQ(At("other/p2"), "gone");
  EXPECT_EQ(At("kube-system/dns"), "n");
  Pod("a", "beyond", "1", 1000);  // is beyond min, so no pod is evicted for it
  Pod("a", "q2");
  Run();
  EXPECT_EQ(At("a/beyond"), "n");  // first by priority, and within min
  EXPECT_EQ(At("a/q2"), "");
  EXPECT_EQ(At("kube-system/dns"), "n");
}

// Priorities count within a quota, and among pods without one.
TEST_F(SchedulerQuotaTest, PodWithoutQuotaDoesNotPreemptPodWithQuota) {
  CpuNode("n", "1");
  Quota("a", {{"cpu", "1"}});
  Pod("a", "p");
  Run();
  Pod("other", "important", "1", 1000);
  Run();
  EXPECT_EQ(At("a/p"), "n");
  EXPECT_EQ(At("other/important"), "");
}

TEST_F(SchedulerQuotaTest, PreemptsByPriorityWithinQuota) {
  CpuNode("n", "4");
  Quota("a", {{"cpu", "2"}}, {{"cpu", "2"}});
  Pod("a", "low");
  Pod("a", "mid", "1", 5);
  Run();
  Pod("a", "high", "1", 9);
  Run();
  EXPECT_EQ(At("a/high"), "n");
  EXPECT_EQ(At("a/low"), "gone");
  EXPECT_EQ(At("a/mid"), "n");
}

// Its namespaces share one account.
TEST_F(SchedulerQuotaTest, CompositeQuotaSharesOneAccount) {
  CpuNode("n", "10");
  Composite("both", {"a", "b"}, {{"cpu", "2"}});
  Quota("c", {{"cpu", "1"}});
  Pod("a", "p1");
  Pod("b", "p2");
  Pod("a", "p3");
  Pod("b", "p4");
  Run();
  EXPECT_EQ(Count({"a/p1", "b/p2", "a/p3"}, "n"), 3);
  EXPECT_EQ(At("b/p4"), "");
  Pod("c", "q");
  Run();
  EXPECT_EQ(At("c/q"), "n");
  EXPECT_EQ(At("a/p3"), "gone");
}

// The rest of a gang is useless without one of its pods.
TEST_F(SchedulerQuotaTest, EvictsWholeGang) {
  CpuNode("n", "4");
  Quota("a", {{"cpu", "1"}});
  Quota("b", {{"cpu", "3"}});
  api_.Put({{"kind", "PodGroup"},
            {"metadata", {{"namespace", "a"}, {"name", "g"}}},
            {"spec", {{"minMember", 3}}}});
  Pod("a", "single");
  for (const char* name : {"g1", "g2", "g3"}) {
    Pod("a", name, "1", 0, {{"scheduling.x-k8s.io/pod-group", "g"}});
  }
  Run();
  ASSERT_EQ(Count({"a/single", "a/g1", "a/g2", "a/g3"}, "n"), 4);
  Pod("b", "q");
  Run();
  EXPECT_EQ(At("b/q"), "n");
  EXPECT_EQ(Count({"a/g1", "a/g2", "a/g3"}, "gone"), 3);
  EXPECT_EQ(At("a/single"), "n");
}

// A gang gets its guarantee for enough members, or nothing is evicted for it.
TEST_F(SchedulerQuotaTest, ReclaimsForWholeGangOrNotAtAll) {
  CpuNode("n", "4");
  Quota("a", {{"cpu", "2"}});
  Quota("b", {{"cpu", "2"}});
  for (const char* name : {"p1", "p2", "p3", "p4"}) Pod("a", name);
  Run();
  api_.Put({{"kind", "PodGroup"},
            {"metadata", {{"namespace", "b"}, {"name", "g"}}},
            {"spec", {{"minMember", 3}}}});
  for (const char* name : {"g1", "g2", "g3"}) {
    Pod("b", name, "1", 0, {{"scheduling.x-k8s.io/pod-group", "g"}});
  }
  Run();
  EXPECT_EQ(Count({"a/p1", "a/p2", "a/p3", "a/p4"}, "n"), 4);
  api_.Put({{"kind", "PodGroup"},
            {"metadata", {{"namespace", "b"}, {"name", "g"}}},
            {"spec", {{"minMember", 2}}}});
  Run();
  EXPECT_EQ(Count({"a/p1", "a/p2"}, "n"), 2);
  EXPECT_EQ(Count({"b/g1", "b/g2", "b/g3"}, "n"), 2);
}

// Slices count in GB, and the victims must leave a layout in which the new slice fits.
TEST_F(SchedulerQuotaTest, ChoosesVictimsThatLeaveValidLayout) {
  GpuNode("g", 1);
  Quota("a", {{"nos.nebuly.com/gpu-memory", "20"}});
  Quota("b", {{"nos.nebuly.com/gpu-memory", "20"}});
  PodOf("a", "old", "nvidia.com/mig-3g.20gb", "1");
  PodOf("a", "young", "nvidia.com/mig-2g.10gb", "1");
  Run();
  Tell("g",
       {{"nos.nebuly.com/status-layout-0", "2g.10gb@2:free,3g.20gb@4:free"},
        {"nos.nebuly.com/status-partitioning-plan", Plan("g")}},
       {{"nvidia.com/mig-3g.20gb", "1"}, {"nvidia.com/mig-2g.10gb", "1"}});
  Run();
  ASSERT_EQ(At("a/old"), "g");
  ASSERT_EQ(At("a/young"), "g");
  Tell("g", {{"nos.nebuly.com/status-layout-0", "2g.10gb@2:used,3g.20gb@4:used"},
             {"nos.nebuly.com/status-holders-0", "2g.10gb@2=a/young,3g.20gb@4=a/old"}});
  PodOf("b", "q", "nvidia.com/mig-3g.20gb", "1");
  Run();
  EXPECT_EQ(At("a/young"), "gone");
  EXPECT_EQ(At("a/old"), "g");
}

// The node's label says 80 GB; the default would be 32 GB.
TEST_F(SchedulerQuotaTest, ChargesWholeGpuByItsMemory) {
  for (const auto& [name, mib] : {std::pair("small", "24576"), std::pair("big", "81920")}) {
    api_.Put(
        {{"kind", "Node"},
         {"metadata", {{"name", name}, {"labels", {{"nvidia.com/gpu.memory", mib}}}}},
         {"status", {{"allocatable", {{"cpu", "96"}, {"pods", "110"}, {"nvidia.com/gpu", "2"}}}}}});
  }
  Quota("a", {{"nos.nebuly.com/gpu-memory", "60"}});
  for (const char* name : {"p1", "p2", "p3"}) PodOf("a", name, "nvidia.com/gpu", "1");
  Run();
  EXPECT_EQ(Count({"a/p1", "a/p2", "a/p3"}, "small"), 2);
  EXPECT_EQ(Count({"a/p1", "a/p2", "a/p3"}, "big"), 0);
  EXPECT_NE(WhyOf("a/p3").find("gpu-memory"), std::string::npos);
}

}  // namespace
}  // namespace nos::controllers
