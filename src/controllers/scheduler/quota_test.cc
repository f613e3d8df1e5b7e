// What schedulers do with elastic quotas: who is let in, and who has to go for what is guaranteed.
#include <string>

#include "controllers/scheduler/quota_fixture_test.h"
#include "reconcile/testing/scene.h"

namespace nos::controllers {
namespace {

class SchedulerQuotaTest : public QuotaFixture {};

TEST_F(SchedulerQuotaTest, NoMoreThanMaxRuns) {
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

TEST_F(SchedulerQuotaTest, BorrowsWhatOthersLeave) {
  CpuNode("n", "10");
  Quota("a", {{"cpu", "1"}});
  Quota("b", {{"cpu", "2"}});
  for (const char* name : {"p1", "p2", "p3", "p4"}) Pod("a", name);
  Run();
  EXPECT_EQ(Count({"a/p1", "a/p2", "a/p3"}, "n"), 3);
  EXPECT_EQ(At("a/p4"), "");
  // Room is there; what lacks is something to borrow.
  Quota("b", {{"cpu", "3"}});
  Run();
  EXPECT_EQ(At("a/p4"), "n");
}

TEST_F(SchedulerQuotaTest, QuotasComeAndGo) {
  CpuNode("n", "10");
  Pod("a", "p1");
  Pod("a", "p2");
  Run();
  Quota("a", {{"cpu", "1"}});  // counts what runs already
  Run();
  Pod("a", "p3");
  Run();
  EXPECT_EQ(At("a/p3"), "");
  api_.Remove("elasticquotas", "a/quota");
  Run();
  EXPECT_EQ(At("a/p3"), "n");
}

TEST_F(SchedulerQuotaTest, WhatAQuotaDoesNotNameIsNotLimited) {
  CpuNode("n", "10");
  Quota("a", {{"nvidia.com/gpu", "1"}}, {{"nvidia.com/gpu", "1"}});
  Pod("a", "p");
  Run();
  EXPECT_EQ(At("a/p"), "n");
}

// The youngest of those that borrow, and no more than is needed.
TEST_F(SchedulerQuotaTest, WhatIsGuaranteedIsTakenBack) {
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
  EXPECT_NE(reconcile::testing::EventsOf(api_).find("its elastic quota has a right"), std::string::npos);
}

// Nobody borrows: b has what it is guaranteed, whoever is more important.
TEST_F(SchedulerQuotaTest, NobodyWithinMinHasToGo) {
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

// There is room on one node, and what is borrowed runs on another: only the quota lacks.
TEST_F(SchedulerQuotaTest, VictimsMayBeElsewhere) {
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

// While they end, others are not evicted for the same claim; nobody else gets what they leave.
TEST_F(SchedulerQuotaTest, AClaimInFlightIsRemembered) {
  CpuNode("n", "4");
  Quota("a", {{"cpu", "2"}});
  Quota("b", {{"cpu", "2"}});
  for (const char* name : {"p1", "p2", "p3", "p4"}) Pod("a", name);
  Run();
  LetPodsEndSlowly();
  Pod("b", "q");
  Run();
  EXPECT_EQ(At("a/p4"), "ending");
  Pod("a", "p5");  // would take it again
  Run();
  Restart();  // forgets what it did
  Run();
  EXPECT_EQ(Count({"a/p1", "a/p2", "a/p3", "a/p4"}, "ending"), 1);
  EXPECT_EQ(At("b/q"), "");
  api_.Remove("pods", "a/p4");
  Run();
  EXPECT_EQ(At("b/q"), "n");
  EXPECT_EQ(At("a/p5"), "");
  EXPECT_EQ(Count({"a/p1", "a/p2", "a/p3"}, "n"), 3);
}

// It crashed between two evictions and before it wrote for whom.
TEST_F(SchedulerQuotaTest, ACrashBetweenEvictionsCostsNobodyElse) {
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

// Pods that no quota covers: min would be no guarantee otherwise. Those of the system stay.
TEST_F(SchedulerQuotaTest, PodsWithoutQuotaGiveWayToAGuarantee) {
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
  Pod("a", "beyond", "1", 1000);  // borrows: nobody goes for that
  Pod("a", "q2");
  Run();
  EXPECT_EQ(At("a/beyond"), "n");  // first, by priority, and within min
  EXPECT_EQ(At("a/q2"), "");
  EXPECT_EQ(At("kube-system/dns"), "n");
}

// Priorities count within a quota, and among pods without one.
TEST_F(SchedulerQuotaTest, WithoutAQuotaNobodyTakesFromOne) {
  CpuNode("n", "1");
  Quota("a", {{"cpu", "1"}});
  Pod("a", "p");
  Run();
  Pod("other", "important", "1", 1000);
  Run();
  EXPECT_EQ(At("a/p"), "n");
  EXPECT_EQ(At("other/important"), "");
}

TEST_F(SchedulerQuotaTest, PrioritiesCountWithinAQuota) {
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
TEST_F(SchedulerQuotaTest, ACompositeQuotaCountsOnce) {
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

// A gang is of no use without one of its pods.
TEST_F(SchedulerQuotaTest, AGangGoesWhole) {
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

// And gets what is guaranteed to it whole, or nobody goes for it.
TEST_F(SchedulerQuotaTest, AGangClaimsWhole) {
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

// Slices are counted in GB, and victims so that the GPU can be cut for who comes.
TEST_F(SchedulerQuotaTest, VictimsLeaveALegalLayout) {
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

// The default would be 32 GB: the node's label says 80.
TEST_F(SchedulerQuotaTest, WholeGpusCountByTheirMemory) {
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
