// Gangs: placed together or not at all, slices included. A pending gang holds nothing.
#include <algorithm>
#include <string>

#include "controllers/scheduler/fixture_test.h"
#include "scheduling/framework.h"

namespace nos::controllers {
namespace {

class GangTest : public SchedulerFixture {
 protected:
  void Node(const std::string& name, const std::string& cpu) { CpuNode(name, cpu); }
  void Pod(const std::string& name, const std::string& group, const std::string& resource = "cpu",
           const std::string& amount = "1", int priority = 0) {
    JsonObject labels;
    if (!group.empty()) labels["scheduling.x-k8s.io/pod-group"] = group;
    PutPod(name, resource, amount, priority, labels);
  }
  // The number of these pods that are bound.
  int Bound(const std::string& prefix, int count) {
    int bound = 0;
    for (int i = 0; i < count; ++i) {
      const Json* pod = api_.Find("pods", "ml/" + prefix + std::to_string(i));
      bound += pod != nullptr && !FindString(*pod, "spec", "nodeName").empty() ? 1 : 0;
    }
    return bound;
  }
  void Pods(const std::string& prefix, int count, const std::string& group,
            const std::string& resource = "cpu", const std::string& amount = "1",
            int priority = 0) {
    for (int i = 0; i < count; ++i) {
      Pod(prefix + std::to_string(i), group, resource, amount, priority);
    }
  }
  // Members p0 and p1 run, and two are required; p2 waits for its slice on node "a".
  void TwoRunAndOneWaits() {
    Node("n", "2");
    Group("g", 2);
    Pods("p", 2, "g");
    Run();
    ASSERT_EQ(Bound("p", 2), 2);
    GpuNode("a", 1);
    Pod("p2", "g", "nvidia.com/mig-7g.40gb");
    Run();
    ASSERT_EQ(Spec("a"), "7g.40gb@0");
  }
  // Acts as provisioner and volume controller.
  void Provision(const std::string& claim) {
    api_.Put({{"kind", "PersistentVolume"},
              {"metadata", {{"name", "made"}}},
              {"spec",
               {{"capacity", {{"storage", "1Gi"}}},
                {"storageClassName", "local"},
                {"claimRef", {{"namespace", "ml"}, {"name", claim}, {"uid", claim}}}}},
              {"status", {{"phase", "Bound"}}}});
    Json bound = *api_.Find("persistentvolumeclaims", "ml/" + claim);
    MakeObject(bound, "spec")["volumeName"] = "made";
    MakeObject(bound, "metadata", "annotations")["pv.kubernetes.io/bind-completed"] = "yes";
    MakeObject(bound, "status")["phase"] = "Bound";
    api_.Put(bound);
  }
  void Partition(const std::string& node) { Report(node, "7g.40gb@0:free"); }
};

// No plugin refused the gang while there was no node, so any event may help.
TEST_F(GangTest, FirstNodeWakesGang) {
  Group("g", 2);
  Pods("p", 2, "g");
  Run();
  EXPECT_EQ(Bound("p", 2), 0);
  Node("n", "2");
  Run();
  EXPECT_EQ(Bound("p", 2), 2);
}

TEST_F(GangTest, NewMemberOfLargeGangUpdatesOnlyItsOwnCondition) {
  Node("n", "999");
  Group("g", 101);
  Pod("p0", "g");
  Run();
  EXPECT_EQ(Why("p0"),
            "pod group ml/g: fewer than the 101 pods that are placed together are there");
  api_.writes.clear();
  Pod("p1", "g");
  Run();
  EXPECT_EQ(Why("p1"), Why("p0"));
  EXPECT_EQ(std::ranges::count_if(
                api_.writes,
                [](const kube::ApiRequest& request) { return request.path.ends_with("/status"); }),
            1);
}

TEST_F(GangTest, WorkloadPodGroupIsGang) {
  Node("n", "2");
  api_.Put({{"kind", "Workload"},
            {"metadata", {{"namespace", "ml"}, {"name", "w"}}},
            {"spec",
             {{"podGroups",
               JsonArray{{{"name", "workers"}, {"policy", {{"gang", {{"minCount", 3}}}}}}}}}}});
  Pods("p", 3, "");
  for (int i = 0; i < 3; ++i) {
    Json pod = *api_.Find("pods", "ml/p" + std::to_string(i));
    MakeObject(pod, "spec")["workloadRef"] = {{"name", "w"}, {"podGroup", "workers"}};
    api_.Put(pod);
  }
  Run();
  EXPECT_EQ(Bound("p", 3), 0);
  Node("m", "1");
  Run();
  EXPECT_EQ(Bound("p", 3), 3);
}

// In Kubernetes since 1.36.
TEST_F(GangTest, SchedulingGroupIsGang) {
  Node("n", "2");
  Pods("p", 3, "");
  for (int i = 0; i < 3; ++i) {
    Json pod = *api_.Find("pods", "ml/p" + std::to_string(i));
    MakeObject(pod, "spec")["schedulingGroup"] = {{"podGroupName", "workers"}};
    api_.Put(pod);
  }
  Run();
  EXPECT_EQ(Bound("p", 3), 0) << "nobody knows how many belong together";
  api_.Put({{"kind", "PodGroup"},
            {"metadata", {{"namespace", "ml"}, {"name", "workers"}}},
            {"spec", {{"schedulingPolicy", {{"gang", {{"minCount", 3}}}}}}}});
  Run();
  EXPECT_EQ(Bound("p", 3), 0);
  Node("m", "1");
  Run();
  EXPECT_EQ(Bound("p", 3), 3);
}

// Slices are created on two nodes; no member is bound before both exist.
TEST_F(GangTest, BindsGangWhenAllSlicesExist) {
  GpuNode("a", 1);
  GpuNode("b", 1);
  Group("g", 2);
  Pods("p", 2, "g", "nvidia.com/mig-7g.40gb", "1");
  Run();
  EXPECT_EQ(Spec("a"), "7g.40gb@0");
  EXPECT_EQ(Spec("b"), "7g.40gb@0");
  Partition("a");
  Run();
  EXPECT_EQ(Bound("p", 2), 0);
  Partition("b");
  Run();
  EXPECT_EQ(Bound("p", 2), 2);
}

TEST_F(GangTest, ReleasesGangWhenOneSliceFails) {
  GpuNode("a", 1);
  GpuNode("b", 1);
  Group("g", 2);
  Pods("p", 2, "g", "nvidia.com/mig-7g.40gb", "1");
  Run();
  UpdateNode(
      "b",
      {{"nos.nebuly.com/status-partitioning-plan", Plan("b")},
       {"nos.nebuly.com/partitioning-result",
        reconcile::WritePlanResult({Plan("b"), false, {{0, "7g.40gb@0", "InUse", "in use"}}})}});
  Run();
  EXPECT_EQ(Bound("p", 2), 0);
  EXPECT_EQ(Spec("a") + Spec("b"), "") << "what was asked for is taken back";
  GpuNode("c", 1);
  UpdateNode("a", {{"nos.nebuly.com/status-partitioning-plan", Plan("a")}});
  Run();
  EXPECT_EQ(Spec("a") + Spec("c"), "7g.40gb@07g.40gb@0") << "b rests";
}

// If a slice is not created, no claim must keep its pod on a node.
TEST_F(GangTest, SelectsNodesOfClaimsWhenAllSlicesExist) {
  Node("n", "2");
  GpuNode("a", 1);
  Group("g", 2);
  Pod("p0", "g");
  GiveClaim("p0");
  Pod("p1", "g", "nvidia.com/mig-7g.40gb");
  GiveClaim("p1");
  Run();
  ASSERT_EQ(Spec("a"), "7g.40gb@0");
  EXPECT_EQ(ClaimsNode("p0") + ClaimsNode("p1"), "");
  Partition("a");
  Run();
  EXPECT_EQ(ClaimsNode("p0") + ClaimsNode("p1"), "na");
}

TEST_F(GangTest, BindsGangWhenAllVolumesExist) {
  Node("n", "2");
  Group("g", 2);
  Pod("p0", "g");
  Pod("p1", "g");
  GiveClaim("p1");
  Run();
  ASSERT_EQ(ClaimsNode("p1"), "n");
  EXPECT_EQ(NodeOf("p0") + NodeOf("p1"), "") << "one of them cannot run yet";
  Provision("p1");
  Run();
  EXPECT_EQ(NodeOf("p0") + NodeOf("p1"), "nn");
}

TEST_F(GangTest, DoesNotWaitForSlicesOfOptionalMembers) {
  Node("n", "2");
  GpuNode("a", 1);
  Group("g", 2);
  for (const char* name : {"p0", "p1"}) {
    Pod(name, "g");
    GiveClaim(name);
  }
  Pod("p2", "g", "nvidia.com/mig-7g.40gb");
  Run();
  ASSERT_EQ(Spec("a"), "7g.40gb@0");
  EXPECT_EQ(ClaimsNode("p0") + ClaimsNode("p1"), "nn");
}

TEST_F(GangTest, CountsMemberBoundByAnotherClientToItsNode) {
  Node("n", "2");
  GpuNode("a", 1);
  Group("g", 2);
  Pod("p0", "g");
  Pod("p1", "g", "nvidia.com/mig-7g.40gb");
  Run();
  ASSERT_EQ(Spec("a"), "7g.40gb@0");
  BindElsewhere("p1", "a");
  Run();
  EXPECT_EQ(NodeOf("p0"), "n");
}

// Succeeded members count, because they have done their part.
TEST_F(GangTest, CountsSucceededMembers) {
  TwoRunAndOneWaits();
  for (const char* name : {"p0", "p1"}) SetPhase(name, "Succeeded");
  Run();
  Partition("a");
  Run();
  EXPECT_EQ(NodeOf("p2"), "a");
  Pod("p3", "g");
  Run();
  EXPECT_EQ(NodeOf("p3"), "n") << "one more is like any pod";
}

TEST_F(GangTest, ReleasesMembersWhenGangIsTooSmall) {
  TwoRunAndOneWaits();
  SetPhase("p0", "Failed");
  Run();
  EXPECT_EQ(Spec("a"), "7g.40gb@0") << "p1 and p2 are two";
  api_.Remove("pods", "ml/p1");
  Run();
  EXPECT_EQ(Spec("a"), "");
  EXPECT_EQ(Why("p2"), "pod group ml/g: 1 of the 2 pods that are placed together are there");
  Pod("other", "", "nvidia.com/mig-7g.40gb");
  UpdateNode("a", {{"nos.nebuly.com/status-partitioning-plan", Plan("a")}});
  Run();
  EXPECT_EQ(Spec("a"), "7g.40gb@0");
  Partition("a");
  Run();
  EXPECT_EQ(NodeOf("other"), "a");
  Pod("p3", "g");
  GpuNode("b", 1);
  Run();
  Partition("b");
  Run();
  EXPECT_EQ(NodeOf("p2") + NodeOf("p3"), "bn");
}

// A member that leaves the gang no longer waits for it.
TEST_F(GangTest, PlacesFormerMemberAlone) {
  TwoRunAndOneWaits();
  SetPhase("p0", "Failed");
  ChangePod("p2", [](Json& pod) { MakeObject(pod, "metadata")["labels"] = JsonObject{}; });
  Run();
  Partition("a");
  Run();
  EXPECT_EQ(NodeOf("p2"), "a");
}

// One node is deleted while its pod terminates: the gang no longer fits.
TEST_F(GangTest, DropsNominationsOfGangThatNoLongerFits) {
  Node("n1", "1");
  Node("n2", "1");
  Pods("low", 2, "");
  Run();
  ASSERT_EQ(Bound("low", 2), 2);
  LetPodsEndSlowly();
  Group("g", 2);
  Pods("p", 2, "g", "cpu", "1", 9);
  Run();
  ASSERT_EQ(Nominee("p0") + Nominee("p1"), "n1n2");
  api_.Remove("nodes", "n2");
  Run();
  for (const char* name : {"low0", "low1"}) api_.Remove("pods", std::string("ml/") + name);
  Run();
  EXPECT_EQ(Nominee("p0") + Nominee("p1"), "");
  Pod("other", "", "cpu", "1", 5);
  Run();
  EXPECT_EQ(NodeOf("other"), "n1");
}

// Like the test above, but a member is deleted: the gang has too few members.
TEST_F(GangTest, DropsNominationsOfGangWithTooFewMembers) {
  Node("n", "2");
  Pods("low", 2, "");
  Run();
  LetPodsEndSlowly();
  Group("g", 2);
  Pods("p", 2, "g", "cpu", "1", 9);
  Run();
  ASSERT_EQ(Nominee("p0") + Nominee("p1"), "nn");
  api_.Remove("pods", "ml/p1");
  api_.Remove("pods", "ml/low0");
  Run();
  EXPECT_EQ(Nominee("p0"), "");
  Pod("other", "", "cpu", "1", 5);
  Run();
  EXPECT_EQ(NodeOf("other"), "n");
}

// A pod of higher priority takes one of the freed places: exactly one more victim is evicted.
TEST_F(GangTest, OwnNominationsDoNotBlockGang) {
  for (const char* node : {"n1", "n2", "n3"}) Node(node, "1");
  Pods("low", 3, "");
  Run();
  ASSERT_EQ(Bound("low", 3), 3);
  LetPodsEndSlowly();
  Group("g", 2);
  Pods("p", 2, "g", "cpu", "1", 9);
  Run();
  std::map<std::string, std::string> on;
  for (const char* low : {"low0", "low1", "low2"}) on[NodeOf(low)] = low;
  const std::string lost = Nominee("p0"), kept = Nominee("p1");
  ASSERT_FALSE(lost.empty() || kept.empty());
  Pod("rival", "", "cpu", "1", 100);
  BindElsewhere("rival", lost);
  api_.Remove("pods", "ml/" + on[lost]);
  api_.Remove("pods", "ml/" + on[kept]);
  Run();
  for (const auto& [node, low] : on) {
    if (node != lost && node != kept) {
      ASSERT_TRUE(IsEnding(low)) << Why("p0");
      api_.Remove("pods", "ml/" + low);
    }
  }
  Run();
  EXPECT_EQ(Bound("p", 2), 2) << Why("p0");
}

TEST_F(GangTest, CountsMemberBoundByAnotherScheduler) {
  Node("n", "9");
  for (const char* name : {"v", "w"}) {
    api_.Put({{"kind", "Workload"},
              {"metadata", {{"namespace", "ml"}, {"name", name}}},
              {"spec",
               {{"podGroups",
                 JsonArray{{{"name", "all"}, {"policy", {{"gang", {{"minCount", 2}}}}}}}}}}});
    for (const char* member : {"0", "1"}) {
      const std::string pod = std::string(name) + member;
      Pod(pod, "");
      ChangePod(pod, [&](Json& json) {
        MakeObject(json, "spec")["workloadRef"] = {{"name", name}, {"podGroup", "all"}};
        if (pod.ends_with('1')) MakeObject(json, "spec")["schedulerName"] = "other";
      });
    }
  }
  Run();
  ASSERT_EQ(Why("w0"),
            "group all of workload ml/w: 1 of the 2 pods that are placed together are there");
  BindElsewhere("w1", "n");
  Run();
  EXPECT_EQ(NodeOf("w0"), "n");
  EXPECT_EQ(NodeOf("v0"), "");
}

// Refuses every reservation.
class Stubborn final : public scheduling::ReservePlugin {
 public:
  std::string Name() const override { return "Stubborn"; }
  scheduling::Verdict Reserve(const cluster::Pod&, std::string_view, cluster::ClusterSnapshot&,
                              scheduling::CycleState&) const override {
    return scheduling::Verdict::Unschedulable("Stubborn", "not now");
  }
  void Unreserve(const cluster::Pod&, std::string_view, cluster::ClusterSnapshot&,
                 scheduling::CycleState&) const override {}
};

TEST_F(GangTest, FailedReserveLeavesGangPending) {
  std::vector<scheduling::Framework::Entry> entries;
  entries.push_back({std::make_unique<Stubborn>()});
  const scheduling::Framework stubborn(std::move(entries));
  UseProfiles({{"default-scheduler", &stubborn}});
  Node("n", "2");
  Group("g", 2);
  Pods("p", 2, "g");
  for (int i = 0; i < 50; ++i) runner_->Step(clock_);
  EXPECT_EQ(Bound("p", 2), 0);
  EXPECT_EQ(Why("p0"), "pod group ml/g: 0 of its pods find a node together, and 2 must");
  End();
}

}  // namespace
}  // namespace nos::controllers
