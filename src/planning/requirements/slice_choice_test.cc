#include "planning/slice_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planning/testing/clusters.h"
#include "scheduling/configuration.h"

namespace nos::planning {
namespace {

using testing::ClusterBuilder;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr int64_t kGib = 1024;  // in MiB
constexpr const char* kA100 = "NVIDIA-A100-SXM4-40GB";
constexpr const char* kH100 = "NVIDIA-H100-80GB-HBM3";

// A pod that can use every kind of slice.
cluster::Pod AnyPod() {
  cluster::Pod pod;
  pod.meta.ns = "ml";
  pod.meta.name = "p";
  pod.phase = "Pending";
  pod.host_ipc = true;
  pod.containers.resize(1);
  return pod;
}

std::vector<std::string> Names(const cluster::GpuRequirements& need, const ClusterBuilder& cluster,
                               const cluster::Pod& pod = AnyPod()) {
  std::vector<std::string> names;
  const std::vector<SliceKind> kinds = SlicesFor(need, pod, cluster.Snapshot());
  for (const SliceKind& kind : kinds) names.push_back(kind.resource);
  return names;
}

NeedAnswer Answer(const cluster::StringMap& annotations, const ClusterBuilder& cluster,
                  std::set<std::string>* full = nullptr) {
  const scheduling::Configuration configuration =
      scheduling::DefaultConfiguration({.simulates = true});
  cluster::Pod pod = AnyPod();
  pod.meta.annotations = annotations;
  return AnswerNeed(pod, cluster.Snapshot(), *configuration.profiles.front().framework, {}, full);
}

const cluster::StringMap kTenGib = {{std::string(cluster::kNeedMemory), "10Gi"}};

TEST(SliceChoiceTest, CheapestSufficientSliceComesFirst) {
  ClusterBuilder cluster;
  cluster.Node("a", kA100, {""});
  EXPECT_THAT(
      Names({.memory_mib = 15 * kGib}, cluster),
      ElementsAre("nvidia.com/mig-3g.20gb", "nvidia.com/mig-4g.20gb", "nvidia.com/mig-7g.40gb"));
  // The memory available to a program counts: 4864 MiB.
  EXPECT_EQ(Names({.memory_mib = 4 * kGib}, cluster).front(), "nvidia.com/mig-1g.5gb");
  EXPECT_NE(Names({.memory_mib = 5 * kGib}, cluster).front(), "nvidia.com/mig-1g.5gb");
  EXPECT_EQ(Names({.memory_mib = 1024, .compute_milli = 500}, cluster).front(),
            "nvidia.com/mig-4g.20gb");
  EXPECT_THAT(Names({.memory_mib = 60 * kGib}, cluster), IsEmpty());
}

TEST(SliceChoiceTest, SharesAreCheaperUnlessIsolationIsRequired) {
  ClusterBuilder cluster;
  cluster.Node("mig", kA100, {""});
  cluster.SharedNode("mps", 39, {""});
  EXPECT_THAT(Names({.memory_mib = 10 * kGib}, cluster),
              ElementsAre("nvidia.com/gpu-10gb", "nvidia.com/mig-3g.20gb", "nvidia.com/mig-4g.20gb",
                          "nvidia.com/mig-7g.40gb"));
  EXPECT_EQ(Names({.memory_mib = 10 * kGib, .isolated = true}, cluster).front(),
            "nvidia.com/mig-3g.20gb");
  // Half the compute of shares means half the memory.
  EXPECT_EQ(Names({.memory_mib = 1024, .compute_milli = 500}, cluster).front(),
            "nvidia.com/gpu-20gb");
}

TEST(SliceChoiceTest, OffersSlicesOfAllowedModelsOnly) {
  ClusterBuilder cluster;
  cluster.Node("a", kA100, {""});
  cluster.Node("h", kH100, {""});
  EXPECT_THAT(Names({.memory_mib = 70 * kGib}, cluster), ElementsAre("nvidia.com/mig-7g.80gb"));
  EXPECT_THAT(Names({.memory_mib = 70 * kGib, .models = {"A100-40GB"}}, cluster), IsEmpty());
}

// The pod could be scheduled to such a GPU.
TEST(SliceChoiceTest, SkipsResourceThatIsTooSmallOnAnotherGpu) {
  ClusterBuilder cluster;
  cluster.Node("a", "NVIDIA-A100-SXM4-80GB", {""}).meta.labels["zone"] = "a";
  cluster.Node("h", kH100, {""});
  const cluster::GpuRequirements need{.memory_mib = 9800};  // 1g.10gb of an A100 has 9728 MiB
  EXPECT_THAT(Names(need, cluster), Not(Contains("nvidia.com/mig-1g.10gb")));
  cluster::Pod there = AnyPod();
  there.node_selector["zone"] = "a";
  EXPECT_EQ(Names({.memory_mib = 9700}, cluster, there).front(), "nvidia.com/mig-1g.10gb");
  EXPECT_THAT(Names({.memory_mib = 9700, .models = {"A100-80GB"}}, cluster), IsEmpty());
  EXPECT_EQ(Names({.memory_mib = 9700, .models = {"A100-80GB"}}, cluster, there).front(),
            "nvidia.com/mig-1g.10gb");
}

TEST(SliceChoiceTest, OffersSharesOnlyToPodsWithHostIpc) {
  ClusterBuilder cluster;
  cluster.SharedNode("mps", 39, {""});
  cluster::Pod pod = AnyPod();
  pod.host_ipc = false;
  EXPECT_THAT(Names({.memory_mib = 1024}, cluster, pod), IsEmpty());
  const std::vector<SliceKind> kinds =
      SlicesFor({.memory_mib = 1024}, pod, cluster.Snapshot(), /*shares_need_host_ipc=*/false);
  ASSERT_EQ(kinds.size(), 1);
  EXPECT_EQ(kinds.front().resource, "nvidia.com/gpu-1gb");
}

// If the models in the requirements are the obstacle, the refusal names them, not selectors.
TEST(SliceChoiceTest, RefusalNamesObstacle) {
  ClusterBuilder cluster;
  cluster.Node("a", kA100, {""});
  cluster.Node("h", kH100, {""});
  const auto refusal = [&](const std::string& memory, const std::string& models) {
    return Answer({{std::string(cluster::kNeedMemory), memory},
                   {std::string(cluster::kNeedModels), models}},
                  cluster)
        .refusal;
  };
  EXPECT_EQ(refusal("1Gi", "H100"),
            "no slice of GPUs that nos divides, on nodes that the pod may go to, meets the need "
            "(1024 MiB, 0/1000 of a GPU's compute, of the models named); not named by "
            "nos.nebuly.com/need-models are A100-40GB, H100-80GB");
  EXPECT_EQ(refusal("60Gi", "A100-40GB"),
            "no slice of GPUs that nos divides, on nodes that the pod may go to, meets the need "
            "(61440 MiB, 0/1000 of a GPU's compute, of the models named); the largest is 40320 MiB "
            "(A100-40GB); not named by nos.nebuly.com/need-models are H100-80GB");
}

TEST(SliceChoiceTest, EvaluatesGatedPodLikeOthers) {
  ClusterBuilder cluster;
  cluster.Node("mig", kA100, {""});
  const scheduling::Configuration configuration =
      scheduling::DefaultConfiguration({.simulates = true});
  cluster::Pod pod = AnyPod();
  pod.meta.annotations = kTenGib;
  pod.scheduling_gates = {"wait"};
  EXPECT_EQ(AnswerNeed(pod, cluster.Snapshot(), *configuration.profiles.front().framework, {})
                .choice->node,
            "mig");
}

TEST(SliceChoiceTest, PrefersSliceWithCapacityToCheaperOne) {
  ClusterBuilder cluster;
  cluster.SharedNode("mps", 39, {"35gb@0:used"});
  cluster.Node("mig", kA100, {"4g.20gb@0:used"});
  const SliceChoice choice = Answer(kTenGib, cluster).choice.value();
  EXPECT_EQ(choice.resource, "nvidia.com/mig-3g.20gb");
  EXPECT_EQ(choice.node, "mig");
  EXPECT_EQ(choice.instances.size(), 1u);
  EXPECT_THAT(choice.passed_over, ElementsAre("nvidia.com/gpu-10gb"));
}

TEST(SliceChoiceTest, ChoosesCheapestIfNoneHasCapacity) {
  ClusterBuilder cluster;
  cluster.Node("mig", kA100, {"7g.40gb@0:used"});
  const SliceChoice choice = Answer(kTenGib, cluster).choice.value();
  EXPECT_EQ(choice.resource, "nvidia.com/mig-3g.20gb");
  EXPECT_EQ(choice.node, "");
}

TEST(SliceChoiceTest, RemembersPodsWithoutCapacity) {
  ClusterBuilder cluster;
  cluster.Node("mig", kA100, {"7g.40gb@0:used"});
  std::set<std::string> full;
  EXPECT_EQ(Answer(kTenGib, cluster, &full).choice->node, "");
  EXPECT_EQ(full.size(), 3u);
  ClusterBuilder empty;
  empty.Node("mig", kA100, {""});
  EXPECT_EQ(Answer(kTenGib, empty, &full).choice->node, "") << "the remembered answer is used";
  EXPECT_EQ(Answer(kTenGib, empty).choice->node, "mig");
}

TEST(SliceChoiceTest, PodWithoutRequirementsGetsNoAnswer) {
  ClusterBuilder cluster;
  cluster.Node("mig", kA100, {""});
  const NeedAnswer answer = Answer({}, cluster);
  EXPECT_FALSE(answer.choice);
  EXPECT_EQ(answer.refusal + answer.warning, "");
}

TEST(SliceChoiceTest, PodRequestsChosenSlice) {
  ClusterBuilder cluster;
  cluster.Node("mig", kA100, {""});
  const NeedAnswer answer = Answer(kTenGib, cluster);
  cluster::Pod pod;
  pod.containers.resize(1);
  pod = WithSlice(pod, answer);
  EXPECT_EQ(pod.containers[0].requests.at("nvidia.com/mig-3g.20gb").Value(), 1);
  EXPECT_EQ(pod.promised.size(), 1u);
}

}  // namespace
}  // namespace nos::planning
