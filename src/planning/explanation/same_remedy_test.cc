// The planner and the scheduler's explanation agree on situations that once had two remedies, and
// on random clusters.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/random.h"
#include "cluster/annotations.h"
#include "planning/planner.h"
#include "planning/testing/clusters.h"
#include "scheduling/explain.h"
#include "scheduling/explain_gang.h"
#include "scheduling/framework.h"
#include "scheduling/pod_names.h"
#include "scheduling/remedies.h"

namespace nos::planning {
namespace {

using scheduling::Framework;
using scheduling::PartitionedBy;
using testing::ClusterBuilder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
namespace codes = scheduling::codes;
namespace remedies = scheduling::remedies;

constexpr const char* kA100 = "NVIDIA-A100-SXM4-40GB";
constexpr const char* kWhole = "nvidia.com/gpu";

cluster::Pod& Asking(cluster::Pod& pod, const std::string& resource, int64_t amount) {
  pod.containers[0].requests[resource] = Quantity::FromValue(amount);
  return pod;
}

cluster::Node& WithCpu(cluster::Node& node, int64_t cpu) {
  node.allocatable["cpu"] = Quantity::FromValue(cpu);
  return node;
}

// GPUs that their owner has not opted in, which the device plugin offers whole.
cluster::Node& Plain(ClusterBuilder& cluster, const std::string& name, int64_t gpus) {
  cluster::Node& node =
      cluster.Node(name, kA100, std::vector<std::string>(static_cast<size_t>(gpus)));
  node.meta.annotations.clear();
  node.meta.labels.erase(std::string(cluster::kPartitioningLabel));
  node.allocatable[kWhole] = Quantity::FromValue(gpus);
  return node;
}

void KeepAwayFromAll(cluster::Pod& pod) {
  cluster::PodAffinityTerm term;
  term.topology_key = "kubernetes.io/hostname";
  term.selector.emplace().match_labels = {{"app", "r"}};
  term.namespace_selector.emplace();
  pod.pod_anti_affinity.required = {term};
}

class SameRemedyTest : public ::testing::Test {
 protected:
  PodOutcome Planned() const { return cluster_.MakePlan(options_).pods.at(0); }
  scheduling::Explanation Explained() const {
    const Framework partitioning = Framework::Default(PartitionedBy::kScheduler);
    const auto snapshot = cluster_.Snapshot();
    const auto pending = cluster_.Pending();
    const scheduling::ExplainInput input{partitioning, partitioning, snapshot, *pending.at(0)};
    if (options_.gangs.empty()) return scheduling::Explain(input);
    const Gang& gang = options_.gangs.front();
    return scheduling::ExplainTogether(
        input, {gang.name, static_cast<size_t>(gang.least), 0, {pending.begin(), pending.end()}});
  }
  void ExpectBoth(const std::string& code) const {
    EXPECT_EQ(Planned().remedy_code, code) << Planned().remedy;
    EXPECT_EQ(Explained().remedy_code, code) << Explained().remedy;
  }
  void ExpectNewNodeWith(const std::vector<std::string>& parts) const {
    ExpectBoth(remedies::kAddNode);
    EXPECT_EQ(Planned().remedy, Explained().remedy);
    for (const std::string& part : parts) EXPECT_THAT(Planned().remedy, HasSubstr(part));
  }
  cluster::Pod& Pod(const std::vector<std::string>& profiles, const std::string& cpu = "") {
    cluster::Pod& pod = cluster_.Pod("p", profiles, 0, cpu);
    pod.preemption_policy = "Never";
    return pod;
  }
  // Pods p and q, which need each other.
  void GangOf(int least) {
    options_.gangs = {{.name = "pod group x/g", .least = least, .members = {0, 1}, .problem = ""}};
  }

