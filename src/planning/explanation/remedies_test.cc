#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "base/text.h"
#include "planning/planner.h"
#include "planning/remedies.h"
#include "planning/testing/clusters.h"
#include "scheduling/framework.h"

namespace nos::planning {
namespace {

using testing::ClusterBuilder;
using ::testing::HasSubstr;

namespace remedies = scheduling::remedies;

constexpr const char* kA100 = "NVIDIA-A100-SXM4-40GB";
constexpr const char* kA100Big = "NVIDIA-A100-SXM4-80GB";

PodOutcome First(const ClusterBuilder& cluster) { return cluster.MakePlan().pods[0]; }

Plan PlanWith(const gpu::Catalogue& catalogue, const ClusterBuilder& cluster) {
  const scheduling::Framework framework = scheduling::Framework::Default();
  const auto snapshot = cluster.Snapshot(catalogue);
  const auto pending = cluster.Pending();
  Plan plan = MakePlan(snapshot, pending, framework, {});
  AddRemedies(snapshot, {}, framework, {}, nullptr, plan);
  return plan;
}

TEST(RemedyTest, UsesModelsOfUserCatalogue) {
  const auto catalogue = gpu::Catalogue::Load(R"(
remove:
  - model: A30
models:
  - name: Mini
    products: [Mini 2000]
    memoryGiB: 32
    computeSlices: 2
    slots: 2
    profiles:
      - {name: 1g.16gb, compute: 1, size: 1, starts: [0, 1], max: 2, memoryMiB: 15872}
)");
  ASSERT_TRUE(catalogue.ok());
  ASSERT_THAT(catalogue.value().problems(), ::testing::IsEmpty());
  ClusterBuilder cluster;
  cluster.Node("a", kA100, {""});
  cluster.Node("m", "Mini-2000", {""}).meta.labels.erase(std::string(cluster::kPartitioningLabel));
  cluster.Pod("removed", {"4g.24gb"});
  cluster.Pod("added", {"1g.16gb"});
  cluster.Pod("two", {"1g.16gb", "1g.16gb", "1g.16gb"});
  const Plan plan = PlanWith(*catalogue, cluster);
  EXPECT_EQ(plan.pods[0].remedy_code, remedies::kRequestExistingProfile);
  EXPECT_EQ(plan.pods[1].remedy_code, remedies::kOptInNode);
  // The node has one GPU, which does not hold three.
  EXPECT_EQ(plan.pods[2].remedy_code, remedies::kAddNode);
  EXPECT_EQ(plan.pods[2].remedy,
            "add a node that the pod may use, with GPUs for 3 x 1g.16gb such as Mini");
}

// Profiles that a model has, but that no geometry of the user's list contains.
TEST(RemedyTest, RespectsGeometriesOfUserCatalogue) {
  const auto catalogue = gpu::Catalogue::Load(R"(
knownMigGeometries:
  - models: [NVIDIA-A100-SXM4-40GB]
    allowedGeometries: [{2g.10gb: 1}]
  - models: [NVIDIA-A30]
    allowedGeometries: [{2g.12gb: 2}]
remove:
  - model: RTX-PRO-6000
)");
  ASSERT_TRUE(catalogue.ok());
  ASSERT_THAT(catalogue.value().problems(), ::testing::IsEmpty());
  ClusterBuilder cluster;
  cluster.Node("a", kA100, {"", ""});
  cluster.Pod("small", {"1g.5gb"});
  cluster.Pod("other", {"1g.10gb"});  // A100-80GB and others have it
  cluster.Pod("fits", {"2g.10gb"});
  const Plan plan = PlanWith(*catalogue, cluster);
  ASSERT_EQ(plan.pods[0].reasons.size(), 1U);
  EXPECT_EQ(plan.pods[0].reasons[0].code, "NoGpuForProfile");
  EXPECT_EQ(plan.pods[0].reasons[0].message,
            "node(s) had GPUs A100-40GB that the catalogue does not allow to hold 1g.5gb");
  EXPECT_EQ(plan.pods[0].remedy_code, remedies::kAllowInCatalogue);
  EXPECT_EQ(plan.pods[1].reasons[0].code, "NoGpuForProfile");
  EXPECT_EQ(plan.pods[1].remedy_code, remedies::kAddNode);
  EXPECT_EQ(plan.pods[1].remedy,
            "add a node that the pod may use, with GPUs for 1g.10gb such as A100-80GB");
  EXPECT_TRUE(plan.pods[2].placed);
}

TEST(RemedyTest, WaitsForPodThatHoldsAllMissingResources) {
  ClusterBuilder cluster;
  cluster.Node("a", kA100, {""}).allocatable["memory"] = Quantity::FromValue(1000);
  cluster.Running("r", "a", {}, "64").containers[0].requests["memory"] = Quantity::FromValue(900);
  cluster.Pod("p", {"1g.5gb"}, 0, "1").containers[0].requests["memory"] = Quantity::FromValue(200);
  cluster.Running("other", "a", {}, "1");
  EXPECT_EQ(First(cluster).remedy, "wait for the end of pod x/r on node a");
}

TEST(RemedyTest, UncordonIncludesRemovalOfCordonTaint) {
  ClusterBuilder cluster;
  auto& node = cluster.Node("a", kA100, {""});
  node.unschedulable = true;
  node.taints = {{"node.kubernetes.io/unschedulable", "", "NoSchedule"}};
  cluster.Pod("p", {"1g.5gb"});
  EXPECT_EQ(First(cluster).remedy, "uncordon node a: it has room");
}

TEST(RemedyTest, SuggestsLargerProfileOfExistingGpus) {
  ClusterBuilder cluster;
  cluster.Node("a", kA100Big, {""});
  cluster.Pod("p", {"1g.5gb"});
  const PodOutcome outcome = First(cluster);
  EXPECT_EQ(outcome.remedy_code, remedies::kRequestExistingProfile);
  EXPECT_EQ(outcome.remedy,
            "request nvidia.com/mig-1g.10gb instead of nvidia.com/mig-1g.5gb: no GPU of this "
            "cluster has 1g.5gb, and A100-80GB has 1g.10gb");
}

TEST(RemedyTest, SuggestsAdvertisedNameOfProfile) {
  ClusterBuilder cluster;
  cluster.Node("a", kA100Big, {""});
  cluster.Pod("p", {"7g.79gb"});
  const PodOutcome outcome = First(cluster);
  EXPECT_EQ(outcome.remedy_code, remedies::kRequestAdvertisedName);
  EXPECT_EQ(outcome.remedy,
            "request nvidia.com/mig-7g.80gb instead of nvidia.com/mig-7g.79gb: A100-80GB offers it "
            "by that name");
  EXPECT_THAT(outcome.reasons[0].message, HasSubstr("as nvidia.com/mig-7g.80gb"));
}

// Applies the change that the remedy describes. False if the builder cannot do it.
bool Apply(const std::string& remedy, cluster::Node& node, cluster::Pod& pod) {
  const bool uncordon = remedy.find("uncordon") != std::string::npos;
  const bool taints = remedy.find("taint") != std::string::npos;
  const bool let = remedy.find("zone=a") != std::string::npos;
  if (uncordon) node.unschedulable = false;
  if (taints) node.taints.clear();
  if (let) pod.node_selector.clear();
  const bool wait = remedy.find("wait for the end of ") != std::string::npos;
  const bool room = remedy.find("free ") != std::string::npos;
  if (remedy.find(" nvidia.com/mig-") != std::string::npos) {  // that no known pod uses
    node.meta.annotations["nos.nebuly.com/status-layout-0"] = "";
  }
  if (wait || remedy.find(" cpu") != std::string::npos) {
    node.allocatable["cpu"] = Quantity::FromValue(1000);
  }
  return uncordon || taints || let || wait || room;
}

TEST(RemedyTest, AppliedRemedyLetsPodRun) {
  int followed = 0;
  for (uint64_t seed = 0; seed < 1500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    ClusterBuilder cluster;
    std::vector<cluster::Node*> nodes;
    for (int n = 0; n < 3; ++n) {
      const char* layouts[] = {"", "3g.20gb@4:used", "7g.40gb@0:used", "1g.5gb@1:used"};
      auto& node = cluster.Node("n" + std::to_string(n), kA100, {layouts[random.Below(4)]});
      node.allocatable["cpu"] = Quantity::FromValue(4);
      if (random.Chance(0.5)) node.taints = {{"dedicated", "ml", "NoSchedule"}};
      if (random.Chance(0.3)) node.taints.push_back({"old", "", "NoExecute"});
      if (random.Chance(0.3)) node.unschedulable = true;
      if (random.Chance(0.5)) node.meta.labels["zone"] = "a";
      if (random.Chance(0.4)) cluster.Running("r" + std::to_string(n), node.meta.name, {}, "3");
      nodes.push_back(&node);
    }
    const char* profiles[] = {"1g.5gb", "3g.20gb", "7g.40gb"};
    auto& pod = cluster.Pod("p", {profiles[random.Below(3)]}, 0, "2");
    if (random.Chance(0.5)) pod.node_selector = {{"zone", "a"}};
    const PodOutcome outcome = First(cluster);
    if (outcome.placed) continue;
    for (cluster::Node* node : nodes) {
      if (outcome.remedy.find("node " + node->meta.name) == std::string::npos) continue;
      if (!Apply(outcome.remedy, *node, pod)) continue;
      ++followed;
      EXPECT_TRUE(First(cluster).placed) << outcome.remedy;
    }
  }
  EXPECT_GT(followed, 300);
}

// A larger node must also have the GPUs.
TEST(RemedyTest, LargerNodeAlsoNeedsGpus) {
  ClusterBuilder cluster;
  cluster.Node("a", kA100, {""});
  cluster.Pod("p", {"7g.40gb"}, 0, "100");
  EXPECT_EQ(First(cluster).remedy_code, remedies::kAddNode);
  EXPECT_EQ(First(cluster).remedy,
            "add a node that the pod may use, with GPUs for 7g.40gb such as A100-40GB and at least "
            "100 cpu: node a, the nearest, has 64 cpu in all");
}

TEST(RemedyTest, NewNodeNeedsLabelsAndResources) {
  ClusterBuilder cluster;
  cluster.PlainNode("a");
  cluster.Pod("p", {}, 0, "100").node_selector = {{"zone", "b"}};
  EXPECT_EQ(First(cluster).remedy_code, remedies::kAddNode);
  EXPECT_THAT(First(cluster).remedy, HasSubstr("zone=b"));
  EXPECT_THAT(First(cluster).remedy, HasSubstr("100 cpu"));
}

TEST(RemedyTest, HolderOfInstanceFreesItsCpu) {
  ClusterBuilder cluster;
  auto& node = cluster.Node("a", kA100, {"7g.40gb@0:used"});
  auto& holder = cluster.Running("r", "a", {"7g.40gb"}, "60");
  node.meta.annotations["nos.nebuly.com/status-holders-0"] = "7g.40gb@0=" + holder.Key();
  cluster.Pod("p", {"7g.40gb"}, 0, "60");
  EXPECT_EQ(First(cluster).remedy_code, remedies::kWaitForPods);
  EXPECT_EQ(First(cluster).remedy, "wait for the end of pod x/r on node a");
  holder.containers[0].requests["cpu"] = Quantity::FromValue(1);
  cluster.Running("other", "a", {}, "60");
  EXPECT_EQ(First(cluster).remedy, "wait for the end of pod x/other, pod x/r on node a");
}

}  // namespace
}  // namespace nos::planning
