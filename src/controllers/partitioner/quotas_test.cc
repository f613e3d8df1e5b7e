// Pods whose quota has less than they request together.
#include "controllers/partitioner/fixture_test.h"
#include "controllers/planned_gangs.h"

namespace nos::controllers {
namespace {

class PartitionerQuotasTest : public PartitionerTest {
 protected:
  PartitionerQuotasTest() {
    runner_ = std::make_unique<reconcile::Runner>(*partitioner_, api_, WatchingGangs());
  }
  // An ElasticQuota of GPU memory, in GB.
  void Quota(const std::string& gb) {
    const JsonObject memory = {{"nos.nebuly.com/gpu-memory", gb}};
    api_.Put({{"apiVersion", "nos.nebuly.com/v1alpha1"},
              {"kind", "ElasticQuota"},
              {"metadata", {{"namespace", "ml"}, {"name", "quota"}, {"uid", "q"}}},
              {"spec", {{"min", memory}, {"max", memory}}}});
  }
  // Pods of one 1g.5gb each. At least two of them must run together.
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

// Publishing the last reason must not cause another plan, which would be published again.
TEST_F(PartitionerQuotasTest, WritesNothingMoreWhenNothingCanBePlanned) {
  Node("n", {{0, "7g.40gb@0:used"}});
  Quota("40");
  for (const char* name : {"p1", "p2"}) Pod(name, "7g.40gb");
  Run(minutes(1));
  const size_t before = api_.writes.size();
  Run(minutes(30));
  EXPECT_LT(api_.writes.size(), before + 10);
}

TEST_F(PartitionerQuotasTest, UnplaceablePodDoesNotUseUpQuotaOfOthers) {
  Node("n", {{0, ""}});
  Quota("40");
  Pod("impossible", "1g.5gb", "8");
  Pod("p", "1g.5gb");
  Run(minutes(1));
  EXPECT_NE(Spec("n"), "");
}

TEST_F(PartitionerQuotasTest, PlansGangWithinQuota) {
  Node("n", {{0, ""}});
  Quota("10");
  Gang({"g1", "g2", "g3"});
  Run(minutes(1));
  EXPECT_NE(Spec("n").find("1g.5gb"), std::string::npos);
}

// The gang's pods are also examined to report their reason. They must not count as unplaceable
// because of that.
TEST_F(PartitionerQuotasTest, PlansGangBehindUnplaceablePods) {
  Node("n", {{0, ""}});
  Quota("40");
  Pod("a-impossible", "1g.5gb", "8");
  Pod("b-impossible", "2g.10gb", "4");
  Gang({"g1", "g2"});
  Run(minutes(1));
  EXPECT_NE(Spec("n").find("1g.5gb"), std::string::npos);
}

// One member of the refused gang fits into the quota beside the older unplaceable pod.
TEST_F(PartitionerQuotasTest, PlansGangThatFitsPartlyBesideUnplaceablePod) {
  Node("n", {{0, "4g.20gb@0:used"}});
  Quota("40");
  Pod("a-impossible", "1g.5gb", "7");
  Gang({"g1", "g2"});
  Run(minutes(1));
  EXPECT_NE(Spec("n").find("1g.5gb"), std::string::npos);
}

// Schedulers count such a pod, too.
TEST_F(PartitionerQuotasTest, CountsPodOnDeletedNodeInQuota) {
  Node("n", {{0, ""}});
  Quota("40");
  Pod("adrift", "7g.40gb");
  Bind("adrift", "away");
  Pod("p", "1g.5gb");
  Run(minutes(1));
  EXPECT_EQ(Spec("n"), "");
}

// The scheduler has nominated a node for q on which another pod is terminating, and counts q in the
// quota.
TEST_F(PartitionerQuotasTest, CountsPodNominatedToNodeWithTerminatingPod) {
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
  EXPECT_EQ(Spec("n2"), "") << "max is 40 and q uses 40, so the scheduler refuses p";
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
  // A pod of 40 GB: on a node, or pending and optionally nominated to one.
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

// Quota b borrows for a pod that is nominated to a node on which another pod is terminating.
TEST_F(PartitionerPromisesTest, PlansGuaranteedPodBesideNominatedBorrower) {
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

// The pod only waits for its quota, and the pods that use the quota are terminating.
TEST_F(PartitionerPromisesTest, DoesNotWaitForTerminatingPodsIfCapacityExists) {
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