  ClusterBuilder cluster_;
  PlanOptions options_;
};

TEST_F(SameRemedyTest, NewNodeForWholeGpusHasLabelAndCpu) {
  cluster::Node& node = cluster_.Node("a", kA100, {"", ""});
  node.meta.labels["zone"] = "a";
  node.unschedulable = true;
  node.taints = {{"dedicated", "ml", "NoExecute"}};
  Asking(Pod({}, "4"), kWhole, 2).node_selector = {{"zone", "a"}};
  ExpectNewNodeWith({"label zone=a", "4 cpu", "2 nvidia.com/gpu"});
}

TEST_F(SameRemedyTest, NewNodeForSlicesOfTwoModesHasCpu) {
  WithCpu(Plain(cluster_, "a", 2), 8);
  WithCpu(cluster_.PlainNode("b"), 16);
  WithCpu(cluster_.Node("c", kA100, {"7g.40gb@0:free", "3g.20gb@0:free"}), 8);
  Pod({"7g.40gb", "20gb"}, "10");
  ExpectNewNodeWith({"=hybrid", "10 cpu"});
}

TEST_F(SameRemedyTest, NewNodeForSlicesHasWholeGpuOfSamePod) {
  cluster_.Node("a", kA100, {"2g.10gb@0:used", "2g.10gb@0:used"});
  cluster_.Running("r0", "a", {"2g.10gb"}).meta.labels = {{"app", "r"}};
  cluster_.Running("r1", "a", {"2g.10gb"}).meta.labels = {{"app", "r"}};
  Plain(cluster_, "b", 2);
  Asking(Asking(Pod({"2g.10gb"}, "1"), "nvidia.com/mig-2g.10gb", 2), kWhole, 1);
  ExpectNewNodeWith({"GPUs for 2 x 2g.10gb", "1 nvidia.com/gpu", "1 cpu"});
}

TEST_F(SameRemedyTest, NewNodeForSlicesThatFitBesideTooLittleCpu) {
  WithCpu(cluster_.Node("a", kA100, {""}), 2);
  WithCpu(cluster_.Node("b", kA100, {"2g.10gb@0:free,3g.20gb@4:free"}), 2);
  Pod({"4g.20gb"}, "10");
  ExpectNewNodeWith({"GPUs for 4g.20gb", "10 cpu", "node a, the nearest, has 2 cpu"});
}

TEST_F(SameRemedyTest, NodeWhoseGpusAreHeldIsNotOptedIn) {
  Plain(cluster_, "a", 1);
  cluster_.Running("r", "a", {"gpu"});
  Pod({"2g.10gb"});
  ExpectBoth(remedies::kAddNode);
}

TEST_F(SameRemedyTest, NodeWithAnotherFreeGpuIsOptedIn) {
  Plain(cluster_, "a", 2);
  cluster_.Running("r", "a", {"gpu"});
  Pod({"2g.10gb"});
  ExpectBoth(remedies::kOptInNode);
}

// A node opted in to MIG offers no whole GPUs to pods of nos.
TEST_F(SameRemedyTest, NodeIsNotOptedInForPodWithWholeGpus) {
  Plain(cluster_, "a", 4);
  Asking(Pod({"3g.20gb"}), kWhole, 3);
  ExpectBoth(remedies::kAddNode);
}

TEST_F(SameRemedyTest, CpuIsAwaitedFromPodsThatHoldIt) {
  WithCpu(cluster_.Node("a", kA100, {"", "4g.20gb@0:used"}), 4);
  cluster_.Running("r", "a", {"4g.20gb"}, "1");
  cluster_.Running("d", "a", {}, "2").meta.owners.emplace_back().kind = "DaemonSet";
  Pod({}, "2");
  ExpectBoth(remedies::kWaitForPods);
  EXPECT_THAT(Explained().in_the_way->pods, ElementsAre("x/r"));
}

TEST_F(SameRemedyTest, OneTaintIsLessThanTwoPods) {
  cluster_.Node("a", kA100, {""}).taints = {{"dedicated", "ml", "NoSchedule"}};
  WithCpu(cluster_.PlainNode("b"), 2);
  cluster_.Running("r0", "b", {}, "1");
  cluster_.Running("r1", "b", {}, "1");
  Pod({}, "2");
  ExpectBoth(remedies::kLiftConstraints);
}

TEST_F(SameRemedyTest, FewestOfManyPodsAreAwaited) {
  WithCpu(cluster_.PlainNode("a"), 8);
  for (const char* name : {"r0", "r1", "r2", "r3"}) cluster_.Running(name, "a", {}, "2");
  Pod({}, "6");
  ExpectBoth(remedies::kWaitForPods);
  EXPECT_EQ(Planned().remedy, "wait for the end of pod x/r1, pod x/r2, pod x/r3 on node a");
}

// Schedulers place the pod on the advertised share.
TEST_F(SameRemedyTest, AdvertisedShareOfUnreadableLayoutIsUsed) {
  cluster::Node& node = cluster_.SharedNode("a", 31, {"20gb@0:free,10gb@0:free"});
  node.allocatable["nvidia.com/gpu-10gb"] = Quantity::FromValue(1);
  Pod({"10gb"});
  EXPECT_TRUE(Planned().placed);
  EXPECT_EQ(Explained().remedy_code, remedies::kNoneNeeded);
}

TEST_F(SameRemedyTest, UnreadableLayoutWithoutShareIsGpuProblem) {
  cluster_.SharedNode("a", 31, {"20gb@0:free,10gb@0:free"});
  Pod({"10gb"});
  EXPECT_EQ(Planned().reasons.at(0).code, codes::kGpuProblem);
  ExpectBoth(remedies::kAddNode);
}

TEST_F(SameRemedyTest, PlanNamesPodsSoThatConditionsCanHideThem) {
  cluster_.PlainNode("a").meta.labels["kubernetes.io/hostname"] = "a";
  for (const char* ns : {"x", "y"}) {
    cluster::Pod& running = cluster_.Running("r", "a", {}, "1");
    running.meta.ns = ns;
    running.meta.labels = {{"app", "r"}};
  }
  KeepAwayFromAll(Pod({}, "1"));
  ExpectBoth(remedies::kLiftConstraints);
  const std::string all = Planned().remedy;
  EXPECT_EQ(all,
            "wait for the end of pod x/r and pod y/r, with which its anti-affinity rules out the "
            "same kubernetes.io/hostname (node a): it has room");
  EXPECT_EQ(scheduling::NamesOnlyFor("x", all),
            "wait for the end of pod x/r and 1 pod of another namespace, with which its "
            "anti-affinity rules out the same kubernetes.io/hostname (node a): it has room");
}

TEST_F(SameRemedyTest, GangHasRemedyOfItsMembers) {
  cluster_.PlainNode("a").meta.labels["zone"] = "b";
  for (const char* name : {"p", "q"}) {
    cluster_.Pod(name, {}, 0, "2").node_selector = {{"zone", "c"}};
  }
  GangOf(2);
  ExpectBoth(remedies::kLiftConstraints);
  EXPECT_EQ(Planned().remedy, Explained().remedy);
}

TEST_F(SameRemedyTest, GangHasNodeOptedIn) {
  Plain(cluster_, "a", 2);
  for (const char* name : {"p", "q"}) cluster_.Pod(name, {"3g.20gb"});
  GangOf(2);
  ExpectBoth(remedies::kOptInNode);
}

// One member has room, so the remedy is that of the other.
TEST_F(SameRemedyTest, GangWaitsForPodsBesideItsFirstMember) {
  WithCpu(cluster_.PlainNode("a"), 4);
  cluster_.Running("r", "a", {}, "2");
  for (const char* name : {"p", "q"}) cluster_.Pod(name, {}, 0, "2").preemption_policy = "Never";
  GangOf(2);
  ExpectBoth(remedies::kWaitForPods);
  EXPECT_THAT(Explained().in_the_way->pods, ElementsAre("x/r"));
}

TEST_F(SameRemedyTest, GangOfMoreCpuThanTheNodeNeedsNewNode) {
  WithCpu(cluster_.PlainNode("a"), 3);
  for (const char* name : {"p", "q"}) cluster_.Pod(name, {}, 0, "2").preemption_policy = "Never";
  GangOf(2);
  ExpectBoth(remedies::kAddNode);
}

TEST_F(SameRemedyTest, GangWithTooFewMembersIsCompletedBeforeItsShares) {
  cluster_.PlainNode("a");
  for (const char* name : {"p", "q"}) Asking(cluster_.Pod(name, {}), "nvidia.com/gpu-10gb", 2);
  GangOf(3);
  ExpectBoth(remedies::kCompleteGang);
  EXPECT_EQ(Planned().reasons.at(0).code, codes::kGangIncomplete);
  EXPECT_EQ(Planned().reasons.at(1).code, codes::kSeveralShares);
}

TEST_F(SameRemedyTest, GangOfPodWithSeveralSharesRequestsOne) {
  cluster_.PlainNode("a");
  cluster_.Pod("p", {}, 0, "1");
  Asking(cluster_.Pod("q", {}), "nvidia.com/gpu-10gb", 2);
  GangOf(2);
  ExpectBoth(remedies::kRequestOneShare);
}

// Random clusters of up to three nodes with one pending pod, which preempts no pod.
class RandomCluster {
 public:
  explicit RandomCluster(uint64_t seed) : random_(seed) {
    const int nodes = 1 + static_cast<int>(random_.Below(3));
    for (int n = 0; n < nodes; ++n) AddNode("n" + std::to_string(n));
    AddPod();
  }
  const ClusterBuilder& cluster() const { return cluster_; }

