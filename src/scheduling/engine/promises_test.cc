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

// One A100-40GB with these instances: "2g.10gb@4:free,...". The device plugin offers them all.
cluster::Node GpuNode(const std::string& layout) {
  cluster::Node node =
      testing::NodeOf("n", {{"cpu", "96"}},
                      {{std::string(cluster::kPartitioningLabel), "mig"},
                       {std::string(cluster::kProductLabel), "NVIDIA-A100-SXM4-40GB"},
                       {std::string(cluster::kCountLabel), "1"}});
  node.meta.annotations = {{"nos.nebuly.com/status-layout-0", layout}};
  for (const std::string_view instance : Split(layout, ',')) {
    const std::string profile(instance.substr(0, instance.find('@')));
    node.allocatable["nvidia.com/mig-" + profile] = Quantity::FromValue(1);
  }
  return node;
}

enum class Holder { kLeft, kLeaves, kStays };  // of the used instance, a 3g.20gb

// True if the node takes a pod that requests `asked` beside a nominated pod that requests
// `nominated`.
bool Fits(PartitionedBy partitioned_by, const std::string& layout, const std::string& asked,
          const std::string& nominated, Holder holder = Holder::kLeft) {
  const Framework framework = Framework::Default(partitioned_by);
  auto snapshot = testing::Snap({GpuNode(layout)});
  if (holder != Holder::kLeft) {
    cluster::Pod holds = PodOf("holder", {{"nvidia.com/mig-3g.20gb", "1"}});
    if (holder == Holder::kLeaves) holds.meta.deleted = Time(std::chrono::seconds(1));
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

// The kubelet chooses: it may give the pod the instance in place of which one for the nominated pod
// is to be created.
TEST(PromisesTest, PodTakesNoneOfSeveralFreeInstancesIfOneIsReplaced) {
  EXPECT_FALSE(
      Fits(PartitionedBy::kScheduler, "1g.5gb@1:free,3g.20gb@4:used", "1g.5gb", "4g.20gb"));
}

}  // namespace
}  // namespace nos::scheduling
