#include "planning/planner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"
#include "planning/testing/clusters.h"
#include "planning/testing/problems.h"
#include "planning/translation/translate.h"
#include "scheduling/framework.h"
#include "scheduling/remedies.h"

namespace nos::planning {
namespace {

using testing::ClusterBuilder;
using testing::CountsAfter;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::LayoutText;
using ::testing::Pair;
using testing::PlanFault;
using ::testing::UnorderedElementsAre;

constexpr const char* kA30 = "NVIDIA-A30";
constexpr const char* kA100 = "NVIDIA-A100-SXM4-40GB";
constexpr const char* kA100Big = "NVIDIA-A100-SXM4-80GB";

Plan Checked(const ClusterBuilder& cluster, const PlanOptions& options = {}) {
  Plan plan = cluster.MakePlan(options);
  EXPECT_EQ(PlanFault(plan, cluster.Snapshot()), "");
  return plan;
}

const PodOutcome& Outcome(const Plan& plan, const std::string& name) {
  return *std::find_if(plan.pods.begin(), plan.pods.end(),
                       [&](const PodOutcome& p) { return p.pod->meta.name == name; });
}

std::vector<std::string> Codes(const PodOutcome& outcome) {
  std::vector<std::string> codes;
  for (const Reason& r : outcome.reasons) codes.push_back(r.code);
  return codes;
}

// Cases of the planner and MIG GPU tests of the Go implementation (its internal/partitioning/core
// and pkg/gpu/mig), as behaviour of the whole planner. Deliberate differences:
// - "A30s empty, pods of 2, 3 and 2 x 1g.6gb -> both GPUs 1g.6gb x 4": the eighth instance would
//   serve no pod. The same pods are placed, with seven instances.
// - Pods whose slices only fit on two GPUs were rejected; the kubelet allows it.
// - "used 2g.20gb, need 7g.79gb -> unchanged": the same, with the current name 7g.80gb.
// - An idle instance outside every allowed geometry counted as capacity even if it blocks nothing.

TEST(ConformanceTest, RejectingFiltersLeaveClusterUnchanged) {
  ClusterBuilder cluster;
  cluster.Node("a", kA100, {"7g.40gb@0:free"}).unschedulable = true;
  cluster.Pod("p", {"1g.5gb"});
  const Plan plan = Checked(cluster);
  EXPECT_THAT(plan.nodes, IsEmpty());
  EXPECT_THAT(Codes(plan.pods[0]), ElementsAre("NodeUnschedulable"));
}

TEST(ConformanceTest, EmptySnapshotGivesEmptyPlan) {
  ClusterBuilder cluster;
  EXPECT_THAT(Checked(cluster).nodes, IsEmpty());
  cluster.Pod("p", {"1g.5gb"});
  const Plan plan = Checked(cluster);
  EXPECT_THAT(plan.nodes, IsEmpty());
  EXPECT_THAT(Codes(plan.pods[0]), ElementsAre("NoNodes"));
}

TEST(ConformanceTest, ProfileThatNoGeometryProvidesChangesNothing) {
  ClusterBuilder cluster;
  cluster.Node("a", kA30, {"4g.24gb@0:free"});
  cluster.Pod("p", {"3g.20gb"});
  const Plan plan = Checked(cluster);
  EXPECT_THAT(plan.nodes, IsEmpty());
  EXPECT_THAT(Codes(plan.pods[0]), ElementsAre("NoGpuForProfile"));
}

TEST(ConformanceTest, RequestsOfSeveralContainersAreSummed) {
  ClusterBuilder cluster;
  cluster.Node("node-1", kA30, {"4g.24gb@0:free"});
  cluster.Node("node-2", kA30, {""});
  cluster.Pod("a", {"1g.6gb", "1g.6gb"});
  cluster.Pod("b", {"1g.6gb", "1g.6gb", "1g.6gb"});
  cluster.Pod("c", {"1g.6gb", "1g.6gb"});
  const Plan plan = Checked(cluster);
  EXPECT_EQ(plan.placed, 3);
  EXPECT_EQ(plan.upper_bound, 3);
  EXPECT_EQ(plan.created, 7);
  EXPECT_EQ(plan.destroyed, 1);
}

TEST(ConformanceTest, RepartitionsFreeGpusOfSeveralModels) {
  ClusterBuilder cluster;
  const std::string four = "1g.6gb@0:free,1g.6gb@1:free,1g.6gb@2:free,1g.6gb@3:free";
  cluster.Node("node-1", kA30, {four, four});
  cluster.Node("node-2", kA100,
               {"1g.5gb@0:free,1g.5gb@1:free,1g.5gb@2:free,1g.5gb@3:free,1g.5gb@6:free,"
                "2g.10gb@4:free"});
  cluster.Pod("p1", {"3g.20gb", "3g.20gb"});
  cluster.Pod("p2", {"4g.24gb"});
  cluster.Pod("p3", {"2g.12gb"});
  cluster.Pod("p4", {"2g.12gb"});
  const Plan plan = Checked(cluster);
  EXPECT_EQ(plan.placed, 4);
  EXPECT_EQ(LayoutText(plan, "node-2", 0), "3g.20gb@0+ 3g.20gb@4+");
  const auto snapshot = cluster.Snapshot();
  EXPECT_THAT(
      (std::vector{CountsAfter(plan, snapshot, "node-1", 0),
                   CountsAfter(plan, snapshot, "node-1", 1)}),
      UnorderedElementsAre(ElementsAre(Pair("4g.24gb", 1)), ElementsAre(Pair("2g.12gb", 2))));
}

TEST(ConformanceTest, CompletesIncompleteGeometry) {
  ClusterBuilder cluster;
  cluster.Node("a", kA100Big, {"1g.10gb@0:free"});
  cluster.Pod("p", {"2g.20gb", "1g.10gb"});
  cluster.Pod("q", {"4g.40gb"});
  const Plan plan = Checked(cluster);
  EXPECT_EQ(plan.placed, 2);
  EXPECT_THAT(CountsAfter(plan, cluster.Snapshot(), "a", 0),
              ElementsAre(Pair("1g.10gb", 1), Pair("2g.20gb", 1), Pair("4g.40gb", 1)));
}

TEST(ConformanceTest, AddsBesideUsedInstances) {
  ClusterBuilder cluster;
  cluster.Node("a", kA100Big, {"1g.10gb@0:used,1g.10gb@1:used"});
  for (int i = 0; i < 6; ++i) cluster.Pod("p" + std::to_string(i), {"1g.10gb"});
  const Plan plan = Checked(cluster);
  EXPECT_EQ(plan.placed, 5);  // seven in total, two of them used
  EXPECT_EQ(plan.upper_bound, 5);
}

TEST(ConformanceTest, DestroysFreeInstancesForLargerOne) {
  ClusterBuilder cluster;
  cluster.Node("a", kA100Big, {"3g.40gb@4:used,1g.10gb@0:free,1g.10gb@1:free,1g.10gb@2:free"});
  cluster.Pod("p", {"3g.40gb"});
  const Plan plan = Checked(cluster);
  EXPECT_EQ(LayoutText(plan, "a", 0), "3g.40gb@0+ 3g.40gb@4*");
  EXPECT_EQ(plan.destroyed, 3);
}

TEST(ConformanceTest, NeverDestroysUsedInstance) {
  ClusterBuilder cluster;
  cluster.Node("a", kA100Big, {"2g.20gb@0:used"});
  cluster.Pod("p", {"7g.80gb"});
  const Plan plan = Checked(cluster);
  EXPECT_THAT(plan.nodes, IsEmpty());
  EXPECT_THAT(Codes(plan.pods[0]), ElementsAre("NoRoomForSlices"));
}

TEST(ConformanceTest, UsesFreeInstanceWithoutPartitioning) {
  ClusterBuilder cluster;
  cluster.Node("a", kA100, {"1g.5gb@0:free,3g.20gb@4:free"});
  cluster.Pod("p", {"3g.20gb"});
  const Plan plan = Checked(cluster);
  EXPECT_THAT(plan.nodes, IsEmpty());
  EXPECT_EQ(plan.placed, 1);
  EXPECT_TRUE(plan.pods[0].devices[0].existing);
}

TEST(PlannerTest, SlicesOfPodMayBeOnSeveralGpus) {
  ClusterBuilder cluster;
  cluster.Node("a", kA100, {"4g.20gb@0:used", "4g.20gb@0:used"});
  cluster.Pod("p", {"3g.20gb", "3g.20gb"});
  const Plan plan = Checked(cluster);
  EXPECT_EQ(plan.placed, 1);
  EXPECT_EQ(LayoutText(plan, "a", 0), "4g.20gb@0* 3g.20gb@4+");
  EXPECT_EQ(LayoutText(plan, "a", 1), "4g.20gb@0* 3g.20gb@4+");
}

TEST(PlannerTest, ServesHigherPriorityFirstAtAnyCost) {
  ClusterBuilder cluster;
  cluster.Node("a", kA100, {""});
  for (int i = 0; i < 7; ++i) cluster.Pod("small" + std::to_string(i), {"1g.5gb"}, 0);
  cluster.Pod("big", {"7g.40gb"}, 100);
  const Plan plan = Checked(cluster);
  EXPECT_EQ(plan.placed, 1);
  EXPECT_TRUE(Outcome(plan, "big").placed);
  EXPECT_EQ(plan.upper_bound, 7);  // ignores priorities
  EXPECT_THAT(Codes(Outcome(plan, "small0")), ElementsAre("TakenByPendingPods"));
}

TEST(PlannerTest, NominatedPodGoesFirstAmongPodsOfItsPriority) {
  ClusterBuilder cluster;
  cluster.Node("a", kA100, {"3g.20gb@4:free"});
  cluster.Pod("large", {"7g.40gb"}).nominated_node = "a";
  cluster.Pod("small", {"1g.5gb"});
  EXPECT_EQ(Outcome(Checked(cluster), "large").node, "a");
  cluster.Pod("urgent", {"1g.5gb"}).priority = 1;
  EXPECT_EQ(Outcome(Checked(cluster), "urgent").node, "a");
}

TEST(PlannerTest, ObjectiveDecidesBetweenManySmallAndFewLargePods) {
  ClusterBuilder cluster;
  cluster.Node("a", kA100, {"4g.20gb@0:used"});
  cluster.Pod("big", {"3g.20gb"});
  cluster.Pod("small1", {"1g.5gb"});
  cluster.Pod("small2", {"1g.5gb"});
  PlanOptions options;
  EXPECT_EQ(Checked(cluster, options).placed, 2);
  options.objective = Objective::kCompute;
  EXPECT_TRUE(Outcome(Checked(cluster, options), "big").placed);
  options.objective = Objective::kMemory;
  EXPECT_TRUE(Outcome(Checked(cluster, options), "big").placed);
}

TEST(PlannerTest, ImpossiblePodDoesNotBlockOthers) {
  ClusterBuilder cluster;
  cluster.Node("a", kA100, {"1g.5gb@6:used"});
  cluster.Pod("impossible", {"7g.40gb"}, 1000);
  cluster.Pod("unknown", {"9g.99gb"}, 1000);
  cluster.Pod("possible", {"3g.20gb"}, 0);
  const Plan plan = Checked(cluster);
  EXPECT_TRUE(Outcome(plan, "possible").placed);
  EXPECT_EQ(plan.upper_bound, 1);
  EXPECT_EQ(Outcome(plan, "unknown").remedy_code, scheduling::remedies::kRequestExistingProfile);
}

TEST(PlannerTest, RespectsResourcesTaintsAndSelectors) {
  ClusterBuilder cluster;
  cluster.Node("full", kA100, {"7g.40gb@0:free"});
  cluster.Running("r", "full", {}, "63500m");
  cluster.Node("tainted", kA100, {"7g.40gb@0:free"}).taints = {{"dedicated", "ml", "NoSchedule"}};
  cluster.Node("other", kA100, {"7g.40gb@0:free"}).meta.labels["zone"] = "b";
  cluster.Pod("p", {"7g.40gb"}, 0, "1").node_selector = {{"zone", "a"}};
  cluster.Pod("q", {"7g.40gb"}, 0, "1");
  const Plan plan = Checked(cluster);
  EXPECT_EQ(Outcome(plan, "q").node, "other");
  const PodOutcome& p = Outcome(plan, "p");
  EXPECT_FALSE(p.placed);
  EXPECT_EQ(p.reasons[0].code, "NodeAffinityMismatch");
}

TEST(PlannerTest, SpreadsPodsOverNodesWithCpuForOnePod) {
  ClusterBuilder cluster;
  for (int n = 0; n < 6; ++n) {
    cluster.Node("n" + std::to_string(n), kA100, {"7g.40gb@0:free"}).allocatable["cpu"] =
        Quantity::FromValue(1);
  }
  cluster.Pod("p", {"1g.5gb"}, 0, "1");
  cluster.Pod("q", {"1g.5gb"}, 0, "1");
  const Plan plan = Checked(cluster);
  EXPECT_EQ(plan.placed, 2);
  EXPECT_EQ(plan.nodes_touched, 2);
}

TEST(PlannerTest, UsesExistingSlicesOfUnmanagedNodes) {
  ClusterBuilder cluster;
  cluster.PlainNode("a").allocatable["nvidia.com/mig-1g.5gb"] = Quantity::FromValue(2);
  cluster.Running("r", "a", {"1g.5gb"});
  cluster.Pod("p", {"1g.5gb"});
  cluster.Pod("q", {"1g.5gb"});
  const Plan plan = Checked(cluster);
  EXPECT_EQ(plan.placed, 1);
  EXPECT_THAT(plan.nodes, IsEmpty());
  EXPECT_THAT(Outcome(plan, "p").devices, IsEmpty());
}

TEST(PlannerTest, UsesOnlyFreeInstancesOfFixedGpus) {
  ClusterBuilder cluster;
  cluster.Node("a", kA100, {"1g.5gb@6:free"});
  cluster::ClusterSnapshot snapshot = cluster.Snapshot();
  cluster::NodeGpus gpus = snapshot.node(0).gpus;
  gpus.gpus[0].fixed = true;
  ASSERT_TRUE(snapshot.SetGpus("a", gpus).ok());
  cluster.Pod("p", {"1g.5gb"});
  cluster.Pod("q", {"1g.5gb"});
  const Plan plan =
      MakePlan(snapshot, cluster.Pending(), scheduling::Framework::Default(), PlanOptions{});
  EXPECT_EQ(plan.placed, 1);
  EXPECT_THAT(plan.nodes, IsEmpty());
}

TEST(PlannerTest, PodsWithoutSlicesAvoidGpuNodes) {
  ClusterBuilder cluster;
  cluster.Node("a", kA100, {""});
  cluster.PlainNode("b");
  cluster.Pod("p", {}, 0, "1");
  const Plan plan = Checked(cluster);
  EXPECT_EQ(plan.pods[0].node, "b");
  EXPECT_THAT(plan.nodes, IsEmpty());
}

TEST(PlannerTest, SkipsGatedAndBoundPods) {
  ClusterBuilder cluster;
  cluster.Node("a", kA100, {""});
  cluster.Pod("gated", {"1g.5gb"}).scheduling_gates = {"example.com/wait"};
  cluster.Pod("bound", {"1g.5gb"}).node_name = "a";
  const Plan plan = Checked(cluster);
  EXPECT_EQ(plan.placed, 0);
  EXPECT_THAT(Codes(plan.pods[0]), ElementsAre("SchedulingGated"));
  EXPECT_THAT(Codes(plan.pods[1]), ElementsAre("NotPending"));
}

TEST(PlannerTest, RemediesNameTheSmallestChange) {
  ClusterBuilder cluster;
  cluster.Node("a", kA100, {"3g.20gb@4:used,1g.5gb@0:used,1g.5gb@1:used"});
  cluster.Running("x1", "a", {"1g.5gb"});
  cluster.Running("x2", "a", {"1g.5gb"});
  cluster.Running("x3", "a", {"3g.20gb"});
  cluster.Pod("p", {"3g.20gb"});
  Plan plan = Checked(cluster);
  EXPECT_EQ(plan.pods[0].remedy, "wait for the end of pod x/x3 on node a");
  cluster.Node("b", kA100, {""}).unschedulable = true;
  cluster.Pod("w", {"7g.40gb"});
  plan = Checked(cluster);
  EXPECT_EQ(plan.pods[1].remedy, "uncordon node b: it has room");
}

TEST(PlannerTest, RemediesNameMissingResourcesAndNodes) {
  ClusterBuilder cluster;
  cluster.Node("a", kA100, {""});
  cluster.Running("r", "a", {}, "63");
  cluster.Pod("p", {"1g.5gb"}, 0, "1500m");
  cluster.Pod("q", {"1g.5gb"}, 0, "100");
  cluster.Pod("w", {"4g.24gb"});
  const Plan plan = Checked(cluster);
  EXPECT_EQ(plan.pods[0].remedy, "wait for the end of pod x/r on node a");
  EXPECT_EQ(plan.pods[1].remedy,
            "add a node that the pod may use, with GPUs for 1g.5gb such as A100-40GB and at least "
            "100 cpu: node a, the nearest, has 64 cpu in all");
  EXPECT_EQ(plan.pods[2].remedy,
            "add a node that the pod may use, with GPUs for 4g.24gb such as A30");
}

TEST(PlannerTest, OutOfTimeStillGivesAValidPlan) {
  ClusterBuilder cluster;
  for (int n = 0; n < 4; ++n) cluster.Node("n" + std::to_string(n), kA100, {"7g.40gb@0:free", ""});
  for (int i = 0; i < 60; ++i) {
    cluster.Pod("p" + std::to_string(i), {i % 3 == 0 ? "3g.20gb" : "1g.5gb"}, i % 2);
  }
  PlanOptions options;
  options.out_of_time = [] { return true; };
  const Plan plan = Checked(cluster, options);
  EXPECT_FALSE(plan.complete);
  EXPECT_GT(plan.placed, 20);
}

TEST(PlannerTest, CompletePlanIsProven) {
  ClusterBuilder small;
  small.Node("a", kA100, {""});
  for (int i = 0; i < 9; ++i) small.Pod("p" + std::to_string(i), {"1g.5gb"});
  EXPECT_TRUE(Checked(small).complete);
  for (int seed = 0; seed < 5; ++seed) {
    ClusterBuilder big;
    for (int n = 0; n < 4; ++n) {
      big.Node("n" + std::to_string(n), kA100, std::vector<std::string>(8, ""));
    }
    const std::vector<std::pair<const char*, int>> wants = {
        {"4g.20gb", 57}, {"7g.40gb", 30}, {"3g.20gb", 29}, {"2g.10gb", 7 + seed}};
    for (const auto& [profile, count] : wants) {
      for (int i = 0; i < count; ++i) big.Pod(profile + std::to_string(i), {profile});
    }
    const Plan plan = Checked(big);
    EXPECT_EQ(plan.complete, plan.placed == plan.upper_bound);
    EXPECT_GE(plan.placed, 66);  // for example 29 x (4g + 3g), 2 x (2g + 2g + 2g), 4g + 2g
  }
}

// The whole content of a plan as text, to compare plans.
std::string Dump(const Plan& plan) {
  std::string text;
  for (const PodOutcome& p : plan.pods) {
    text += p.pod->Key() + ">" + p.node + ";" + p.remedy;
    for (const AssignedDevice& d : p.devices) {
      text += " " + std::to_string(d.gpu) + d.profile + std::to_string(d.placement.start);
    }
    for (const Reason& r : p.reasons) text += r.code + std::to_string(r.nodes);
  }
  for (const PlannedNode& n : plan.nodes) {
    for (const PlannedGpu& g : n.gpus) text += LayoutText(plan, n.name, g.index) + "|";
  }
  return text;
}

TEST(PlannerTest, EqualInputGivesEqualPlan) {
  ClusterBuilder cluster;
  for (int n = 0; n < 5; ++n) {
    cluster.Node("n" + std::to_string(n), n % 2 ? kA100 : kA30, {"", "1g.5gb@0:free"});
  }
  for (int i = 0; i < 80; ++i) {
    const char* profiles[] = {"1g.5gb", "2g.10gb", "3g.20gb", "1g.6gb", "4g.24gb"};
    cluster.Pod("p" + std::to_string(i), {profiles[i % 5]}, i % 3, std::to_string(i % 4));
  }
  EXPECT_EQ(Dump(Checked(cluster)), Dump(Checked(cluster)));
}

// Small clusters as Kubernetes objects, with every kind of obstacle.
ClusterBuilder RandomCluster(Random& random) {
  ClusterBuilder cluster;
  const char* small[] = {"1g.6gb@0:used", "2g.12gb@2:free", "1g.6gb@3:free,2g.12gb@0:used", ""};
  const char* big[] = {"3g.20gb@4:used", "7g.40gb@0:free", "1g.5gb@1:used,2g.10gb@4:free", ""};
  for (int n = 0; n < 3; ++n) {
    const bool a30 = random.Chance(0.4);
    std::vector<std::string> layouts;
    for (uint64_t g = 1 + random.Below(2); g > 0; --g) {
      layouts.emplace_back((a30 ? small : big)[random.Below(4)]);
    }
    auto& node = cluster.Node("n" + std::to_string(n), a30 ? kA30 : kA100, layouts);
    node.allocatable["cpu"] = Quantity::FromValue(1 + static_cast<int64_t>(random.Below(8)));
    node.meta.labels["zone"] = random.Chance(0.5) ? "a" : "b";
    if (random.Chance(0.2)) node.taints = {{"dedicated", "ml", "NoSchedule"}};
    if (random.Chance(0.1)) node.unschedulable = true;
  }
  const char* profiles[] = {"1g.5gb", "2g.10gb", "3g.20gb", "7g.40gb", "1g.6gb", "2g.12gb"};
  for (uint64_t i = 1 + random.Below(9); i > 0; --i) {
    std::vector<std::string> wants(1 + random.Below(2), profiles[random.Below(6)]);
    if (random.Chance(0.1)) wants.clear();
    auto& pod = cluster.Pod("p" + std::to_string(i), wants, static_cast<int>(random.Below(2)),
                            std::to_string(random.Below(4)));
    if (random.Chance(0.3)) pod.tolerations = {{"dedicated", "Exists", "", ""}};
    if (random.Chance(0.2)) pod.node_selector = {{"zone", "a"}};
  }
  return cluster;
}

TEST(PlannerTest, ServesEachPriorityAsWellAsExhaustiveSearch) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const ClusterBuilder cluster = RandomCluster(random);
    const Plan plan = Checked(cluster);
    const auto snapshot = cluster.Snapshot();
    const auto pending = cluster.Pending();
    const Translation translation =
        Translate(snapshot, pending, scheduling::Framework::Default(), {});
    const testing::Reference reference = testing::SolveByForce(translation.problem);
    std::vector<int64_t> score(translation.problem.levels);
    for (size_t i = 0; i < plan.pods.size(); ++i) {
      const PodClass& cls = translation.problem.classes[translation.class_of[i]];
      if (plan.pods[i].placed) score[cls.level] += cls.value * kValueUnit + 1;
    }
    ASSERT_EQ(score, reference.score);
    ASSERT_GE(plan.upper_bound, reference.most_pods);
  }
}

}  // namespace
}  // namespace nos::planning
