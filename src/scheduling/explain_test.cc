#include "scheduling/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "scheduling/explain_gang.h"
#include "scheduling/explain_promises.h"
#include "scheduling/framework.h"
#include "scheduling/remedies.h"
#include "scheduling/steps.h"
#include "scheduling/testing/build.h"
#include "scheduling/testing/volumes.h"

namespace nos::scheduling {
namespace {

using cluster::Node;
using cluster::Pod;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using testing::NodeOf;
using testing::PodOf;

Node GpuNode(const std::string& name, const std::string& layout, const std::string& cpu = "8") {
  Node node = NodeOf(name, {{"cpu", cpu}},
                     {{"nos.nebuly.com/gpu-partitioning", "mig"},
                      {"nvidia.com/gpu.product", "NVIDIA-A100-SXM4-40GB"},
                      {"nvidia.com/gpu.count", "1"}});
  node.meta.annotations["nos.nebuly.com/status-layout-0"] = layout;
  return node;
}

Pod Running(const std::string& name, const std::string& node, testing::Amounts asks,
            int32_t priority = 0) {
  Pod pod = PodOf(name, asks, node);
  pod.phase = "Running";
  pod.priority = priority;
  return pod;
}

class ExplainTest : public ::testing::Test {
 protected:
  Explanation Why(const std::vector<Node>& nodes, const std::vector<Pod>& pods, const Pod& pod,
                  const Framework& framework, const std::string& gang = "") {
    const auto snapshot = testing::Snap(nodes, pods);
    return Explain({framework, partitioning_, snapshot, pod, PreemptionOptions(), gang});
  }
  Explanation Why(const std::vector<Node>& nodes, const std::vector<Pod>& pods, const Pod& pod) {
    return Why(nodes, pods, pod, partitioning_);
  }

