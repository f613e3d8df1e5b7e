#include "scheduling/engine/promises.h"

#include <gtest/gtest.h>

#include <memory>

#include "base/text.h"
#include "cluster/annotations.h"
#include "scheduling/framework.h"
#include "scheduling/testing/build.h"

namespace nos::scheduling {
namespace {

using testing::PodOf;

// A100-40GBs with these instances: "2g.10gb@4:free,...", separated by ';'. The device plugin offers
// them all.
cluster::Node GpuNode(const std::string& layouts) {
  const std::vector<std::string_view> gpus = Split(layouts, ';');
  cluster::Node node =
      testing::NodeOf("n", {{"cpu", "96"}},
                      {{std::string(cluster::kPartitioningLabel), "mig"},
                       {std::string(cluster::kProductLabel), "NVIDIA-A100-SXM4-40GB"},
                       {std::string(cluster::kCountLabel), std::to_string(gpus.size())}});
  for (size_t i = 0; i < gpus.size(); ++i) {
    node.meta.annotations["nos.nebuly.com/status-layout-" + std::to_string(i)] = gpus[i];
    for (const std::string_view instance : Split(gpus[i], ',')) {
      const std::string profile(instance.substr(0, instance.find('@')));
      Quantity& amount = node.allocatable["nvidia.com/mig-" + profile];
      amount = amount + Quantity::FromValue(1);
    }
  }
  return node;
}

enum class Holder { kLeft, kLeaves, kStays };  // of used instances of 4g.20gb and 3g.20gb

// True if the node takes a pod that requests `asked` beside a nominated pod that requests
// `nominated`. Used instances of 1g.5gb have a pod that stays. `has_plan`: the agent has yet to
// carry out a plan.
bool Fits(PartitionedBy partitioned_by, const std::string& layout, const std::string& asked,
          const std::string& nominated, Holder holder = Holder::kLeft, bool has_plan = false) {
  const Framework framework = Framework::Default(partitioned_by);
  cluster::Node node = GpuNode(layout);
  if (has_plan) node.meta.annotations[std::string(cluster::kSpecPlan)] = "1";
  auto snapshot = testing::Snap({node});
  for (const std::string profile : {"4g.20gb", "3g.20gb", "1g.5gb"}) {
    const size_t at = layout.find(profile);
    const Holder state = profile == "1g.5gb" ? Holder::kStays : holder;
    const bool used =
        at != std::string::npos && layout.substr(at + profile.size() + 2, 5) == ":used";
    if (!used || state == Holder::kLeft) continue;
    cluster::Pod holds = PodOf("holder-" + profile, {{"nvidia.com/mig-" + profile, "1"}});
    if (state == Holder::kLeaves) holds.meta.deleted = Time(std::chrono::seconds(1));
    EXPECT_TRUE(snapshot.Bind(std::make_shared<const cluster::Pod>(holds), "n").ok());
  }
  const cluster::Pod pod = PodOf("p", {{"nvidia.com/mig-" + asked, "1"}});
  const Promises promises = {{"n",
                              {std::make_shared<const cluster::Pod>(
                                  PodOf("nominated", {{"nvidia.com/mig-" + nominated, "1"}}))}}};
  const Cycle cycle = framework.PreFilter(pod, snapshot);
  return FilterBeside(framework, snapshot, cycle, pod, snapshot.node(0), promises).fits();
}

TEST(PromisesTest, NominatedPodKeepsInstanceThatItReplaces) {
  for (const auto by : {PartitionedBy::kScheduler, PartitionedBy::kPartitioner}) {
    EXPECT_FALSE(Fits(by, "4g.20gb@0:free,3g.20gb@4:used", "4g.20gb", "2g.10gb"));
    EXPECT_FALSE(Fits(by, "4g.20gb@0:free,3g.20gb@4:used", "4g.20gb", "4g.20gb"));
    // The nominated pod fits beside the free instance.
    EXPECT_TRUE(Fits(by, "3g.20gb@0:free,2g.10gb@4:free", "2g.10gb", "1g.5gb"));
  }
}

TEST(PromisesTest, BothPodsReplaceFreeInstance) {
  EXPECT_TRUE(
      Fits(PartitionedBy::kScheduler, "4g.20gb@0:free,3g.20gb@4:used", "1g.5gb", "2g.10gb"));
}

TEST(PromisesTest, NominatedPodWithoutPlaceKeepsNothing) {
  for (const auto by : {PartitionedBy::kScheduler, PartitionedBy::kPartitioner}) {
    EXPECT_TRUE(Fits(by, "4g.20gb@0:free,3g.20gb@4:used", "4g.20gb", "7g.40gb", Holder::kStays));
  }
}

// Its victims end one after the other, and the agent reports that later: others must not take what
// is free meanwhile.
TEST(PromisesTest, NominatedPodKeepsWhatLeavingPodsStillHold) {
  for (const auto by : {PartitionedBy::kScheduler, PartitionedBy::kPartitioner}) {
    for (const Holder holder : {Holder::kLeaves, Holder::kLeft}) {
      EXPECT_FALSE(Fits(by, "4g.20gb@0:free,3g.20gb@4:used", "4g.20gb", "7g.40gb", holder));
    }
  }
}

// A plan delays the nominated pod, but serves others: they must not take its room meanwhile.
TEST(PromisesTest, NominatedPodKeepsItsRoomWhileTheNodeHasAPlan) {
  const auto fits = [](const std::string& layout, Holder holder) {
    return Fits(PartitionedBy::kPartitioner, layout, "4g.20gb", "7g.40gb", holder, true);
  };
  EXPECT_FALSE(fits("4g.20gb@0:free,3g.20gb@4:used", Holder::kLeaves));
  EXPECT_FALSE(fits("4g.20gb@0:free,3g.20gb@4:free", Holder::kStays));
  EXPECT_TRUE(fits("4g.20gb@0:free,3g.20gb@4:used", Holder::kStays)) << "no room in any case";
}

// Which GPU serves the nominated pod depends on the order in which pods leave, so no instance of
// one that is to serve it is taken, though it could stay; those of other GPUs are.
TEST(PromisesTest, NominatedPodKeepsTheWholeGpuWhereItWaitsForPodsToLeave) {
  for (const auto by : {PartitionedBy::kScheduler, PartitionedBy::kPartitioner}) {
    EXPECT_FALSE(Fits(by, "4g.20gb@0:used,2g.10gb@4:free", "2g.10gb", "4g.20gb", Holder::kLeaves));
    EXPECT_FALSE(Fits(by, "4g.20gb@0:used,2g.10gb@4:free;1g.5gb@0:used,2g.10gb@4:free", "2g.10gb",
                      "4g.20gb", Holder::kLeaves));
    EXPECT_TRUE(Fits(by, "4g.20gb@0:used;1g.5gb@0:used,2g.10gb@4:free", "2g.10gb", "4g.20gb",
                     Holder::kLeaves));
  }
}

// The kubelet chooses: it may give the pod the instance in place of which one for the nominated pod
// is to be created.
TEST(PromisesTest, PodTakesNoneOfSeveralFreeInstancesIfOneIsReplaced) {
  EXPECT_FALSE(
      Fits(PartitionedBy::kScheduler, "1g.5gb@1:free,3g.20gb@4:used", "1g.5gb", "4g.20gb"));
}

// True if a pod that requests 2g.10gb is held on a node with these GPUs, on the first of which
// 4g.20gb is being created for another pod.
bool IsHeldBesidePrepared(const std::string& layout) {
  auto snapshot = testing::Snap({GpuNode(layout)});
  cluster::Pod prepared = PodOf("prepared", {{"nvidia.com/mig-4g.20gb", "1"}});
  const gpu::Model& model = *snapshot.node(0).gpus.gpus[0].model;
  prepared.promised = {{0, model.ParsePlacement("4g.20gb@0").value(), nullptr}};
  EXPECT_TRUE(snapshot.Bind(std::make_shared<const cluster::Pod>(prepared), "n").ok());
  const cluster::Pod pod = PodOf("p", {{"nvidia.com/mig-2g.10gb", "1"}});
  return WhyHeldForPrepared(cluster::RequestsOf(pod), snapshot.node(0)).has_value();
}

// The kubelet still offers both instances of 2g.10gb, and may give the pod the one that is about to
// make room.
TEST(PromisesTest, NoFreeInstanceIsTakenWhileOneOfItsProfileIsBeingReplaced) {
  EXPECT_TRUE(IsHeldBesidePrepared("2g.10gb@0:free;2g.10gb@0:free"));
  EXPECT_FALSE(IsHeldBesidePrepared("1g.5gb@0:free;2g.10gb@0:free"));
  EXPECT_FALSE(IsHeldBesidePrepared("2g.10gb@0:free;1g.5gb@0:free")) << "none stays: no room";
}

}  // namespace
}  // namespace nos::scheduling
