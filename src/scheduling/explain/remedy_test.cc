// Remedies that consider the pod's own priority, and resources that other components allocate.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduling/configuration.h"
#include "scheduling/explain.h"
#include "scheduling/framework.h"
#include "scheduling/remedies.h"
#include "scheduling/testing/build.h"

namespace nos::scheduling {
namespace {

using cluster::Node;
using cluster::Pod;
using ::testing::HasSubstr;
using testing::NodeOf;
using ::testing::Not;
using testing::PodOf;

Pod Running(const std::string& name, const std::string& node, testing::Amounts asks,
            int32_t priority = 0) {
  Pod pod = PodOf(name, asks, node);
  pod.phase = "Running";
  pod.priority = priority;
  return pod;
}

Pod Waiting(testing::Amounts asks, int32_t priority) {
  Pod pod = PodOf("p", asks);
  pod.priority = priority;
  return pod;
}

Node Cordoned(Node node) {
  node.unschedulable = true;
  return node;
}

Explanation Why(const std::vector<Node>& nodes, const std::vector<Pod>& pods, const Pod& pod,
                const Framework& framework = Framework::Default(PartitionedBy::kScheduler)) {
  const auto snapshot = testing::Snap(nodes, pods);
  return Explain({framework, framework, snapshot, pod});
}

std::string Remedy(const std::vector<Node>& nodes, const std::vector<Pod>& pods, const Pod& pod) {
  return Why(nodes, pods, pod).remedy;
}

TEST(ExplainRemedyTest, RemedyCountsPreemptionAfterItsSteps) {
  EXPECT_EQ(Remedy({Cordoned(NodeOf("n", {{"cpu", "4"}}))}, {Running("batch", "n", {{"cpu", "3"}})},
                   Waiting({{"cpu", "2"}}, 1000)),
            "uncordon node n: its priority makes room there");
  EXPECT_EQ(Remedy({Cordoned(NodeOf("m", {{"cpu", "4"}})), NodeOf("n", {{"cpu", "4"}})},
                   {Running("batch", "m", {{"cpu", "3"}}), Running("a", "n", {{"cpu", "1"}}, 1000),
                    Running("b", "n", {{"cpu", "2"}}, 1000)},
                   Waiting({{"cpu", "4"}}, 1000)),
            "uncordon node m: its priority makes room there")
      << "one step instead of two evictions";
}

TEST(ExplainRemedyTest, DoesNotWaitForPodsThatWouldBePreempted) {
  const auto why = Why({NodeOf("n", {{"cpu", "4"}})},
                       {Running("low", "n", {{"cpu", "1"}}), Running("a", "n", {{"cpu", "3"}}, 10)},
                       Waiting({{"cpu", "4"}}, 5));
  EXPECT_EQ(why.remedy, "wait for the end of pod x/a on node n, or give it a priority above 10");
  EXPECT_EQ(Remedy({NodeOf("m", {{"cpu", "4"}}), NodeOf("n", {{"cpu", "4"}})},
                   {Running("low", "n", {{"cpu", "1"}}), Running("low2", "n", {{"cpu", "1"}}),
                    Running("a", "n", {{"cpu", "2"}}, 10), Running("b", "m", {{"cpu", "2"}}, 9),
                    Running("c", "m", {{"cpu", "2"}}, 9)},
                   Waiting({{"cpu", "4"}}, 5)),
            "wait for the end of pod x/a on node n, or give it a priority above 10")
      << "the smallest remedy";
}

TEST(ExplainRemedyTest, SuggestsNoPriorityAboveUserMaximum) {
  EXPECT_EQ(Remedy({NodeOf("n", {{"cpu", "4"}})},
                   {Running("a", "n", {{"cpu", "3"}}, 2'000'001'000)}, Waiting({{"cpu", "4"}}, 5)),
            "wait for the end of pod x/a on node n");
}

// With the label, the node joins the zone of a pod whose anti-affinity excludes this one.
TEST(ExplainRemedyTest, SimulatesLabelBeforeSuggestingIt) {
  Node full = NodeOf("n1", {{"cpu", "1"}}, {{"zone", "a"}});
  Pod guard = Running("guard", "n1", {{"cpu", "1"}});
  guard.meta.owners.emplace_back().kind = "DaemonSet";
  cluster::PodAffinityTerm term;
  term.topology_key = "zone";
  term.selector.emplace().match_labels = {{"app", "t"}};
  guard.pod_anti_affinity.required = {term};
  Pod pod = Waiting({{"cpu", "2"}}, 0);
  pod.meta.labels = {{"app", "t"}};
  pod.node_affinity.emplace().required.emplace().push_back({{{"zone", "In", {"a", "b"}}}, {}});
  EXPECT_EQ(Remedy({NodeOf("n0", {{"cpu", "4"}}), full}, {guard}, pod),
            "label node n0 with zone=a, which its node affinity requires, or relax that, and "
            "wait for the end of pod x/guard, whose anti-affinity rules it out in the same "
            "zone (node n0)")
      << "the DaemonSet would restart its pod";
  EXPECT_EQ(
      Remedy({NodeOf("n0", {{"cpu", "4"}})}, {}, pod),
      "label node n0 with zone=a, which its node affinity requires, or relax that: it has room");
}

TEST(ExplainRemedyTest, SuggestsNoLabelWhenAffinityNamesOtherNode) {
  Pod pod = Waiting({{"cpu", "2"}}, 0);
  pod.node_affinity.emplace().required.emplace().push_back(
      {{{"zone", "In", {"a"}}}, {{"metadata.name", "In", {"n1"}}}});
  EXPECT_EQ(Remedy({NodeOf("n0", {{"cpu", "4"}}), NodeOf("n1", {{"cpu", "1"}})}, {}, pod),
            "relax its node affinity, which rules out node n0: it has room");
}

// The agent still reports the instance as used although its pod is gone.
TEST(ExplainRemedyTest, EvictsNothingWhileAgentHasYetToReportFreeInstances) {
  const auto gpu = [](const std::string& name) {
    Node node = NodeOf(name, {{"cpu", "8"}, {"nvidia.com/mig-4g.20gb", "1"}},
                       {{"nos.nebuly.com/gpu-partitioning", "mig"},
                        {"nvidia.com/gpu.product", "NVIDIA-A100-SXM4-40GB"},
                        {"nvidia.com/gpu.count", "1"}});
    node.meta.annotations["nos.nebuly.com/status-layout-0"] = "4g.20gb@0:used";
    return node;
  };
  Pod pod = Waiting({{"nvidia.com/mig-7g.40gb", "1"}}, 100);
  pod.nominated_node = "a";
  const auto why =
      Why({gpu("a"), gpu("b")}, {Running("low", "b", {{"nvidia.com/mig-4g.20gb", "1"}}, 1)}, pod);
  EXPECT_FALSE(why.preemption);
  EXPECT_EQ(why.remedy_code, remedies::kNoneNeeded);
  EXPECT_EQ(why.awaits_agent, "a");
}

// A node "g" with one A100-40GB without instances, which nos partitions by MIG.
Node NodeWithEmptyGpu() {
  Node node = NodeOf("g", {{"cpu", "8"}},
                     {{"nos.nebuly.com/gpu-partitioning", "mig"},
                      {"nvidia.com/gpu.product", "NVIDIA-A100-SXM4-40GB"},
                      {"nvidia.com/gpu.count", "1"}});
  node.meta.annotations["nos.nebuly.com/status-layout-0"] = "";
  return node;
}

// No pod that could end uses the node.
TEST(ExplainRemedyTest, FreesNothingOnGpusThatAreOnlyNotPartitionedNow) {
  Node node = NodeWithEmptyGpu();
  const Pod pod = Waiting({{"nvidia.com/mig-3g.20gb", "1"}}, 0);
  const Framework waiting = Framework::Default();
  node.meta.annotations["nos.nebuly.com/spec-partitioning-plan"] = "2";
  const auto planned = Why({node}, {}, pod, waiting);
  EXPECT_EQ(planned.remedy_code, remedies::kLiftConstraints);
  EXPECT_EQ(planned.remedy,
            "wait until the agent of node g has carried out its plan (plan 2); if that lasts, "
            "inspect the agent's pod on node g");
  EXPECT_EQ(planned.remedy, Why({node}, {}, pod).remedy);
  node.meta.annotations.erase("nos.nebuly.com/spec-partitioning-plan");
  node.resting_gpus = {0};
  EXPECT_EQ(Why({node}, {}, pod, waiting).remedy_code, remedies::kInspectAgent);
  EXPECT_EQ(Why({node}, {}, pod).remedy_code, remedies::kInspectAgent);
}

TEST(ExplainRemedyTest, PartitionerServesNoDaemonSet) {
  const Node node = NodeWithEmptyGpu();
  Pod pod = Waiting({{"nvidia.com/mig-1g.5gb", "1"}}, 0);
  EXPECT_EQ(Why({node}, {}, pod, Framework::Default()).remedy_code, remedies::kPartitionGpus);
  pod.meta.owners = {{"apps/v1", "DaemonSet", "d", "d", true}};
  const auto why = Why({node}, {}, pod, Framework::Default());
  EXPECT_EQ(why.remedy_code, remedies::kUseDeployment);
  EXPECT_EQ(why.remedy,
            "run it as a Deployment with a nodeSelector for node g: the partitioner creates no "
            "1g.5gb@6 of GPU 0 for a pod of a DaemonSet");
}

TEST(ExplainRemedyTest, CreatesWholeGpuOfHybridNode) {
  Node node = NodeOf("h", {{"cpu", "8"}},
                     {{"nos.nebuly.com/gpu-partitioning", "hybrid"},
                      {"nvidia.com/gpu.product", "NVIDIA-H100-80GB-HBM3"},
                      {"nvidia.com/gpu.count", "1"}});
  node.meta.annotations = {{"nos.nebuly.com/status-model-0", "H100-80GB+GPU+TIME-4"},
                           {"nos.nebuly.com/status-other-model-0", "MPS-79GB"},
                           {"nos.nebuly.com/status-layout-0", ""}};
  EXPECT_EQ(
      Why({node}, {}, Waiting({{"nvidia.com/gpu", "1"}}, 0), Framework::Default()).remedy_code,
      remedies::kPartitionGpus);
}

TEST(ExplainRemedyTest, ResourceClaimsDoNotGatePodsOfOtherSchedulers) {
  Pod pod = Waiting({{"cpu", "1"}}, 0);
  pod.claims = {{"gpu", "gpu-claim", "", false}};
  const auto theirs = DefaultConfiguration({.simulates = true});
  const auto why = Why({NodeOf("n", {{"cpu", "4"}})}, {}, pod, *theirs.profiles.front().framework);
  EXPECT_EQ(why.gate, "");
  EXPECT_EQ(why.remedy_code, remedies::kInspectResourceClaims);
  pod.claims.front().claim.clear();  // not made from its template yet
  EXPECT_NE(Why({NodeOf("n", {{"cpu", "4"}})}, {}, pod).gate, "");
}

Node A100(std::string name, std::string layout, testing::Amounts more = {}) {
  Node node = NodeOf(std::move(name), {{"cpu", "8"}},
                     {{"nos.nebuly.com/gpu-partitioning", "mig"},
                      {"nvidia.com/gpu.product", "NVIDIA-A100-SXM4-40GB"},
                      {"nvidia.com/gpu.count", "1"}});
  for (const auto& [resource, amount] : testing::Resources(more)) {
    node.allocatable[resource] = amount;
  }
  node.meta.annotations = {{"nos.nebuly.com/status-layout-0", std::move(layout)}};
  return node;
}

TEST(ExplainRemedyTest, UnknownUserHoldsInstance) {
  const Node held = A100("n", "7g.40gb@0:used", {{"nvidia.com/mig-7g.40gb", "1"}});
  const Pod pod = Waiting({{"nvidia.com/mig-7g.40gb", "1"}}, 0);
  const Explanation why = Why({held}, {}, pod);
  EXPECT_FALSE(why.place);
  EXPECT_EQ(why.remedy_code, remedies::kWaitForPods);
  EXPECT_EQ(why.diagnosis.feasible, 0);
  EXPECT_EQ(ToJson(why).at("reasons").at(0).at("code").as_string(), codes::kNoRoomForSlices);
  EXPECT_EQ(ToJson(why).at("inUse").at("node").as_string(), "n");
  const Explanation other =
      Why({held, A100("o", "7g.40gb@0", {{"nvidia.com/mig-7g.40gb", "1"}})}, {}, pod);
  ASSERT_TRUE(other.place);
  EXPECT_EQ(other.place->node, "o");
}

// The profile does not create instances, so its preemption would not help.
TEST(ExplainRemedyTest, PriorityMakesNoRoomForSlicesWithoutPartitioning) {
  const std::vector<Node> nodes = {
      Cordoned(A100("n", "4g.20gb@0:used,3g.20gb@4:used",
                    {{"nvidia.com/mig-4g.20gb", "1"}, {"nvidia.com/mig-3g.20gb", "1"}}))};
  const std::vector<Pod> pods = {
      Running("r0", "n", {{"cpu", "4"}, {"nvidia.com/mig-4g.20gb", "1"}}),
      Running("r1", "n", {{"cpu", "4"}, {"nvidia.com/mig-3g.20gb", "1"}})};
  const Pod pod = Waiting({{"cpu", "1"}, {"nvidia.com/mig-7g.40gb", "1"}}, 10);
  EXPECT_THAT(Why(nodes, pods, pod, Framework::Default()).remedy, Not(HasSubstr("priority")));
  EXPECT_EQ(Why(nodes, pods, pod).remedy, "uncordon node n: its priority makes room there");
}

TEST(ExplainRemedyTest, EachReasonIsListedOnce) {
  Node shared = NodeOf("s", {{"cpu", "8"}},
                       {{"nos.nebuly.com/gpu-partitioning", "mps"},
                        {"nvidia.com/gpu.product", "NVIDIA-A100-SXM4-40GB"},
                        {"nvidia.com/gpu.count", "1"}});
  shared.meta.annotations = {{"nos.nebuly.com/status-model-0", "MPS-39GB"},
                             {"nos.nebuly.com/status-layout-0", ""}};
  Node small = A100("a", "");
  small.meta.labels["nvidia.com/gpu.product"] = "NVIDIA-A30";
  const Explanation why = Why({shared, small}, {}, Waiting({{"nvidia.com/mig-7g.40gb", "1"}}, 0));
  ASSERT_EQ(why.diagnosis.entries.size(), 1);
  EXPECT_EQ(why.diagnosis.entries[0].code, codes::kNoGpuForProfile);
  EXPECT_EQ(why.diagnosis.entries[0].nodes, 2);
}

Node Shared(std::string name, std::string mode, bool reported) {
  Node node = NodeOf(std::move(name), {{"cpu", "8"}},
                     {{"nos.nebuly.com/gpu-partitioning", std::move(mode)},
                      {"nvidia.com/gpu.product", "NVIDIA-A100-SXM4-40GB"},
                      {"nvidia.com/gpu.memory", "40960"},
                      {"nvidia.com/gpu.count", "1"}});
  if (reported) {
    node.meta.annotations = {{"nos.nebuly.com/status-model-0", "MPS-39GB"},
                             {"nos.nebuly.com/status-layout-0", ""}};
  }
  return node;
}

TEST(ExplainRemedyTest, NoNodeServesSeveralSharesOfOneContainer) {
  const Pod pod = Waiting({{"nvidia.com/gpu-10gb", "2"}}, 0);
  const auto theirs = DefaultConfiguration({.simulates = true});
  const Explanation why =
      Why({Shared("m", "mps", true)}, {}, pod, *theirs.profiles.front().framework);
  EXPECT_EQ(why.remedy_code, remedies::kRequestOneShare);
  ASSERT_TRUE(why.impossible);
  EXPECT_EQ(why.impossible->code, codes::kSeveralShares);
  const Explanation ours = Why({Shared("m", "mps", true)}, {}, pod);
  EXPECT_EQ(ours.remedy_code, remedies::kRequestOneShare);
  EXPECT_EQ(ours.diagnosis.entries.size(), 0);
}

TEST(ExplainRemedyTest, AgentsThatHaveNotReportedAreInspectedOnlyIfTheyCouldServe) {
  const auto code = [](const Node& node, const char* resource) {
    return Why({node}, {}, Waiting({{resource, "1"}}, 0)).remedy_code;
  };
  EXPECT_EQ(code(Shared("n", "mps", false), "nvidia.com/gpu-10gb"), remedies::kInspectAgent);
  EXPECT_EQ(code(Shared("n", "mps", false), "nvidia.com/gpu-200gb"), remedies::kAddNode);
  EXPECT_EQ(code(Shared("n", "hybrid", false), "nvidia.com/gpu"), remedies::kInspectAgent);
  EXPECT_EQ(code(Shared("n", "mps", false), "nvidia.com/gpu"), remedies::kAddNode);
}

TEST(ExplainRemedyTest, OptInNamesMissingCount) {
  Node node = A100("n", "");
  node.meta.annotations.clear();
  node.meta.labels.erase("nos.nebuly.com/gpu-partitioning");
  const Pod pod = Waiting({{"nvidia.com/mig-7g.40gb", "1"}}, 0);
  EXPECT_THAT(Remedy({node}, {}, pod), Not(HasSubstr("nvidia.com/gpu.count")));
  node.meta.labels.erase("nvidia.com/gpu.count");
  const Explanation why = Why({node}, {}, pod);
  EXPECT_EQ(why.remedy_code, remedies::kOptInNode);
  EXPECT_THAT(why.remedy, HasSubstr("nvidia.com/gpu.count"));
}

TEST(ExplainRemedyTest, NewNodeHasAllThatThePodNeeds) {
  const Node plain = NodeOf("n", {{"cpu", "8"}, {"nvidia.com/gpu", "1"}});
  EXPECT_THAT(Remedy({plain}, {}, Waiting({{"cpu", "64"}, {"nvidia.com/gpu", "1"}}, 0)),
              HasSubstr("1 nvidia.com/gpu"));
  EXPECT_THAT(
      Remedy({A100("n", "")}, {}, Waiting({{"cpu", "64"}, {"nvidia.com/mig-7g.40gb", "1"}}, 0)),
      HasSubstr("7g.40gb"));
  Pod pod = Waiting({{"nvidia.com/gpu", "2"}}, 0);
  pod.node_selector = {{"zone", "a"}};
  const Explanation why = Why({plain}, {}, pod);
  EXPECT_EQ(why.remedy_code, remedies::kAddNode);
  EXPECT_THAT(why.remedy, HasSubstr("zone=a"));
}

// With a quota in force, the quota decides on evictions and priorities do not.
class ExplainQuotaTest : public ::testing::Test {
 protected:
  ExplainQuotaTest() {
    auto quota = std::make_shared<cluster::ElasticQuota>();
    quota->meta.ns = "x";
    quota->meta.name = "q";
    quota->namespaces = {"x"};
    quota->min["cpu"] = Quantity::FromValue(4);
    quota->max["cpu"] = Quantity::FromValue(4);
    balance_ = quota::Balance({quota});
  }
  Explanation WhyQuota(const Pod& pod) {
    const auto snapshot =
        testing::Snap({NodeOf("n", {{"cpu", "4"}})}, {Running("low", "n", {{"cpu", "4"}}, 0)});
    ExplainInput input{framework_, framework_, snapshot, pod};
    input.balance = &balance_;
    input.reclaim = reclaim_;
    return Explain(input);
  }

  const Framework framework_ = Framework::Default(PartitionedBy::kScheduler);
  quota::Balance balance_;
  std::function<std::optional<Preemption>()> reclaim_;
};

TEST_F(ExplainQuotaTest, PriorityDoesNotPreemptUnderQuota) {
  const Explanation why = WhyQuota(Waiting({{"cpu", "4"}}, 1000));
  EXPECT_FALSE(why.preemption);
  EXPECT_FALSE(why.priority_helps);
  EXPECT_EQ(why.remedy, "wait for the end of pod x/low on node n");
}

TEST_F(ExplainQuotaTest, JsonHasCodeOfQuotaGangAndGate) {
  const auto code = [](const Explanation& why) {
    return ToJson(why).at("reasons").at(0).at("code").as_string();
  };
  Pod pod = Waiting({{"cpu", "6"}}, 0);
  EXPECT_EQ(code(WhyQuota(pod)), codes::kQuota);
  const auto snapshot = testing::Snap({NodeOf("n", {{"cpu", "4"}})});
  ExplainInput input{framework_, framework_, snapshot, pod};
  input.gang = "1 of 3 are there";
  EXPECT_EQ(code(Explain(input)), codes::kGangIncomplete);
  input.beside = true;
  EXPECT_EQ(code(Explain(input)), codes::kGangNotWhole);
  pod.scheduling_gates = {"example.com/quota"};
  EXPECT_EQ(code(Explain(input)), codes::kSchedulingGated);
}

TEST_F(ExplainQuotaTest, NamesPodsEvictedForQuota) {
  const auto low = std::make_shared<const Pod>(Running("low", "n", {{"cpu", "4"}}, 0));
  reclaim_ = [&] { return Preemption{"n", {low}, 0}; };
  const Explanation why = WhyQuota(Waiting({{"cpu", "4"}}, 0));
  EXPECT_EQ(why.remedy, "none needed: for its quota, pod x/low is evicted on node n");
}

// Raising min does not end the pods that hold the node.
TEST_F(ExplainQuotaTest, WaitingMakesRoomThatRaisingDoesNot) {
  balance_.Add(*balance_.AccountOf("x"), quota::Amounts::From({{"cpu", Quantity::FromValue(4)}}));
  const Explanation why = WhyQuota(Waiting({{"cpu", "4"}}, 0));
  EXPECT_EQ(why.remedy_code, remedies::kRaiseQuota);
  EXPECT_EQ(why.remedy,
            "raise max of cpu in elastic quota x/q to 8, or wait until pods of its namespaces that "
            "have 4 of it end; if you raise it, no node has room for the pod until others end");
}

TEST_F(ExplainQuotaTest, MentionsMissingCapacityBesideQuota) {
  const Explanation why = WhyQuota(Waiting({{"cpu", "6"}}, 0));
  EXPECT_NE(why.quota, "");
  EXPECT_EQ(why.remedy_code, remedies::kRaiseQuota);
  EXPECT_EQ(why.remedy,
            "raise max of cpu in elastic quota x/q to 6; even then no node has room for it now");
}

}  // namespace
}  // namespace nos::scheduling
