// Nodes whose GPUs each have their own sharing mode: one plan serves all modes.
#include <gtest/gtest.h>

#include <algorithm>

#include "cluster/gpu_requirements.h"
#include "planning/planner.h"
#include "planning/slice_choice.h"
#include "planning/testing/clusters.h"
#include "scheduling/framework.h"
#include "scheduling/remedies.h"

namespace nos::planning {
namespace {

using testing::ClusterBuilder;
using testing::LayoutText;
using testing::PlanFault;

namespace remedies = scheduling::remedies;

constexpr const char* kUnshared = "H100-80GB+GPU+TIME-4|MPS-79GB";
constexpr const char* kShared = "MPS-79GB|H100-80GB+GPU+TIME-4";

PlanOptions At(Time now) {
  PlanOptions options;
  options.now = now;
  return options;
}
const Time kNow = Time{} + std::chrono::hours(1000);

Plan Checked(const ClusterBuilder& cluster) {
  Plan plan = cluster.MakePlan(At(kNow));
  EXPECT_EQ(PlanFault(plan, cluster.Snapshot()), "");
  return plan;
}

const PodOutcome& Outcome(const Plan& plan, const std::string& name) {
  return *std::ranges::find(plan.pods, name, [](const PodOutcome& p) { return p.pod->meta.name; });
}

std::string With(const std::string& gpu, const std::string& layout) { return gpu + " " + layout; }

TEST(HybridPlanTest, OnePlanServesAllSharingModes) {
  ClusterBuilder cluster;
  cluster.HybridNode("a", {kUnshared, kUnshared, kShared, kShared});
  for (int i = 0; i < 7; ++i) cluster.Pod("mig" + std::to_string(i), {"1g.10gb"});
  for (int i = 0; i < 7; ++i) cluster.Pod("mps" + std::to_string(i), {"11gb"});
  for (int i = 0; i < 4; ++i) cluster.Pod("time" + std::to_string(i), {"shared"});
  cluster.Pod("whole", {"gpu"});
  const Plan plan = Checked(cluster);
  EXPECT_EQ(plan.placed, 19);
  EXPECT_EQ(plan.upper_bound, 19);
  EXPECT_TRUE(plan.complete);
  EXPECT_EQ(plan.gpus_touched, 4);
  cluster.Pod("one-more", {"shared"});
  const Plan full = Checked(cluster);
  EXPECT_EQ(full.placed, 19);
  EXPECT_EQ(full.upper_bound, 19);
  EXPECT_TRUE(full.complete);
}

TEST(HybridPlanTest, SwitchesModelOfFreeGpuOnly) {
  ClusterBuilder cluster;
  cluster.HybridNode(
      "a", {With(kUnshared, "1g.10gb@0:used"), With(kUnshared, "1g.10gb@0:free,3g.40gb@4:free")});
  cluster.Pod("share", {"30gb"});
  const Plan plan = Checked(cluster);
  EXPECT_EQ(plan.placed, 1);
  EXPECT_EQ(LayoutText(plan, "a", 1), "30gb@0+");
  EXPECT_EQ(plan.destroyed, 2);
  EXPECT_EQ(Outcome(plan, "share").devices[0].model->name(), "MPS-79GB");
}

TEST(HybridPlanTest, PrefersGpuAlreadyInTheSharingMode) {
  ClusterBuilder cluster;
  cluster.HybridNode("a", {kUnshared, With(kShared, "10gb@0:used"), kShared});
  cluster.Pod("share", {"30gb"});
  cluster.Pod("whole", {"gpu"});
  const Plan plan = Checked(cluster);
  EXPECT_EQ(LayoutText(plan, "a", 0), "gpu@0+");
  EXPECT_EQ(LayoutText(plan, "a", 1), "10gb@0* 30gb@1+");
  EXPECT_EQ(LayoutText(plan, "a", 2), "");
}

TEST(HybridPlanTest, RemedyNamesPodInTheWay) {
  ClusterBuilder cluster;
  cluster.HybridNode("a", {With(kUnshared, "1g.10gb@0:used")});
  cluster.Running("holder", "a", {"1g.10gb"});
  cluster.Pod("share", {"30gb"});
  const Plan plan = Checked(cluster);
  EXPECT_EQ(Outcome(plan, "share").reasons[0].code, "NoRoomForSlices");
  EXPECT_EQ(Outcome(plan, "share").remedy_code, remedies::kWaitForPods);
  EXPECT_EQ(Outcome(plan, "share").remedy, "wait for the end of pod x/holder on node a");
}

// A GPU that stays in use in one mode could never be switched to another.
TEST(HybridPlanTest, KeepsGpuWithMigInstanceForSharePod) {
  ClusterBuilder cluster;
  cluster.HybridNode("a", {With(kUnshared, "1g.10gb@0:used")});
  cluster.Running("holder", "a", {"1g.10gb"});
  cluster.Pod("old", {"30gb"}).meta.created = kNow - std::chrono::minutes(15);
  cluster.Pod("young", {"1g.10gb"}).meta.created = kNow - std::chrono::minutes(1);
  const Plan plan = Checked(cluster);
  EXPECT_EQ(plan.placed, 0);
  EXPECT_EQ(Outcome(plan, "old").reasons[0].code, "SlotsKept");
  EXPECT_EQ(Outcome(plan, "young").reasons[0].code, "SlotsKeptForOthers");
}

TEST(HybridPlanTest, KeepsGpuWithSharesForWholeGpuPod) {
  ClusterBuilder cluster;
  cluster.HybridNode("a", {With(kShared, "10gb@0:used,10gb@1:used"), With(kShared, "20gb@0:used")});
  cluster.Running("first", "a", {"10gb"});
  cluster.Running("second", "a", {"10gb"});
  cluster.Running("third", "a", {"20gb"});
  cluster.Pod("old", {"gpu"}).meta.created = kNow - std::chrono::minutes(15);
  cluster.Pod("young", {"50gb"}).meta.created = kNow - std::chrono::minutes(1);
  const Plan plan = Checked(cluster);
  EXPECT_EQ(Outcome(plan, "old").reasons[0].code, "SlotsKept");
  EXPECT_EQ(LayoutText(plan, "a", 0), "10gb@0* 10gb@1* 50gb@2+");
}

// In two stages: a GPU switched for the first pod is an obstacle for the second.
TEST(HybridPlanTest, GpuSwitchedByPlanBlocksWaitingPod) {
  ClusterBuilder cluster;
  cluster.HybridNode("a", {kUnshared});
  cluster.Pod("share", {"30gb"}, 1).meta.created = kNow - std::chrono::minutes(30);
  cluster.Pod("slice", {"7g.80gb"}).meta.created = kNow - std::chrono::minutes(15);
  const Plan plan = Checked(cluster);
  EXPECT_EQ(plan.placed, 1);
  EXPECT_EQ(LayoutText(plan, "a", 0), "30gb@0+");
  EXPECT_EQ(Outcome(plan, "slice").reasons[0].code, "SlotsKept");
}

TEST(HybridPlanTest, UsesWholeGpusOfUnmanagedNodes) {
  ClusterBuilder cluster;
  cluster.HybridNode("a", {kUnshared});
  cluster::Node& plain = cluster.PlainNode("b");
  plain.allocatable["nvidia.com/gpu"] = Quantity::FromValue(2);
  for (int i = 0; i < 3; ++i) cluster.Pod("p" + std::to_string(i), {"gpu"});
  const Plan plan = Checked(cluster);
  EXPECT_EQ(plan.placed, 3);
  EXPECT_EQ(plan.created, 1);
  EXPECT_EQ(LayoutText(plan, "a", 0), "gpu@0+");
}

// These slices are in no model of the catalogue, but the remedy must not suggest other slices.
TEST(HybridPlanTest, RemedyForSlicesOfHybridNodesNamesLabel) {
  ClusterBuilder cluster;
  cluster.HybridNode("a", {"H100-80GB+TIME-4|MPS-79GB"});
  cluster.Pod("whole", {"gpu"});
  cluster.Pod("part", {"3g.40gb.mps2"});
  cluster.Pod("no-part", {"3g.40gb.mps7"});
  const Plan plan = Checked(cluster);
  EXPECT_EQ(Outcome(plan, "whole").remedy_code, remedies::kAddNode);
  EXPECT_EQ(Outcome(plan, "whole").remedy,
            "add a node that the pod may use, with label nos.nebuly.com/gpu-partitioning=hybrid "
            "and room for nvidia.com/gpu");
  EXPECT_EQ(Outcome(plan, "part").remedy_code, remedies::kConfigureParts);
  EXPECT_EQ(Outcome(plan, "no-part").remedy_code, remedies::kRequestExistingProfile);
}

TEST(HybridPlanTest, RemedyForSlicesOfSeveralModesNamesHybridLabel) {
  ClusterBuilder cluster;
  cluster.HybridNode("a", {"H100-80GB+TIME-4|MPS-79GB"});
  cluster.Pod("both", {"10gb", "1g.10gb", "gpu"});
  cluster.Pod("too-large", {"256gb", "1g.10gb"});
  cluster.Pod("boards", {"1g.5gb", "1g.10gb", "1g.6gb"});
  const Plan plan = Checked(cluster);
  EXPECT_EQ(Outcome(plan, "both").remedy_code, remedies::kAddNode);
  EXPECT_EQ(Outcome(plan, "both").remedy,
            "add a node that the pod may use, with label nos.nebuly.com/gpu-partitioning=hybrid "
            "and room for nvidia.com/gpu-10gb and 1g.10gb and nvidia.com/gpu");
  EXPECT_EQ(Outcome(plan, "too-large").remedy_code, remedies::kRequestExistingProfile);
  EXPECT_EQ(Outcome(plan, "boards").remedy_code, remedies::kRequestExistingProfile);
}

// The node is opted in already, so another label would not help.
TEST(HybridPlanTest, RemedyForSilentAgentPointsToAgent) {
  ClusterBuilder cluster;
  cluster::Node& node = cluster.HybridNode("a", {kUnshared});
  std::erase_if(node.meta.annotations, [](const auto& item) {
    return item.first.find("status-other-model") != std::string::npos;
  });
  cluster.Pod("share", {"10gb"});
  cluster.Pod("slice", {"1g.10gb"});
  const Plan plan = Checked(cluster);
  for (const PodOutcome& pod : plan.pods) {
    ASSERT_FALSE(pod.reasons.empty());
    EXPECT_EQ(pod.reasons[0].code, "NotPartitioned");
    EXPECT_EQ(pod.remedy_code, remedies::kInspectAgent);
  }
}

TEST(HybridPlanTest, DoesNotPlaceMigPodsOnUnmanagedNodeWithWholeGpus) {
  ClusterBuilder cluster;
  cluster.HybridNode("a", {kUnshared});
  cluster.PlainNode("b").allocatable["nvidia.com/gpu"] = Quantity::FromValue(2);
  for (int i = 0; i < 8; ++i) cluster.Pod("p" + std::to_string(i), {"1g.10gb"});
  cluster.Pod("whole", {"gpu"});
  const Plan plan = Checked(cluster);
  EXPECT_EQ(plan.placed, 8);
}

TEST(HybridPlanTest, PlacesManySharesBesideOtherModes) {
  ClusterBuilder cluster;
  cluster.HybridNode("a", {kUnshared, kUnshared, kShared, kUnshared});
  for (int gib = 1; gib <= 30; ++gib)
    cluster.Pod("s" + std::to_string(gib), {std::to_string(gib) + "gb"});
  cluster.Pod("w1", {"gpu"});
  cluster.Pod("w2", {"gpu"});
  const Plan plan = Checked(cluster);
  EXPECT_GE(plan.placed, 23) << "two GPUs serve 158 of 465 GiB, in small shares";
  EXPECT_LE(plan.placed, plan.upper_bound);
}

constexpr const char* kDivided = "H100-80GB+3g.40gb.mps4+GPU+TIME-4|MPS-79GB";

TEST(HybridPlanTest, PlacesPartsOfInstances) {
  ClusterBuilder cluster;
  cluster.HybridNode("a", {kDivided, kDivided});
  for (int i = 0; i < 12; ++i) cluster.Pod("part" + std::to_string(i), {"3g.40gb.mps4"});
  cluster.Pod("instance", {"4g.40gb"});
  const Plan plan = Checked(cluster);
  EXPECT_EQ(plan.placed, 13);
  EXPECT_EQ(plan.created, 13);
  EXPECT_TRUE(plan.complete);
  EXPECT_EQ(plan.gpus_touched, 2);
  cluster.Pod("one-more", {"3g.40gb.mps4"});
  const Plan full = Checked(cluster);
  EXPECT_EQ(full.placed, 13);
  EXPECT_EQ(full.upper_bound, 13);
}

TEST(HybridPlanTest, PlacesPartBesideUsedPartsOfInstance) {
  ClusterBuilder cluster;
  cluster.HybridNode("a", {With(kDivided, "4g.40gb@0:used,3g.40gb.mps4@5:used"), kDivided});
  for (int i = 0; i < 3; ++i) cluster.Pod("part" + std::to_string(i), {"3g.40gb.mps4"});
  const Plan plan = Checked(cluster);
  EXPECT_EQ(plan.placed, 3);
  EXPECT_EQ(plan.created, 3);
  EXPECT_EQ(LayoutText(plan, "a", 1), "") << "stays empty";
}

TEST(HybridPlanTest, ReplacesFreeInstanceByPartsAndViceVersa) {
  ClusterBuilder cluster;
  cluster.HybridNode("a", {With(kDivided, "4g.40gb@0:used,3g.40gb@4:free")});
  cluster.Pod("part", {"3g.40gb.mps4"});
  const Plan plan = Checked(cluster);
  EXPECT_EQ(plan.placed, 1);
  EXPECT_EQ(plan.created, 1);
  EXPECT_EQ(plan.destroyed, 1);
  ClusterBuilder divided;
  divided.HybridNode("a",
                     {With(kDivided, "4g.40gb@0:used,3g.40gb.mps4@4:free,3g.40gb.mps4@7:free")});
  divided.Pod("whole", {"3g.40gb"});
  const Plan back = Checked(divided);
  EXPECT_EQ(back.placed, 1);
  EXPECT_EQ(back.created, 1);
  EXPECT_EQ(back.destroyed, 2);
  ClusterBuilder used;
  used.HybridNode("a", {With(kDivided, "4g.40gb@0:used,3g.40gb.mps4@4:used")});
  used.Pod("whole", {"3g.40gb"});
  EXPECT_EQ(Checked(used).placed, 0);
}

TEST(HybridPlanTest, RejectsSeveralPartsInOneContainer) {
  ClusterBuilder cluster;
  cluster.HybridNode("a", {kDivided});
  cluster::Pod& pod = cluster.Pod("p", {});
  pod.containers[0].requests["nvidia.com/mig-3g.40gb.mps4"] = Quantity::FromValue(2);
  const Plan plan = Checked(cluster);
  EXPECT_EQ(plan.placed, 0);
  EXPECT_EQ(Outcome(plan, "p").reasons[0].code, "SeveralShares");
}

TEST(HybridPlanTest, RequirementsNeverSelectParts) {
  ClusterBuilder cluster;
  cluster.HybridNode("a", {kDivided});
  cluster::Pod pod = cluster.Pod("p", {});
  // A 1g.10gb has less memory; a quarter of a 3g.40gb would have enough.
  pod.meta.annotations = {{std::string(cluster::kNeedMemory), "10100Mi"}};
  const NeedAnswer answer =
      AnswerNeed(pod, cluster.Snapshot(), scheduling::Framework::Default(), At(kNow), nullptr);
  ASSERT_TRUE(answer.choice.has_value());
  EXPECT_EQ(answer.choice->resource, "nvidia.com/mig-1g.20gb");
}

TEST(HybridPlanTest, RequirementsNeverSelectTimeSlicesOrWholeGpus) {
  ClusterBuilder cluster;
  cluster.HybridNode("a", {kShared});
  cluster::Pod pod = cluster.Pod("p", {});
  const auto choose = [&](const char* memory, bool isolated) {
    pod.meta.annotations = {{std::string(cluster::kNeedMemory), memory},
                            {"nos.nebuly.com/need-models", "H100-80GB"}};
    if (isolated) pod.meta.annotations["nos.nebuly.com/need-isolation"] = "true";
    const NeedAnswer answer =
        AnswerNeed(pod, cluster.Snapshot(), scheduling::Framework::Default(), At(kNow), nullptr);
    return answer.choice ? answer.choice->resource : "none";
  };
  EXPECT_EQ(choose("15Gi", false), "nvidia.com/mig-1g.20gb");
  EXPECT_EQ(choose("15Gi", true), "nvidia.com/mig-1g.20gb");
  EXPECT_EQ(choose("100Gi", false), "none");
}

}  // namespace
}  // namespace nos::planning