 private:
  void AddNode(const std::string& name) {
    struct Used {
      const char* layout;
      const char* profile;
    };
    constexpr Used kMig[] = {{"", ""},
                             {"3g.20gb@4:used", "3g.20gb"},
                             {"7g.40gb@0:used", "7g.40gb"},
                             {"1g.5gb@1:used", "1g.5gb"},
                             {"7g.40gb@0:free", ""}};
    constexpr Used kMps[] = {{"", ""}, {"10gb@0:used", "10gb"}, {"20gb@0:used", "20gb"}};
    const uint64_t kind = random_.Below(5);
    const Used used = kind == 4 ? kMps[random_.Below(3)] : kMig[random_.Below(5)];
    std::string held;
    cluster::Node* node = nullptr;
    if (kind == 0) {
      node = &cluster_.PlainNode(name);
    } else if (kind == 1) {
      node = &Plain(cluster_, name, 1 + static_cast<int64_t>(random_.Below(2)));
      if (random_.Chance(0.5)) held = "gpu";
    } else {
      node = kind == 4 ? &cluster_.SharedNode(name, 31, {used.layout})
                       : &cluster_.Node(name, kA100, {used.layout});
      held = used.profile;
    }
    const int64_t cpu = int64_t{2} << random_.Below(3);
    WithCpu(*node, cpu);
    if (random_.Chance(0.3)) node->meta.labels["zone"] = "a";
    if (random_.Chance(0.2)) node->taints = {{"dedicated", "ml", "NoSchedule"}};
    if (random_.Chance(0.2)) node->unschedulable = true;
    if (!held.empty()) cluster_.Running("r-" + name, name, {held}, "1");
    if (random_.Chance(0.5)) {
      cluster::Pod& other = cluster_.Running("s-" + name, name, {}, "1");
      if (random_.Chance(0.3)) other.meta.owners.emplace_back().kind = "DaemonSet";
    }
  }
  void AddPod() {
    const char* profiles[] = {"1g.5gb", "3g.20gb", "7g.40gb", "10gb", "20gb", "gpu"};
    const char* cpus[] = {"", "1", "2", "4", "10"};
    std::vector<std::string> asked;
    if (random_.Chance(0.8)) asked.emplace_back(profiles[random_.Below(6)]);
    cluster::Pod& pod = cluster_.Pod("p", asked, 0, cpus[random_.Below(5)]);
    pod.preemption_policy = "Never";
    if (random_.Chance(0.3)) pod.node_selector = {{"zone", "a"}};
  }

  Random random_;
  ClusterBuilder cluster_;
};

TEST(SameRemedyPropertyTest, PlannerAndSchedulerGiveSameRemedyOnRandomClusters) {
  std::map<std::string, int> compared;
  const Framework partitioning = Framework::Default(PartitionedBy::kScheduler);
  for (uint64_t seed = 0; seed < 600; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const RandomCluster random(seed);
    const auto snapshot = random.cluster().Snapshot();
    const auto pending = random.cluster().Pending();
    const PodOutcome planned = random.cluster().MakePlan().pods.at(0);
    const auto why = scheduling::Explain({partitioning, partitioning, snapshot, *pending.at(0)});
    EXPECT_EQ(why.place.has_value(), planned.placed) << why.remedy << " / " << planned.remedy;
    if (planned.placed) continue;
    EXPECT_EQ(why.remedy_code, planned.remedy_code);
    EXPECT_EQ(why.remedy, planned.remedy);
    ++compared[planned.remedy_code];
  }
  for (const char* code : {remedies::kAddNode, remedies::kLiftConstraints, remedies::kWaitForPods,
                           remedies::kOptInNode}) {
    EXPECT_GT(compared[code], 15) << code;
  }
}

}  // namespace
}  // namespace nos::planning