  const Framework partitioning_ = Framework::Default(PartitionedBy::kScheduler);
  const Framework waiting_ = Framework::Default(PartitionedBy::kPartitioner);
};

TEST_F(ExplainTest, NearestNodeHasSmallestShortfall) {
  const auto why = Why({NodeOf("a", {{"cpu", "2"}}), NodeOf("b", {{"cpu", "8"}})},
                       {Running("x", "b", {{"cpu", "6"}})}, PodOf("p", {{"cpu", "4"}}));
  ASSERT_TRUE(why.nearest);
  EXPECT_EQ(why.nearest->node, "b") << "a can never hold it";
  ASSERT_EQ(why.nearest->lacks.size(), 1u);
  EXPECT_EQ(why.nearest->lacks[0].free, 2000);
  EXPECT_FALSE(why.nearest->lacks[0].never);
  EXPECT_EQ(why.diagnosis.ToString(), "0/2 nodes are available: 2 Insufficient cpu.");
  EXPECT_EQ(why.remedy, "wait for the end of pod x/x on node b, or give it a priority above 0");
}

TEST_F(ExplainTest, SuggestsLargerNodeForRequestAboveAllNodes) {
  const auto why = Why({NodeOf("a", {{"cpu", "2"}}), NodeOf("b", {{"cpu", "3"}})}, {},
                       PodOf("p", {{"cpu", "4"}}));
  EXPECT_EQ(why.remedy_code, remedies::kAddNode);
  EXPECT_EQ(why.remedy, "add a node with at least 4 cpu: node b, the nearest, has 3 cpu in all");
}

TEST_F(ExplainTest, SuggestsStepsForCordonTaintsAndSelector) {
  Node cordoned = NodeOf("a", {{"cpu", "8"}});
  cordoned.unschedulable = true;
  EXPECT_EQ(Why({cordoned}, {}, PodOf("p", {{"cpu", "4"}})).remedy, "uncordon node a: it has room");
  Node tainted = NodeOf("b", {{"cpu", "8"}});
  tainted.taints.push_back({"key", "value", "NoSchedule"});
  EXPECT_EQ(Why({tainted}, {}, PodOf("p", {{"cpu", "4"}})).remedy,
            "tolerate or remove the taint key=value:NoSchedule of node b: it has room");
  Pod picky = PodOf("p", {{"cpu", "4"}});
  picky.node_selector["zone"] = "z";
  EXPECT_EQ(Why({NodeOf("c", {{"cpu", "8"}})}, {}, picky).remedy,
            "label node c with zone=z, or remove that from its node selector: it has room");
  tainted.unschedulable = true;
  const auto both = Why({tainted, NodeOf("a", {{"cpu", "1"}})}, {}, PodOf("p", {{"cpu", "4"}}));
  EXPECT_EQ(both.nearest->objections.size(), 2u) << "all objections, not only the first";
  EXPECT_EQ(both.remedy,
            "uncordon node b, and tolerate or remove the taint key=value:NoSchedule of node b: it "
            "has room");
}

TEST_F(ExplainTest, UnreachableNodesRankLastAndNeedRepair) {
  Node down = NodeOf("a", {{"cpu", "8"}});
  down.taints = {{"node.kubernetes.io/unreachable", "", "NoSchedule"},
                 {"node.kubernetes.io/unreachable", "", "NoExecute"}};
  const Pod pod = PodOf("p", {{"cpu", "4"}});
  EXPECT_EQ(Why({down}, {}, pod).remedy, "node a is not ready: inspect its kubelet");
  const auto why = Why({down, NodeOf("b", {{"cpu", "8"}})},
                       {Running("x", "b", {{"cpu", "3"}}), Running("y", "b", {{"cpu", "3"}})}, pod);
  EXPECT_EQ(why.nearest->node, "b");
  EXPECT_EQ(why.remedy, "wait for the end of pod x/y on node b, or give it a priority above 0");
  down.taints = {{"node.kubernetes.io/memory-pressure", "", "NoSchedule"}};
  EXPECT_EQ(Why({down}, {}, pod).remedy, "relieve node a, which is short of memory: it has room");
}

TEST_F(ExplainTest, NominatedPodBlocksCapacityItWaitsFor) {
  Pod urgent = PodOf("hi", {{"cpu", "3"}});
  urgent.priority = 100;
  urgent.nominated_node = "a";
  Pod ending = Running("v", "a", {{"cpu", "3"}});
  ending.meta.deleted = Time(std::chrono::seconds(1));
  ending.conditions = {{"DisruptionTarget", "True", "PreemptionByScheduler", "", {}}};
  const Pod low = PodOf("lo", {{"cpu", "3"}});
  const std::vector<Node> nodes = {NodeOf("a", {{"cpu", "4"}})};
  const auto base = testing::Snap(nodes, {ending});
  const auto explain = [&](const Pod& pod) {
    const std::vector<std::shared_ptr<const Pod>> pods = {std::make_shared<const Pod>(urgent),
                                                          std::make_shared<const Pod>(low)};
    const auto goes_first = [&](const Pod& other) { return other.priority >= pod.priority; };
    const auto with = WithPromises(base, pods, pod, goes_first);
    return Explain({partitioning_, partitioning_, with, pod});
  };
  EXPECT_EQ(explain(low).remedy,
            "wait for the end of pod x/hi, pod x/v on node a, where pod x/hi goes first, or give "
            "it a priority "
            "above 100");
  const auto first = explain(urgent);
  EXPECT_EQ(first.remedy_code, remedies::kNoneNeeded);
  EXPECT_EQ(first.awaited->pods, std::vector<std::string>{"x/v"});
  EXPECT_EQ(first.awaited->node, "a");
  urgent.nominated_node.clear();
  EXPECT_EQ(explain(low).remedy, "wait for the end of pod x/v on node a, which is ending");
}

TEST_F(ExplainTest, SliceBeingCreatedBelongsToItsNominatedPod) {
  Node node = GpuNode("g", "");
  node.meta.annotations["nos.nebuly.com/spec-layout-0"] = "3g.20gb@4";
  node.meta.annotations["nos.nebuly.com/spec-partitioning-plan"] = "2";
  node.meta.annotations["nos.nebuly.com/status-partitioning-plan"] = "1";
  Pod slice = PodOf("slice", {{"nvidia.com/mig-3g.20gb", "1"}});
  Pod whole = PodOf("whole", {{"nvidia.com/mig-7g.40gb", "1"}});
  whole.priority = 1;
  whole.preemption_policy = "Never";
  const auto base = testing::Snap({node});
  const auto explain = [&](const Pod& pod) {
    const std::vector<std::shared_ptr<const Pod>> pods = {std::make_shared<const Pod>(slice)};
    const auto goes_first = [&](const Pod& other) { return other.priority >= pod.priority; };
    const auto with = WithPromises(base, pods, pod, goes_first);
    return Explain({partitioning_, partitioning_, with, pod});
  };
  EXPECT_EQ(explain(whole).remedy,
            "wait until the agent of node g has carried out its plan (plan 2); if that lasts, "
            "inspect the agent's pod on node g")
      << "no pod is nominated";
  slice.nominated_node = "g";
  EXPECT_EQ(explain(whole).remedy, "free 1 nvidia.com/mig-7g.40gb on node g");
  EXPECT_EQ(explain(slice).remedy_code, remedies::kNoneNeeded);
  ASSERT_TRUE(explain(slice).being_partitioned);
  EXPECT_EQ(explain(slice).being_partitioned->node, "g");
  const Json json = ToJson(explain(slice));
  const Json& made = json.at("beingPartitioned").at("repartition").at("made");
  EXPECT_EQ(made.at(0).at("instance"), Json("3g.20gb@4"));
  EXPECT_EQ(json.at("beingCut"), json.at("beingPartitioned")) << "the old key";
}

TEST_F(ExplainTest, DoesNotWaitForDaemonSetAndStaticPods) {
  Pod daemon = Running("ds", "a", {{"cpu", "2"}});
  daemon.meta.owners = {{"apps/v1", "DaemonSet", "ds", "u", true}};
  Pod other = Running("x", "a", {{"cpu", "2"}}, 7);
  const Pod pod = PodOf("p", {{"cpu", "2"}});
  const std::vector<Node> nodes = {NodeOf("a", {{"cpu", "4"}})};
  EXPECT_EQ(Why(nodes, {daemon, other}, pod).remedy,
            "wait for the end of pod x/x on node a, or give it a priority above 7");
  other.meta.owners = {{"v1", "Node", "a", "u", true}};
  const auto why = Why(nodes, {daemon, other}, pod);
  EXPECT_FALSE(why.in_the_way);
  EXPECT_EQ(
      why.remedy,
      "add a node with at least 2 cpu: node a, the nearest, has 0 cpu beside its DaemonSet and "
      "static pods");
}

cluster::PodAffinityTerm Near(const std::string& app, const std::string& key) {
  return {cluster::LabelSelector{{{"app", app}}, {}}, {}, {}, key};
}

Pod Labelled(Pod pod, const std::string& app) {
  pod.meta.labels["app"] = app;
  return pod;
}

TEST_F(ExplainTest, NamesFurtherStepsIfLabelAloneDoesNotHelp) {
  Pod pod = PodOf("p", {{"cpu", "1"}});
  pod.pod_affinity.required = {Near("cache", "zone")};
  const Node bare = NodeOf("n", {{"cpu", "4"}});
  EXPECT_EQ(Why({bare}, {}, pod).remedy,
            "label node n with zone, which its pod affinity requires, and run a pod that its pod "
            "affinity requires in the same zone as node n: it has room");
  const Node full = NodeOf("a", {{"cpu", "1"}}, {{"zone", "z"}});
  Pod cache = Labelled(Running("cache", "a", {{"cpu", "1"}}, 3), "cache");
  cache.meta.owners = {{"apps/v1", "DaemonSet", "ds", "u", true}};
  EXPECT_EQ(Why({bare, full}, {cache}, pod).remedy,
            "label node n with zone=z, which its pod affinity requires: it has room");
}

TEST_F(ExplainTest, NamesObjectionsHiddenBehindTheFirst) {
  Node node = NodeOf("n", {{"cpu", "4"}}, {{"host", "n"}});
  node.unschedulable = true;
  node.taints = {{"node.kubernetes.io/unschedulable", "", "NoSchedule"}};
  const Pod x = Labelled(Running("x", "n", {{"cpu", "1"}}), "x");
  Pod repels = Running("repels", "n", {{"cpu", "1"}});
  repels.pod_anti_affinity.required = {Near("p", "host")};
  Pod pod = Labelled(PodOf("p", {{"cpu", "1"}}), "p");
  pod.pod_anti_affinity.required = {Near("x", "host")};
  EXPECT_EQ(
      Why({node}, {x, repels}, pod).remedy,
      "uncordon node n, and wait for the end of pod x/x, with which its anti-affinity rules out "
      "the same host (node n), and wait for the end of pod x/repels, whose anti-affinity rules "
      "it out in the same host (node n): it has room");
}

TEST_F(ExplainTest, PrefersOneLargeVictimToTwoSmallOnes) {
  const std::vector<Node> nodes = {NodeOf("n", {{"cpu", "6"}})};
  const Pod pod = PodOf("p", {{"cpu", "2"}});
  const Pod s1 = Running("s1", "n", {{"cpu", "1"}}, 5), s2 = Running("s2", "n", {{"cpu", "1"}}, 5);
  const Pod big = Running("big", "n", {{"cpu", "2"}}, 10);
  const Pod aide = Running("aide", "n", {{"cpu", "2"}}, 10);
  EXPECT_EQ(Why(nodes, {s1, s2, big, aide}, pod).remedy,
            "wait for the end of pod x/big on node n, or give it a priority above 10");
  Pod four = PodOf("p", {{"cpu", "4"}});
  EXPECT_THAT(Why(nodes, {s1, s2, big, aide}, four).in_the_way->pods,
              ElementsAre("x/aide", "x/big"))
      << "a pair is fewer than three";
}

TEST_F(ExplainTest, KeepsPodsThatAffinityRequires) {
  const std::vector<Node> nodes = {NodeOf("n", {{"cpu", "5"}}, {{"host", "n"}})};
  std::vector<Pod> pods = {Labelled(Running("cache", "n", {{"cpu", "2"}}), "cache"),
                           Running("hog", "n", {{"cpu", "3"}})};
  Pod pod = PodOf("p", {{"cpu", "3"}});
  pod.pod_affinity.required = {Near("cache", "host")};
  EXPECT_EQ(Why(nodes, pods, pod).remedy, "wait for the end of pod x/hog on node n");
  pods.pop_back();
  for (const char* name : {"h1", "h2", "h3"}) pods.push_back(Running(name, "n", {{"cpu", "1"}}));
  EXPECT_EQ(Why(nodes, pods, pod).remedy,
            "wait for the end of pod x/h1, pod x/h2, pod x/h3 on node n");
}

TEST_F(ExplainTest, CountsPodsOfOtherNamespacesWithoutNames) {
  std::vector<Pod> pods;
  for (const char* name : {"a", "b", "c"}) pods.push_back(Running(name, "n", {{"cpu", "1"}}));
  pods[0].meta.ns = "acme";
  pods[1].meta.ns = "other";
  const auto snapshot = testing::Snap({NodeOf("n", {{"cpu", "3"}}, {{"host", "n"}})}, pods);
  Pod pod = PodOf("p", {{"cpu", "3"}});
  const auto remedy = [&](const std::string& reader) {
    return Explain({partitioning_, partitioning_, snapshot, pod, PreemptionOptions(), "", false,
                    reader})
        .remedy;
  };
  EXPECT_EQ(
      remedy("x"),
      "wait for the end of 2 pods of other namespaces, pod x/c on node n, or give it a priority "
      "above 0");
  EXPECT_EQ(remedy(""),
            "wait for the end of pod acme/a, pod other/b, pod x/c on node n, or give it a priority "
            "above 0");
}

TEST_F(ExplainTest, SuggestsStepForEachFilterReason) {
  Node node = NodeOf("a", {{"cpu", "8"}}, {{"zone", "z"}});
  Pod web = Running("web", "a", {{"cpu", "1"}});
  web.meta.labels["app"] = "web";
  web.containers[0].host_ports = {{80, "", "TCP"}};
  Pod pod = PodOf("p", {{"cpu", "1"}});
  pod.preemption_policy = "Never";
  const cluster::PodAffinityTerm near_web{
      cluster::LabelSelector{{{"app", "web"}}, {}}, {}, {}, "zone"};
  const auto remedy = [&](const Pod& of) {  // of the one node that refuses it
    const auto snapshot = testing::Snap({node}, {web});
    const cluster::NodeInfo& info = snapshot.node(0);
    const Cycle cycle = partitioning_.PreFilter(of, snapshot);
    const Verdict verdict = partitioning_.Filter(cycle, of, info);
    EXPECT_FALSE(verdict.fits());
    return StepsFor({verdict.code, verdict.message}, {snapshot, of, "a", ""}).at(0).text;
  };
  Pod ports = pod;
  ports.containers[0].host_ports = {{80, "", "TCP"}};
  EXPECT_EQ(remedy(ports), "wait for the end of pod x/web on node a, which has port 80/TCP");
  Pod apart = pod;
  apart.pod_anti_affinity.required = {near_web};
  EXPECT_EQ(
      remedy(apart),
      "wait for the end of pod x/web, with which its anti-affinity rules out the same zone (node "
      "a)");
  Pod close = pod;
  close.pod_affinity.required = {near_web};
  close.pod_affinity.required[0].selector->match_labels["app"] = "db";
  EXPECT_EQ(remedy(close), "run a pod that its pod affinity requires in the same zone as node a");
  web.pod_anti_affinity.required = {near_web};
  Pod repelled = pod;
  repelled.meta.labels["app"] = "web";
  EXPECT_EQ(
      remedy(repelled),
      "wait for the end of pod x/web, whose anti-affinity rules it out in the same zone (node "
      "a)");
  web.pod_anti_affinity.required.clear();
  Pod spread = repelled;
  spread.spread.emplace_back();
  spread.spread[0].topology_key = "rack";
  spread.spread[0].when_unsatisfiable = "DoNotSchedule";
  EXPECT_EQ(remedy(spread), "label node a with rack, which its topology spread requires");
}

TEST_F(ExplainTest, SuggestsStepForEachVolumeReason) {
  auto snapshot = testing::Snap({NodeOf("a", {{"cpu", "8"}}, {{"zone", "y"}})});
  testing::Put(snapshot, testing::BoundClaimOf("bound", "pv"), testing::ClaimOf("open", "slow"),
               testing::ClaimOf("late", "wait"), testing::VolumeOf("pv", "", "1Gi", {"z"}),
               testing::StorageClassOf("slow", "d.io", false),
               testing::StorageClassOf("wait", "kubernetes.io/no-provisioner"));
  const auto remedy = [&](const std::string& claim) {
    const Pod pod = testing::WithClaims(PodOf("p", {{"cpu", "1"}}), {claim});
    return Explain({partitioning_, partitioning_, snapshot, pod}).remedy;
  };
  EXPECT_EQ(remedy("bound"), "replace PersistentVolume pv, which node a cannot reach: it has room");
  EXPECT_EQ(remedy("open"),
            "have PersistentVolumeClaim x/open bound: its events say what it waits for");
  EXPECT_EQ(remedy("late"), "make a volume available to it that node a can reach: it has room");
  EXPECT_EQ(remedy("none"),
            "create its PersistentVolumeClaim: persistentvolumeclaim \"none\" not found");
}

// For all reasons about claims there is something better to do than to change the pod's
// constraints.
TEST_F(ExplainTest, SuggestsStepForEachReasonAboutResourceClaims) {
  const auto snapshot = testing::Snap({NodeOf("a", {{"cpu", "8"}})});
  for (const char* code :
       {codes::kResourceClaimNotCreated, codes::kResourceClaimNotFound,
        codes::kResourceClaimDeleted, codes::kResourceClaimInUse, codes::kResourceClaimOfAnother,
        codes::kDevicesRefused, codes::kDevicesFailed, codes::kInsufficientDevices}) {
    EXPECT_NE(StepForAll({code, "the reason"}, PodOf("p"), snapshot), "") << code;
  }
}

class ExplainTogetherTest : public ExplainTest {
 protected:
  Explanation Of(const std::string& name, const std::vector<Node>& nodes,
                 const testing::Amounts& asks, size_t least, int members,
                 const std::vector<Pod>& running = {}) {
    Together together{"pod group x/train", least, 0, {}};
    for (int i = 0; i < members; ++i) {
      together.waiting.push_back(
          std::make_shared<const Pod>(PodOf(std::string(1, static_cast<char>('a' + i)), asks)));
    }
    const auto snapshot = testing::Snap(nodes, running);
    const Pod pod = PodOf(name, asks);
    return ExplainTogether({partitioning_, partitioning_, snapshot, pod}, together);
  }
};

TEST_F(ExplainTogetherTest, PlacesGangMembersTogether) {
  const std::vector<Node> two = {NodeOf("n1", {{"cpu", "4"}}), NodeOf("n2", {{"cpu", "4"}})};
  const auto why = Of("a", two, {{"cpu", "3"}}, 3, 3);
  EXPECT_FALSE(why.place);
  EXPECT_EQ(why.gang,
            "pod group x/train: 2 of its pods find a node together, and 3 must; x/c: 0/2 nodes are "
            "available: 2 Insufficient cpu.");
  EXPECT_EQ(
      why.remedy,
      "for x/c: add a node with at least 3 cpu: other members of its gang take what node n1 has");
  EXPECT_EQ(why.remedy_code, remedies::kAddNode);
  EXPECT_TRUE(ToText(why, 100).starts_with("x/a waits for other pods of its group\n"));
  const auto enough = Of("b", two, {{"cpu", "3"}}, 2, 2);
  ASSERT_TRUE(enough.place);
  EXPECT_EQ(enough.place->node, "n2") << "beside member a on n1";
  EXPECT_EQ(Of("a", two, {{"cpu", "3"}}, 3, 2).remedy_code, remedies::kCompleteGang);
}

TEST_F(ExplainTogetherTest, TriesEachZoneForGangWithAffinity) {
  std::vector<Node> nodes = {NodeOf("n1", {{"cpu", "4"}}), NodeOf("n2", {{"cpu", "3"}}),
                             NodeOf("n3", {{"cpu", "3"}})};
  for (Node& node : nodes) node.meta.labels["zone"] = node.meta.name == "n1" ? "a" : "b";
  Together together{"pod group x/train", 2, 0, {}};
  for (const char* name : {"worker", "leader"}) {
    Pod pod = PodOf(name, {{"cpu", "3"}});
    pod.meta.labels["role"] = name;
    cluster::PodAffinityTerm term;
    term.selector.emplace().match_labels["role"] = "leader";
    term.topology_key = "zone";
    if (pod.meta.name == "worker") pod.pod_affinity.required = {term};
    together.waiting.push_back(std::make_shared<const Pod>(std::move(pod)));
  }
  const auto snapshot = testing::Snap(nodes, {});
  const auto why = [&](size_t member) {
    return ExplainTogether({partitioning_, partitioning_, snapshot, *together.waiting[member]},
                           together);
  };
  ASSERT_TRUE(why(0).place);
  ASSERT_TRUE(why(1).place);
  EXPECT_NE(why(0).place->node, "n1");
  EXPECT_NE(why(1).place->node, "n1");
  together.least = 3;
  together.waiting.push_back(together.waiting[0]);
  EXPECT_FALSE(why(1).place);
  EXPECT_EQ(why(1).gang,
            "pod group x/train: 2 of its pods find a node together, and 3 must; x/worker: 0/3 "
            "nodes are available: 2 Insufficient cpu, 1 node(s) didn't match pod affinity rules.");
}

TEST_F(ExplainTogetherTest, PartitionsGpusForGangMembers) {
  const std::vector<Node> node = {GpuNode("g", "")};
  EXPECT_TRUE(Of("b", node, {{"nvidia.com/mig-3g.20gb", "1"}}, 2, 2).place);
  EXPECT_FALSE(Of("b", node, {{"nvidia.com/mig-3g.20gb", "1"}}, 3, 3).place);
}

TEST_F(ExplainTest, NeedsNoRemedyIfPriorityPreempts) {
  Pod pod = PodOf("p", {{"cpu", "4"}});
  pod.priority = 5;
  const std::vector<Pod> pods = {Running("low", "a", {{"cpu", "4"}}, 1)};
  const auto why = Why({NodeOf("a", {{"cpu", "4"}})}, pods, pod);
  ASSERT_TRUE(why.preemption);
  EXPECT_THAT(why.preemption->pods, ElementsAre("x/low"));
  EXPECT_EQ(why.remedy, "none needed: for its priority, pod x/low is evicted on node a");
  pod.preemption_policy = "Never";
  const auto never = Why({NodeOf("a", {{"cpu", "4"}})}, pods, pod);
  EXPECT_FALSE(never.preemption);
  EXPECT_EQ(never.no_preemption, "not eligible due to preemptionPolicy=Never.");
}

TEST_F(ExplainTest, NamesInstancesToCreateAndDestroy) {
  const std::vector<Node> nodes = {GpuNode("g", "3g.20gb@0:used,3g.20gb@4:free"), NodeOf("n")};
  const std::vector<Pod> pods = {Running("u", "g", {{"nvidia.com/mig-3g.20gb", "1"}})};
  const Pod pod = PodOf("p", {{"nvidia.com/mig-2g.10gb", "1"}});
  const auto here = Why(nodes, pods, pod);
  ASSERT_TRUE(here.place);
  EXPECT_EQ(here.place->node, "g");
  ASSERT_EQ(here.place->repartition.made.size(), 1u);
  EXPECT_EQ(here.place->repartition.made[0].name, "2g.10gb@4");
  EXPECT_THAT(here.place->repartition.destroyed,
              ElementsAre(Explanation::Instance{0, "3g.20gb@4"}));
  EXPECT_EQ(here.remedy_code, remedies::kNoneNeeded);

  const auto elsewhere = Why(nodes, pods, pod, waiting_);
  EXPECT_FALSE(elsewhere.place);
  ASSERT_TRUE(elsewhere.nearest);
  EXPECT_EQ(elsewhere.nearest->node, "g") << "n can never have MIG instances";
  ASSERT_TRUE(elsewhere.nearest->repartition);
  EXPECT_THAT(elsewhere.nearest->repartition->made,
              ElementsAre(Explanation::Instance{0, "2g.10gb@4"}));
  const Json place = ToJson(here).at("place"), nearest = ToJson(elsewhere).at("nearest");
  EXPECT_EQ(place.at("repartition").at("made").at(0).at("instance"), Json("2g.10gb@4"));
  for (const Json& with : {place, nearest}) {
    EXPECT_EQ(with.at("cut"), with.at("repartition")) << "the old key";
  }
  EXPECT_EQ(elsewhere.remedy_code, remedies::kPartitionGpus);
}

TEST_F(ExplainTest, NamesPodsOnFullGpu) {
  const std::vector<Node> nodes = {GpuNode("g", "7g.40gb@0:used")};
  const std::vector<Pod> pods = {Running("u", "g", {{"nvidia.com/mig-7g.40gb", "1"}}, 3)};
  for (const Framework* framework : {&partitioning_, &waiting_}) {
    const auto why = Why(nodes, pods, PodOf("p", {{"nvidia.com/mig-1g.5gb", "1"}}), *framework);
    ASSERT_TRUE(why.in_the_way);
    EXPECT_THAT(why.in_the_way->pods, ElementsAre("x/u"));
    EXPECT_EQ(why.remedy,
              framework == &partitioning_
                  ? "wait for the end of pod x/u on node g, or give it a priority above 3"
                  : "wait for the end of pod x/u on node g")
        << "kube-scheduler does not preempt for slices that do not exist";
  }
}

TEST_F(ExplainTest, ReportsGatesAndGangsBeforeNodes) {
  Pod gated = PodOf("p", {{"cpu", "1"}});
  gated.scheduling_gates = {"example.com/quota"};
  const auto why = Why({NodeOf("a", {{"cpu", "4"}})}, {}, gated);
  EXPECT_NE(why.gate, "");
  EXPECT_EQ(why.remedy_code, remedies::kLiftGate);
  EXPECT_EQ(why.remedy,
            "wait until the component that set its scheduling gates removes them: "
            "example.com/quota");
  EXPECT_EQ(GatedText(gated),
            "waiting for scheduling gates: [example.com/quota]. Remedy: " + why.remedy + ".")
      << "as conditions and reports print it";
  const auto gang =
      Why({NodeOf("a", {{"cpu", "4"}})}, {}, PodOf("p"), partitioning_, "1 of 3 are there");
  EXPECT_EQ(gang.remedy_code, remedies::kCompleteGang);
}

TEST_F(ExplainTest, SuggestsNodeForClusterWithoutNodes) {
  EXPECT_EQ(Why({}, {}, PodOf("p")).remedy_code, remedies::kAddNode);
}

TEST_F(ExplainTest, TextFitsWidthAndJsonHasAllFields) {
  std::vector<Pod> pods;
  for (int i = 0; i < 30; ++i) {
    pods.push_back(Running("a-pod-with-a-long-name-" + std::to_string(i), "a", {{"cpu", "100m"}}));
  }
  Pod pod = PodOf("p", {{"cpu", "3"}});
  pod.node_selector["zone"] = "z";
  Node wrong = NodeOf("b", {{"cpu", "9"}});
  wrong.unschedulable = true;
  Node right = NodeOf("a", {{"cpu", "3"}}, {{"zone", "z"}});
  const auto why = Why({right, wrong}, pods, pod);
  const std::string text = ToText(why, 100);
  for (const auto line : Split(text, '\n')) EXPECT_LE(line.size(), 100u) << line;
  EXPECT_THAT(Split(text, '\n'), IsSupersetOf({"no node accepts x/p as it is",
                                               "  lacks       cpu: asks for 3, 0 of 3 free"}));
  EXPECT_THAT(text, HasSubstr("18 more"));
  EXPECT_THAT(text, HasSubstr("remedy"));
  const Json json = ToJson(why);
  EXPECT_EQ(json.at("nearest").at("lacks").at(0).at("asked"), Json("3"));
  EXPECT_EQ(json.at("inTheWay").at("pods").as_array().size(), 30u);
  EXPECT_EQ(json.at("remedy"), Json(why.remedy));
}

}  // namespace
}  // namespace nos::scheduling
