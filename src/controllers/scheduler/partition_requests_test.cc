// Partitioning by the scheduler: which nodes get which plan, when pods are bound, and what happens
// if a GPU is not partitioned. Tests play the agents.
#include <algorithm>
#include <string>

#include "controllers/scheduler/fixture_test.h"
#include "kube/testing/refuse.h"

namespace nos::controllers {
namespace {

constexpr const char* kSpecPlan = "nos.nebuly.com/spec-partitioning-plan";

class PartitionRequestsTest : public SchedulerFixture {
 protected:
  void Node(const std::string& name, int gpus = 2) { GpuNode(name, gpus); }
  void Pod(const std::string& name, const std::string& profile, int count = 1, int priority = 0) {
    PutPod(name, "nvidia.com/mig-" + profile, std::to_string(count), priority);
  }
  int PlansWritten() {
    return static_cast<int>(
        std::count_if(api_.writes.begin(), api_.writes.end(), [](const kube::ApiRequest& request) {
          return request.method == "PATCH" && request.path.find("/nodes/") != std::string::npos;
        }));
  }

  // The agent has carried out the plan and reports this layout and these counts.
  void Partition(const std::string& node, int gpu, const std::string& layout,
                 const JsonObject& allocatable) {
    UpdateNode(node,
               {{"nos.nebuly.com/status-layout-" + std::to_string(gpu), layout},
                {"nos.nebuly.com/status-partitioning-plan", Annotation(node, kSpecPlan)}},
               allocatable);
  }
  // Nodes m and n are in use. The pod of m is evicted for p, which needs the whole GPU.
  void EvictOneOfTwo() {
    for (const char* node : {"m", "n"}) {
      Node(node, 1);
      Report(node, "4g.20gb@0:free");
    }
    for (const char* name : {"a", "b"}) Pod(name, "4g.20gb", 1, 1);
    Run();
    for (const char* node : {"m", "n"}) Report(node, "4g.20gb@0:used");
    Pod("p", "7g.40gb", 1, 3);
    Run();
    ASSERT_EQ(Nominee("p"), "m");
  }
  void FailPlan(const std::string& node, int gpu, const std::string& why) {
    const std::string plan = Annotation(node, kSpecPlan);
    UpdateNode(node, {{"nos.nebuly.com/status-partitioning-plan", plan},
                      {"nos.nebuly.com/partitioning-result",
                       reconcile::WritePlanResult({plan, false, {{gpu, "", "InUse", why}}})}});
  }
};

TEST_F(PartitionRequestsTest, BindsPodToNewlyCreatedSlice) {
  Node("n");
  Pod("p", "3g.20gb");
  Run();
  EXPECT_EQ(Spec("n", 0), "3g.20gb@4");
  EXPECT_EQ(Annotation("n", "nos.nebuly.com/spec-gpu-0-3g.20gb"), "1");
  EXPECT_EQ(Annotation("n", kSpecPlan), "1");
  EXPECT_EQ(Nominee("p"), "n") << "so that others know";
  EXPECT_EQ(NodeOf("p"), "") << "not before it is there";
  UpdateNode("n", {{"nos.nebuly.com/status-layout-0", "3g.20gb@4:free"}});
  Run();
  EXPECT_EQ(NodeOf("p"), "") << "nor before the kubelet offers it";
  Partition("n", 0, "3g.20gb@4:free", {{"nvidia.com/mig-3g.20gb", "1"}});
  Run();
  EXPECT_EQ(NodeOf("p"), "n");
}

// Each instance is reserved for one pod, and one patch requests all of them.
TEST_F(PartitionRequestsTest, OnePlanServesAllPodsOfANode) {
  Node("n", 1);
  for (const char* name : {"a", "b", "c"}) Pod(name, "2g.10gb");
  Pod("d", "1g.5gb");
  Pod("e", "1g.5gb");
  Run();
  EXPECT_EQ(PlansWritten(), 1);
  EXPECT_EQ(Spec("n", 0), "2g.10gb@0,2g.10gb@2,2g.10gb@4,1g.5gb@6");
  Partition("n", 0, "2g.10gb@0:free,2g.10gb@2:free,2g.10gb@4:free,1g.5gb@6:free",
            {{"nvidia.com/mig-2g.10gb", "3"}, {"nvidia.com/mig-1g.5gb", "1"}});
  Run();
  EXPECT_EQ(NodeOf("a") + NodeOf("b") + NodeOf("c") + NodeOf("d"), "nnnn");
  EXPECT_EQ(NodeOf("e"), "");
}

// The kubelet offers two of three instances: any two pods are bound.
TEST_F(PartitionRequestsTest, BindsOnlyAsManyPodsAsKubeletOffers) {
  Node("n", 1);
  for (const char* name : {"a", "b", "c"}) Pod(name, "2g.10gb");
  Run();
  Partition("n", 0, "2g.10gb@0:free,2g.10gb@2:free,2g.10gb@4:free",
            {{"nvidia.com/mig-2g.10gb", "2"}});
  Run();
  EXPECT_EQ((NodeOf("a") + NodeOf("b") + NodeOf("c")).size(), 2u);
  UpdateNode("n", {}, {{"nvidia.com/mig-2g.10gb", "3"}});
  Run();
  EXPECT_EQ(NodeOf("a") + NodeOf("b") + NodeOf("c"), "nnn");
}

TEST_F(PartitionRequestsTest, UsesAnotherGpuAfterFailedPartitioning) {
  Node("n");
  Pod("p", "3g.20gb");
  Run();
  ASSERT_EQ(Spec("n", 0), "3g.20gb@4");
  FailPlan("n", 0, "somebody computes there");
  Run();
  EXPECT_EQ(Spec("n", 0), "") << "what was asked for is taken back";
  Partition("n", 0, "", {});
  Run();
  EXPECT_EQ(Spec("n", 0), "");
  EXPECT_EQ(Spec("n", 1), "3g.20gb@4");
  Partition("n", 1, "3g.20gb@4:free", {{"nvidia.com/mig-3g.20gb", "1"}});
  Run();
  EXPECT_EQ(NodeOf("p"), "n");
}

TEST_F(PartitionRequestsTest, RetriesGpuWhenItsBackOffEnds) {
  Node("n", 1);
  Pod("p", "3g.20gb");
  Run();
  FailPlan("n", 0, "somebody computes there");
  Run();
  Partition("n", 0, "", {});  // the agent reports the withdrawn request as done
  Run();
  EXPECT_EQ(Spec("n", 0), "");
  EXPECT_EQ(Nominee("p"), "") << "nothing is promised to it now";
  clock_.Advance(seconds(60));
  Run();
  EXPECT_EQ(Spec("n", 0), "3g.20gb@4");
}

// A claim with a selected node would bind the pod to that node.
TEST_F(PartitionRequestsTest, SelectsNodeOfClaimOnlyAfterPartitioning) {
  Node("a", 1);
  Node("b", 1);
  Pod("p", "3g.20gb");
  GiveClaim("p");
  Run();
  ASSERT_EQ(Spec("a"), "3g.20gb@4");
  EXPECT_EQ(ClaimsNode("p"), "");
  FailPlan("a", 0, "somebody computes there");
  Run();
  EXPECT_EQ(Spec("b"), "3g.20gb@4") << "it may go elsewhere";
  EXPECT_EQ(ClaimsNode("p"), "");
  Partition("b", 0, "3g.20gb@4:free", {{"nvidia.com/mig-3g.20gb", "1"}});
  Run();
  EXPECT_EQ(ClaimsNode("p"), "b");
  EXPECT_EQ(NodeOf("p"), "") << "its volume is being made";
}

TEST_F(PartitionRequestsTest, DoesNotSelectCordonedNodeForClaim) {
  Node("n", 1);
  Pod("p", "3g.20gb");
  GiveClaim("p");
  Run();
  Cordon("n");
  Partition("n", 0, "3g.20gb@4:free", {{"nvidia.com/mig-3g.20gb", "1"}});
  Run();
  EXPECT_EQ(ClaimsNode("p"), "");
}

// A silent agent delays its node only, and this pod only until the deadline.
TEST_F(PartitionRequestsTest, UsesAnotherNodeWhenAgentIsSilent) {
  Node("a", 1);
  Pod("p", "3g.20gb");
  Run();
  ASSERT_EQ(Spec("a", 0), "3g.20gb@4");
  Node("b", 1);
  clock_.Advance(seconds(60));
  Run();
  EXPECT_EQ(Spec("a", 0), "");
  EXPECT_EQ(Spec("b", 0), "3g.20gb@4");
  EXPECT_EQ(Nominee("p"), "b");
}

TEST_F(PartitionRequestsTest, WithdrawsRequestOfDeletedPod) {
  Node("n", 1);
  Pod("p", "3g.20gb");
  Run();
  api_.Remove("pods", "ml/p");
  Run();
  EXPECT_EQ(Spec("n", 0), "");
}

// The node has changed: it is patched again when the watch shows that.
TEST_F(PartitionRequestsTest, RetriesPatchAfterConflictWhenNodeChanges) {
  Node("n", 1);
  Pod("p", "3g.20gb");
  const auto conflicts = Refuse(api_, "PATCH", "/nodes/", Status(Code::kConflict, "modified"), 1);
  Run();
  EXPECT_EQ(*conflicts, 1);
  EXPECT_EQ(PlansWritten(), 1) << "not before something is known to be other";
  UpdateNode("n", {{"somebody", "else"}});
  Run();
  EXPECT_EQ(Spec("n", 0), "3g.20gb@4");
}

// Giving up would leave the capacity freed for the pod to others.
TEST_F(PartitionRequestsTest, RetriesUnansweredPatch) {
  Node("n", 1);
  Pod("p", "3g.20gb");
  Refuse(api_, "PATCH", "/nodes/", Status(Code::kDeadline, "no answer"), 3);
  Run();
  EXPECT_EQ(PlansWritten(), 4);
  EXPECT_EQ(Spec("n", 0), "3g.20gb@4");
  EXPECT_EQ(CountEvents("FailedScheduling"), 0);
}

TEST_F(PartitionRequestsTest, WaitsForForeignPlanAfterConflict) {
  Node("n", 1);
  Pod("p", "3g.20gb");
  Refuse(api_, "PATCH", "/nodes/", Status(Code::kConflict, "the object has been modified"));
  Run();
  api_.intercept = nullptr;
  UpdateNode("n", {{kSpecPlan, "77"}, {"nos.nebuly.com/spec-layout-0", "1g.5gb@0"}});
  Run();
  EXPECT_EQ(Annotation("n", kSpecPlan), "77") << "it is under way";
  EXPECT_EQ(Spec("n", 0), "1g.5gb@0");
  Partition("n", 0, "1g.5gb@0:free", {{"nvidia.com/mig-1g.5gb", "1"}});
  Run();
  EXPECT_NE(Spec("n", 0).find("3g.20gb@4"), std::string::npos) << Spec("n", 0);
}

// Kubelets update node status all the time, which changes the resource version only.
TEST_F(PartitionRequestsTest, PatchesNodeAtItsLatestVersion) {
  Node("n", 1);
  Run();
  Json beat = *api_.Find("nodes", "n");
  MakeObject(beat, "status")["conditions"] =
      JsonArray{{{"type", "Ready"}, {"status", "True"}, {"reason", "StillThere"}}};
  api_.Put(beat);
  const std::string version(FindString(*api_.Find("nodes", "n"), "metadata", "resourceVersion"));
  Pod("p", "3g.20gb");
  Run();
  ASSERT_EQ(PlansWritten(), 1);
  const auto patch = std::ranges::find_if(api_.writes, [](const kube::ApiRequest& request) {
    return request.method == "PATCH" && request.path.find("/nodes/") != std::string::npos;
  });
  EXPECT_EQ(FindString(patch->body, "metadata", "resourceVersion"), version)
      << WriteJson(patch->body);
}

// The partitioner's plan is under way on the node and serves other pods.
TEST_F(PartitionRequestsTest, WaitsForPlanOfPartitioner) {
  Node("n", 1);
  UpdateNode("n", {{kSpecPlan, "7"},
                   {"nos.nebuly.com/spec-layout-0", "1g.5gb@6"},
                   {"nos.nebuly.com/spec-gpu-0-1g.5gb", "1"}});
  Pod("p", "3g.20gb");
  Run();
  EXPECT_EQ(PlansWritten(), 0);
  Partition("n", 0, "1g.5gb@6:free", {{"nvidia.com/mig-1g.5gb", "1"}});
  Run();
  EXPECT_EQ(Annotation("n", kSpecPlan), "8");
  EXPECT_EQ(Spec("n", 0), "3g.20gb@0,1g.5gb@6");
}

// The next leader finds a plan under way, and then the slice that was requested.
TEST_F(PartitionRequestsTest, BindsRequestedSliceAfterRestart) {
  Node("n", 1);
  Pod("p", "3g.20gb");
  Run();
  Restart();
  Run();
  EXPECT_EQ(PlansWritten(), 1);
  Partition("n", 0, "3g.20gb@4:free", {{"nvidia.com/mig-3g.20gb", "1"}});
  Run();
  EXPECT_EQ(NodeOf("p"), "n");
}

// Another node would score better, but the agent of the first one is already at work.
TEST_F(PartitionRequestsTest, NextLeaderAdoptsPlanUnderWay) {
  Node("b", 1);
  for (const char* name : {"p", "q"}) Pod(name, "3g.20gb");
  Run();
  ASSERT_EQ(Nominee("p") + Nominee("q"), "bb");
  Node("a", 1);
  Restart();
  Run();
  EXPECT_EQ(PlansWritten(), 1);
  EXPECT_EQ(Nominee("p") + Nominee("q"), "bb");
  Partition("b", 0, "3g.20gb@0:free,3g.20gb@4:free", {{"nvidia.com/mig-3g.20gb", "2"}});
  Run();
  EXPECT_EQ(NodeOf("p") + NodeOf("q"), "bb");
}

TEST_F(PartitionRequestsTest, NextLeaderWithdrawsFailedPlan) {
  Node("b", 1);
  Pod("p", "3g.20gb");
  Run();
  Node("a", 1);
  Restart();
  Run();
  ASSERT_EQ(Spec("b"), "3g.20gb@4");
  FailPlan("b", 0, "somebody computes there");
  Run();
  EXPECT_EQ(Spec("b"), "");
  EXPECT_EQ(Spec("a"), "3g.20gb@4");
  Restart();
  Run();
  clock_.Advance(seconds(60));
  Run();
  EXPECT_EQ(Spec("a"), "") << "its agent is silent";
}

TEST_F(PartitionRequestsTest, NextLeaderDropsPlanOnUnsuitableNode) {
  Node("b", 1);
  Pod("p", "3g.20gb");
  Run();
  Node("a", 1);
  Cordon("b");
  Restart();
  Run();
  EXPECT_EQ(Spec("b"), "");
  EXPECT_EQ(Spec("a"), "3g.20gb@4");
}

// A successor with a new configuration must first see what was requested.
TEST_F(PartitionRequestsTest, IsNotQuietUntilWatchShowsPlan) {
  Node("n", 1);
  Run();
  watches_.nodes_silent = true;
  Pod("p", "3g.20gb");
  Run();
  ASSERT_EQ(PlansWritten(), 1);
  scheduler_->Retire();
  EXPECT_FALSE(scheduler_->IsQuiet()) << "it would be partitioned once more";
  watches_.nodes_silent = false;
  Run();
  EXPECT_TRUE(scheduler_->IsQuiet());
}

// The agent first reports the slices of evicted pods as free, then the GPU is repartitioned. No
// other pod is evicted meanwhile.
TEST_F(PartitionRequestsTest, CreatesLargeSliceFromSlicesOfVictims) {
  for (const char* node : {"m", "n"}) {
    Node(node, 1);
    Partition(node, 0, "3g.20gb@4:free,1g.5gb@0:free,1g.5gb@1:free",
              {{"nvidia.com/mig-1g.5gb", "2"}, {"nvidia.com/mig-3g.20gb", "1"}});
  }
  for (const char* name : {"a", "b", "c", "d"}) Pod(name, "1g.5gb", 1, 1);
  for (const char* name : {"large-m", "large-n"}) Pod(name, "3g.20gb", 1, 5);
  Run();
  for (const char* node : {"m", "n"}) {
    UpdateNode(node,
               {{"nos.nebuly.com/status-layout-0", "3g.20gb@4:used,1g.5gb@0:used,1g.5gb@1:used"}});
  }
  Run();
  Pod("p", "2g.10gb", 2, 3);
  Run();
  EXPECT_EQ(Nominee("p"), "m");
  const auto evicted = [&] {
    return 4 - std::ranges::count_if(
                   std::initializer_list<const char*>{"a", "b", "c", "d"}, [&](const char* name) {
                     return api_.Find("pods", std::string("ml/") + name) != nullptr;
                   });
  };
  EXPECT_EQ(evicted(), 2);
  EXPECT_EQ(PlansWritten(), 0) << "the agent has not reported them as free";
  clock_.Advance(seconds(15));
  Run();
  EXPECT_EQ(evicted(), 2) << "others would go in vain";
  UpdateNode("m",
             {{"nos.nebuly.com/status-layout-0", "3g.20gb@4:used,1g.5gb@0:free,1g.5gb@1:free"}});
  Run();
  EXPECT_EQ(Spec("m", 0), "2g.10gb@0,2g.10gb@2,3g.20gb@4");
  Partition("m", 0, "3g.20gb@4:used,2g.10gb@0:free,2g.10gb@2:free",
            {{"nvidia.com/mig-1g.5gb", "0"}, {"nvidia.com/mig-2g.10gb", "2"}});
  Run();
  EXPECT_EQ(NodeOf("p"), "m");
  EXPECT_EQ(evicted(), 2);
}

// A silent agent does not keep the pod from another node for ever.
TEST_F(PartitionRequestsTest, WaitsForSilentAgentUntilDeadline) {
  EvictOneOfTwo();
  clock_.Advance(seconds(31));
  UpdateNode("n", {{"nos.nebuly.com/note", "wakes it"}});
  Run();
  EXPECT_EQ(Nominee("p"), "n");
}

// The next leader remembers no eviction, but evicts no other pod either.
TEST_F(PartitionRequestsTest, NextLeaderWaitsForAgentToo) {
  EvictOneOfTwo();
  Restart();
  Run();
  EXPECT_EQ(Nominee("p"), "m");
  EXPECT_NE(NodeOf("b"), "gone");
  clock_.Advance(seconds(31));  // no other event
  Run();
  EXPECT_EQ(Nominee("p"), "n");
}

TEST_F(PartitionRequestsTest, DoesNotWaitForAgentOfCordonedNode) {
  for (const char* node : {"m", "n"}) {
    Node(node, 1);
    Partition(node, 0, "4g.20gb@0:free", {{"nvidia.com/mig-4g.20gb", "1"}});
  }
  Pod("b", "4g.20gb", 1, 1);
  BindElsewhere("b", "n");
  UpdateNode("m", {{"nos.nebuly.com/status-layout-0", "4g.20gb@0:used"}});
  UpdateNode("n", {{"nos.nebuly.com/status-layout-0", "4g.20gb@0:used"}});
  Cordon("m");
  Pod("p", "7g.40gb", 1, 3);
  ChangePod("p", [](Json& pod) { MakeObject(pod, "status")["nominatedNodeName"] = "m"; });
  Run();
  EXPECT_EQ(Nominee("p"), "n");
}

// The pod was never bound, so it only loses its reservation.
TEST_F(PartitionRequestsTest, PreemptsPodInPreBindWithoutDeletingIt) {
  Node("n", 1);
  Pod("low", "7g.40gb");
  SetLimit("low", "cpu", "60");
  Run();
  ASSERT_EQ(Spec("n", 0), "7g.40gb@0");
  PutPod("high", "cpu", "60", 9);
  Run();
  EXPECT_EQ(NodeOf("high"), "n");
  EXPECT_EQ(NodeOf("low"), "");
  EXPECT_EQ(Nominee("low"), "");
  EXPECT_EQ(Spec("n", 0), "") << "what was asked for is taken back";
  Node("m", 1);
  Run();
  EXPECT_EQ(Spec("m", 0), "7g.40gb@0") << "it is tried again";
}

TEST_F(PartitionRequestsTest, PrefersFreeSliceToPartitioning) {
  Node("a", 1);
  Node("b", 1);
  Partition("b", 0, "1g.5gb@0:free", {{"nvidia.com/mig-1g.5gb", "1"}});
  Pod("p", "1g.5gb");
  Run();
  EXPECT_EQ(NodeOf("p"), "b");
  EXPECT_EQ(PlansWritten(), 0);
}

}  // namespace
}  // namespace nos::controllers
