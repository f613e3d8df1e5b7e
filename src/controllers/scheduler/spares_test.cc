// Pods that are not evicted for a quota, or not yet: gangs, exempt pods, and any pod while GPUs can
// be partitioned instead.
#include "controllers/scheduler/quota_fixture_test.h"

namespace nos::controllers {
namespace {

class SchedulerSparedPodsTest : public ClaimsFixture {
 protected:
  // The pod names an owner as whose pods are restarted on the same node.
  void OwnedBy(const std::string& kind, const std::string& key) {
    Json pod = *api_.Find("pods", key);
    MakeObject(pod, "metadata")["ownerReferences"] =
        JsonArray{{{"apiVersion", "apps/v1"}, {"kind", kind}, {"name", "agent"}, {"uid", "1"}}};
    api_.Put(pod);
  }
  // Node n is full of three pods of quota a, whose min covers them, and ns/last.
  void FillBeside(const std::string& ns, const std::string& kind, int priority) {
    Node("n", "4");
    CpuQuotas({{"a", "3"}, {"b", "1"}});
    Pods("a", {"p1", "p2", "p3"});
    Run();
    Pod(ns, "last", "1", priority);
    if (!kind.empty()) OwnedBy(kind, ns + "/last");
    Run();
    ASSERT_EQ(At(ns + "/last"), "n");
    Pod("b", "q");
    Run();
  }
};

constexpr int kSystem = 2'000'000'000;  // system-cluster-critical

// Owners and priorities are fields that tenants write.
TEST_F(SchedulerSparedPodsTest, EvictsBorrowerThatNamesDaemonSetAsOwner) {
  FillBeside("a", "DaemonSet", 0);
  EXPECT_EQ(At("a/last"), "gone");
  EXPECT_EQ(At("b/q"), "n") << WhyOf("b/q");
}

TEST_F(SchedulerSparedPodsTest, EvictsBorrowerThatNamesNodeAsOwner) {
  FillBeside("a", "Node", 0);
  EXPECT_EQ(At("a/last"), "gone");
}

TEST_F(SchedulerSparedPodsTest, EvictsBorrowerOfSystemPriority) {
  FillBeside("a", "", kSystem);
  EXPECT_EQ(At("a/last"), "gone");
  EXPECT_EQ(At("b/q"), "n") << WhyOf("b/q");
}

TEST_F(SchedulerSparedPodsTest, EvictsGangWithMemberThatNamesDaemonSetAsOwner) {
  Node("n", "4");
  CpuQuotas({{"a", "2"}, {"b", "2"}});
  Pods("a", {"p1", "p2"});
  Run();
  Group("a", "g", 2);
  Members("a", "g", {"g1", "g2"});
  OwnedBy("DaemonSet", "a/g1");
  Run();
  ASSERT_EQ(Count({"a/g1", "a/g2"}, "n"), 2);
  Pod("b", "q");
  Run();
  EXPECT_EQ(Count({"a/g1", "a/g2"}, "gone"), 2);
  EXPECT_EQ(At("b/q"), "n") << WhyOf("b/q");
}

TEST_F(SchedulerSparedPodsTest, DoesNotEvictDaemonSetPodWithoutQuota) {
  FillBeside("c", "DaemonSet", 0);
  EXPECT_EQ(At("c/last"), "n");
}

TEST_F(SchedulerSparedPodsTest, DoesNotEvictPodOfSystemPriorityWithoutQuota) {
  FillBeside("c", "", kSystem);
  EXPECT_EQ(At("c/last"), "n");
}

TEST_F(SchedulerSparedPodsTest, DoesNotEvictPodOfKubeSystem) {
  FillBeside("kube-system", "", 0);
  EXPECT_EQ(At("kube-system/last"), "n");
}

TEST_F(SchedulerSparedPodsTest, DoesNotEvictPodOfExemptNamespace) {
  UseQuotaArguments("{reclaimExemptNamespaces: [a]}");
  FillBeside("a", "", 0);
  EXPECT_EQ(At("a/last"), "n");
  EXPECT_EQ(At("b/q"), "");
}

// Another client has evicted a member of it.
TEST_F(SchedulerSparedPodsTest, DoesNotEvictRestOfGangWithinMin) {
  CpuNodes({{"n1", "4"}, {"n2", "1"}});
  CpuQuotas({{"a", "4"}, {"b", "1"}, {"c", "0"}});
  Group("a", "g", 2);
  for (const char* name : {"g1", "g2"}) {
    PodWith("a", name, {{"cpu", "1"}}, 0, {{"scheduling.x-k8s.io/pod-group", "g"}},
            {{"nodeSelector", {{"name", "n1"}}}});
  }
  Run();
  On("n2", "c", "p", "1");
  Run();
  ASSERT_EQ(Count({"a/g1", "a/g2"}, "n1"), 2);
  ASSERT_EQ(At("c/p"), "n2");
  LetPodsEndSlowly();
  EvictedByAnother("a/g1");
  Run();
  On("n2", "b", "q", "1");
  Run();
  EXPECT_EQ(At("c/p"), "ending");
  EXPECT_EQ(At("a/g2"), "n1") << "min of a covers it";
}

// The pending pod needs no eviction.
TEST_F(SchedulerSparedPodsTest, DoesNotEvictRestOfGangWithoutNeed) {
  CpuNodes({{"n1", "4"}, {"n2", "1"}});
  CpuQuotas({{"a", "4"}, {"b", "1"}});
  Group("a", "g", 2);
  for (const char* name : {"g1", "g2"}) {
    PodWith("a", name, {{"cpu", "1"}}, 0, {{"scheduling.x-k8s.io/pod-group", "g"}},
            {{"nodeSelector", {{"name", "n1"}}}});
  }
  Run();
  On("n2", "b", "old", "1");
  Run();
  LetPodsEndSlowly();
  for (const char* key : {"a/g1", "b/old"}) {
    EvictedByAnother(key);
  }
  Run();
  On("n2", "b", "q", "1");
  Run();
  EXPECT_EQ(At("a/g2"), "n1") << "min of a covers it, and b/q needs nobody: " << WhyOf("b/q");
}

TEST_F(SchedulerSparedPodsTest, EvictsNothingForGangWhileFreeGpuIsPartitioned) {
  PartitionBesideABorrower();
  Group("b", "g", 2);
  for (const char* name : {"g1", "g2"}) {
    PodOf("b", name, "nvidia.com/mig-3g.20gb", "1", 0, {{"scheduling.x-k8s.io/pod-group", "g"}});
  }
  Run();
  EXPECT_EQ(At("a/p"), "g") << WhyOf("b/g1");
}

// The agent has yet to report the slice of a finished pod as free.
class SchedulerEndsTest : public ClaimsFixture {
 protected:
  // C/old finishes. A pending pod of its quota could use its slots or those of d/borrower.
  void EndBesideABorrower(const std::string& next) {
    GpuNode("g", 1);
    Quota("c", {{"nos.nebuly.com/gpu-memory", "20"}});
    Quota("d", {{"nos.nebuly.com/gpu-memory", "0"}});
    Quota("idle", {{"nos.nebuly.com/gpu-memory", "10"}});
    Report("g", "4g.20gb@0:free,2g.10gb@4:free");
    PodOf("c", "old", "nvidia.com/mig-4g.20gb", "1");
    PodOf("d", "borrower", "nvidia.com/mig-2g.10gb", "1");
    Run();
    ReportHolders("4g.20gb@0=c/old,2g.10gb@4=d/borrower");
    ASSERT_EQ(Count({"c/old", "d/borrower"}, "g"), 2);
    LetPodsEndSlowly();
    PodOf("c", "next", next, "1");
    RunFor(seconds(60));
    Json pod = *api_.Find("pods", "c/old");
    MakeObject(pod, "status")["phase"] = "Succeeded";
    api_.Put(pod);
    Run();
    ASSERT_EQ(At("d/borrower"), "g") << "4 slots are about to be free: " << WhyOf("c/next");
  }
  void ReportHolders(const std::string& holders) {
    UpdateNode("g", {{"nos.nebuly.com/status-layout-0", "4g.20gb@0:used,2g.10gb@4:used"},
                     {"nos.nebuly.com/status-holders-0", holders}});
    Run();
  }
};

TEST_F(SchedulerEndsTest, EvictsNothingBeforeAgentReportsFreedSlots) {
  EndBesideABorrower("nvidia.com/mig-3g.20gb");
  UpdateNode("g", {{"nos.nebuly.com/status-layout-0", "4g.20gb@0:free,2g.10gb@4:used"},
                   {"nos.nebuly.com/status-holders-0", "2g.10gb@4=d/borrower"}});
  Run();
  EXPECT_EQ(At("d/borrower"), "g");
  EXPECT_EQ(Spec("g"), "3g.20gb@0,2g.10gb@4");
}

TEST_F(SchedulerEndsTest, EvictsNothingBeforeAgentReportsForPartitioner) {
  LeavePartitioningToPartitioner();
  EndBesideABorrower("nvidia.com/mig-2g.10gb");
}

TEST_F(SchedulerEndsTest, EvictsBorrowerWhenAgentNeverReports) {
  EndBesideABorrower("nvidia.com/mig-3g.20gb");
  RunFor(seconds(60));
  EXPECT_EQ(At("d/borrower"), "ending");
}

// Pods without quotas: as with Kueue, which ends the pods of one Job to admit a more important one.
TEST_F(SchedulerEndsTest, PreemptsNothingBeforeAgentReportsFreedSlots) {
  GpuNode("g", 1);
  Report("g", "3g.20gb@0:free,3g.20gb@4:free");
  PodOf("c", "old", "nvidia.com/mig-3g.20gb", "1");
  PodOf("c", "stays", "nvidia.com/mig-3g.20gb", "1");
  Run();
  UpdateNode("g", {{"nos.nebuly.com/status-layout-0", "3g.20gb@0:used,3g.20gb@4:used"},
                   {"nos.nebuly.com/status-holders-0", "3g.20gb@0=c/old,3g.20gb@4=c/stays"}});
  Run();
  ASSERT_EQ(Count({"c/old", "c/stays"}, "g"), 2);
  LetPodsEndSlowly();
  Json pod = *api_.Find("pods", "c/old");
  MakeObject(pod, "status")["phase"] = "Failed";
  api_.Put(pod);
  PodOf("c", "urgent", "nvidia.com/mig-3g.20gb", "1", 1000);
  RunFor(seconds(20));
  EXPECT_EQ(At("c/stays"), "g") << WhyOf("c/urgent");
  UpdateNode("g", {{"nos.nebuly.com/status-layout-0", "3g.20gb@0:free,3g.20gb@4:used"},
                   {"nos.nebuly.com/status-holders-0", "3g.20gb@4=c/stays"}});
  Run();
  EXPECT_EQ(At("c/urgent"), "g") << WhyOf("c/urgent");
  EXPECT_EQ(At("c/stays"), "g");
}

TEST_F(SchedulerEndsTest, PreemptsWhenAgentNeverReports) {
  GpuNode("g", 1);
  Report("g", "3g.20gb@0:free,3g.20gb@4:free");
  PodOf("c", "old", "nvidia.com/mig-3g.20gb", "1");
  PodOf("c", "stays", "nvidia.com/mig-3g.20gb", "1");
  Run();
  UpdateNode("g", {{"nos.nebuly.com/status-layout-0", "3g.20gb@0:used,3g.20gb@4:used"},
                   {"nos.nebuly.com/status-holders-0", "3g.20gb@0=c/old,3g.20gb@4=c/stays"}});
  LetPodsEndSlowly();
  Json pod = *api_.Find("pods", "c/old");
  MakeObject(pod, "status")["phase"] = "Failed";
  api_.Put(pod);
  PodOf("c", "urgent", "nvidia.com/mig-3g.20gb", "1", 1000);
  RunFor(seconds(90));
  EXPECT_EQ(At("c/stays"), "ending") << WhyOf("c/urgent");
}

// The wait of 30 s begins again with the first eviction, before its slots are repartitioned.
TEST_F(SchedulerEndsTest, EvictsNoFurtherPodWhileSlotsAreRepartitioned) {
  GpuNode("g", 1);
  Quota("c", {{"nos.nebuly.com/gpu-memory", "40"}});
  Quota("d", {{"nos.nebuly.com/gpu-memory", "0"}});
  Report("g", "4g.20gb@0:free,2g.10gb@4:free");
  PodOf("d", "older", "nvidia.com/mig-4g.20gb", "1");
  PodOf("d", "younger", "nvidia.com/mig-2g.10gb", "1");
  Run();
  ReportHolders("4g.20gb@0=d/older,2g.10gb@4=d/younger");
  PodOf("c", "q", "nvidia.com/mig-3g.20gb", "1");
  RunFor(seconds(20));
  ASSERT_EQ(At("d/younger"), "gone");
  UpdateNode("g", {{"nos.nebuly.com/status-layout-0", "4g.20gb@0:used,2g.10gb@4:free"},
                   {"nos.nebuly.com/status-holders-0", "4g.20gb@0=d/older"}});
  RunFor(seconds(20));
  EXPECT_EQ(Spec("g"), "4g.20gb@0,3g.20gb@4");
  EXPECT_EQ(At("d/older"), "g");
}

}  // namespace
}  // namespace nos::controllers
