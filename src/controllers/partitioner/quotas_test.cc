// Pods for which their quota has less than they ask for together.
#include "controllers/partitioner/fixture_test.h"
#include "controllers/planned_gangs.h"

namespace nos::controllers {
namespace {

class PartitionerQuotasTest : public PartitionerTest {
 protected:
  PartitionerQuotasTest() {
    runner_ = std::make_unique<reconcile::Runner>(*partitioner_, api_, WatchingGangs());
  }
  // Of GPU memory, in GB.
  void Quota(const std::string& gb) {
    const JsonObject memory = {{"nos.nebuly.com/gpu-memory", gb}};
    api_.Put({{"apiVersion", "nos.nebuly.com/v1alpha1"},
              {"kind", "ElasticQuota"},
              {"metadata", {{"namespace", "ml"}, {"name", "quota"}, {"uid", "q"}}},
              {"spec", {{"min", memory}, {"max", memory}}}});
  }
  // Pods of one 1g.5gb each, of which two have to be together.
  void Gang(const std::vector<std::string>& names) {
    api_.Put({{"kind", "PodGroup"},
              {"metadata", {{"namespace", "ml"}, {"name", "g"}}},
              {"spec", {{"minMember", 2}}}});
    for (const std::string& name : names) {
      Pod(name, "1g.5gb");
      Change("pods", "ml/" + name, [](Json& pod) {
        MakeObject(pod, "metadata", "labels")["scheduling.x-k8s.io/pod-group"] = "g";
      });
    }
  }
};

// What was told last must not lead to another plan, that is told again.
TEST_F(PartitionerQuotasTest, ComesToRestWhereNothingCanBeDone) {
  Node("n", {{0, "7g.40gb@0:used"}});
  Quota("40");
  for (const char* name : {"p1", "p2"}) Pod(name, "7g.40gb");
  Run(minutes(1));
  const size_t before = api_.writes.size();
  Run(minutes(30));
  EXPECT_LT(api_.writes.size(), before + 10);
}

TEST_F(PartitionerQuotasTest, WhatNoPlanCanServeStandsInNobodysWay) {
  Node("n", {{0, ""}});
  Quota("40");
  Pod("impossible", "1g.5gb", "8");
  Pod("p", "1g.5gb");
  Run(minutes(1));
  EXPECT_NE(Spec("n"), "");
}

TEST_F(PartitionerQuotasTest, AGangIsPlannedForIfItsQuotaHasEnough) {
  Node("n", {{0, ""}});
  Quota("10");
  Gang({"g1", "g2", "g3"});
  Run(minutes(1));
  EXPECT_NE(Spec("n").find("1g.5gb"), std::string::npos);
}

// Its pods are looked at for their reason to be told; that makes them no hopeless ones.
TEST_F(PartitionerQuotasTest, AGangIsPlannedForBehindSeveralThatNoPlanCanServe) {
  Node("n", {{0, ""}});
  Quota("40");
  Pod("a-impossible", "1g.5gb", "8");
  Pod("b-impossible", "2g.10gb", "4");
  Gang({"g1", "g2"});
  Run(minutes(1));
  EXPECT_NE(Spec("n").find("1g.5gb"), std::string::npos);
}

// Of a gang that is refused one has room in the quota beside the hopeless one, which is older.
TEST_F(PartitionerQuotasTest, AGangOfWhichPartHasRoomIsPlannedForBehindOneThatNoPlanCanServe) {
  Node("n", {{0, "4g.20gb@0:used"}});
  Quota("40");
  Pod("a-impossible", "1g.5gb", "7");
  Gang({"g1", "g2"});
  Run(minutes(1));
  EXPECT_NE(Spec("n").find("1g.5gb"), std::string::npos);
}

// As for schedulers, who count it.
TEST_F(PartitionerQuotasTest, APodOnNoNodeCounts) {
  Node("n", {{0, ""}});
  Quota("40");
  Pod("adrift", "7g.40gb");
  Bind("adrift", "away");
  Pod("p", "1g.5gb");
  Run(minutes(1));
  EXPECT_EQ(Spec("n"), "");
}

// Its scheduler has chosen a node for q, where somebody has yet to end, and counts it.
TEST_F(PartitionerQuotasTest, WhoIsPromisedANodeThatIsNotEmptyCounts) {
  Node("n1", {{0, "7g.40gb@0:used"}});
  Node("n2", {{0, ""}});
  Quota("40");
  api_.Put({{"kind", "Pod"},
            {"metadata",
             {{"namespace", "other"},
              {"name", "v"},
              {"uid", "v"},
              {"deletionTimestamp", "2027-01-15T08:00:00Z"}}},
            {"spec",
             {{"nodeName", "n1"},
              {"containers",
               JsonArray{{{"name", "main"},
                          {"resources", {{"limits", {{"nvidia.com/mig-7g.40gb", "1"}}}}}}}}}},
            {"status", {{"phase", "Running"}}}});
  Pod("q", "7g.40gb");
  Change("pods", "ml/q", [](Json& pod) { MakeObject(pod, "status")["nominatedNodeName"] = "n1"; });
  clock_.Advance(seconds(5));
  Pod("p", "1g.5gb");
  Run(minutes(1));
  EXPECT_EQ(Spec("n2"), "") << "max is 40, and q has 40: its scheduler refuses p";
  const size_t before = api_.writes.size();
  Run(minutes(30));
  EXPECT_LT(api_.writes.size(), before + 10);
}

class PartitionerPromisesTest : public PartitionerTest {
 protected:
  PartitionerPromisesTest() {
    runner_ = std::make_unique<reconcile::Runner>(*partitioner_, api_, WatchingGangs());
    Node("n0", {{0, "7g.40gb@0:used"}});
    Node("n1", {{0, "7g.40gb@0:used"}});
    Node("n2", {{0, ""}});
  }
  void Quota(const std::string& ns, const std::string& gb) {
    api_.Put({{"apiVersion", "nos.nebuly.com/v1alpha1"},
              {"kind", "ElasticQuota"},
              {"metadata", {{"namespace", ns}, {"name", "quota"}, {"uid", ns}}},
              {"spec", {{"min", {{"nos.nebuly.com/gpu-memory", gb}}}}}});
  }
  // Of 40 GB; on a node, or without one and, perhaps, promised one.
  void PodIn(const std::string& ns, const std::string& name, const std::string& node,
             const std::string& nominee = "") {
    JsonObject spec{{"containers",
                     JsonArray{{{"name", "main"},
                                {"resources", {{"limits", {{"nvidia.com/mig-7g.40gb", "1"}}}}}}}}};
    JsonObject status{{"phase", node.empty() ? "Pending" : "Running"}};
    if (!node.empty()) spec["nodeName"] = node;
    if (!nominee.empty()) status["nominatedNodeName"] = nominee;
    if (node.empty()) {
      status["conditions"] =
          JsonArray{{{"type", "PodScheduled"}, {"status", "False"}, {"reason", "Unschedulable"}}};
    }
    api_.Put({{"kind", "Pod"},
              {"metadata",
               {{"namespace", ns},
                {"name", name},
                {"uid", ns + name},
                {"creationTimestamp", FormatTime(clock_.Now())}}},
              {"spec", spec},
              {"status", status}});
    clock_.Advance(seconds(1));
  }
  void Ends(const std::string& key) {
    Change("pods", key, [](Json& pod) {
      MakeObject(pod, "metadata")["deletionTimestamp"] = "2027-01-15T08:00:00Z";
      MakeObject(pod, "status")["conditions"] = JsonArray{
          {{"type", "DisruptionTarget"}, {"status", "True"}, {"reason", "PreemptionByScheduler"}}};
    });
  }
};

// b borrows for a pod that is promised a node on which somebody has yet to end.
TEST_F(PartitionerPromisesTest, AGuaranteeIsPlannedForBesideAPromisedShare) {
  Quota("a", "40");
  Quota("b", "40");
  PodIn("b", "r", "n0");
  PodIn("other", "v", "n1");
  Ends("other/v");
  PodIn("b", "p", "", "n1");
  Run(minutes(1));
  PodIn("a", "q", "");
  Run(minutes(10));
  EXPECT_NE(Spec("n2"), "") << WriteJson(*api_.Find("pods", "a/q"));
}

// Its quota is all that it waits for, and those who have it are on their way out.
TEST_F(PartitionerPromisesTest, WhoHadToLeaveIsNotWaitedForWhereThereIsRoom) {
  Quota("a", "40");
  Quota("c", "0");
  PodIn("c", "v", "n0");
  PodIn("a", "q", "");
  Ends("c/v");
  Change("pods", "a/q", [](Json& pod) { MakeObject(pod, "status")["nominatedNodeName"] = "n2"; });
  Run(minutes(30));
  EXPECT_NE(Spec("n2"), "") << WriteJson(*api_.Find("pods", "a/q"));
}

}  // namespace
}  // namespace nos::controllers
