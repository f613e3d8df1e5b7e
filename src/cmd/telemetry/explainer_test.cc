#include "cmd/telemetry/explainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster/context.h"
#include "scheduling/remedies.h"

namespace nos::cmd {
namespace {

cluster::ResourceList Cpu(int64_t cores) { return {{"cpu", Quantity::FromValue(cores)}}; }

// A node whose pods are being evicted for a pod that reclaims its min, and for a pod without a
// quota that has a higher priority.
class ExplainerTest : public ::testing::Test {
 protected:
  ExplainerTest() {
    cluster::Node node;
    node.meta.name = "n";
    node.allocatable = {{"cpu", Quantity::FromValue(5)}, {"pods", Quantity::FromValue(110)}};
    objects_.nodes.push_back(std::make_shared<const cluster::Node>(node));
    cluster::ClusterContext context;
    for (const char* ns : {"a", "c"}) {
      auto quota = std::make_shared<cluster::ElasticQuota>();
      quota->meta.ns = ns;
      quota->meta.name = "quota";
      quota->namespaces = {ns};
      quota->min = Cpu(std::string(ns) == "a" ? 5 : 0);
      context.quotas.Set(quota->Key(), quota);
    }
    objects_.context = context;
    for (const char* name : {"p0", "p1", "p2", "p3"}) {
      cluster::Pod pod = PodOf("c", name, 1);
      pod.node_name = "n";
      pod.phase = "Running";
      pod.meta.deleted = Time(std::chrono::seconds(1));
      pod.conditions = {{"DisruptionTarget", "True", "PreemptionByScheduler", "", {}}};
      Add(pod);
    }
  }
  static cluster::Pod PodOf(const std::string& ns, const std::string& name, int64_t cores) {
    cluster::Pod pod;
    pod.meta.ns = ns;
    pod.meta.name = pod.meta.uid = name;
    pod.phase = "Pending";
    pod.scheduler_name = "nos-scheduler";
    cluster::Container container;
    container.requests = Cpu(cores);
    pod.containers.push_back(container);
    return pod;
  }
  SharedPod Add(const cluster::Pod& pod) {
    objects_.pods.push_back(std::make_shared<const cluster::Pod>(pod));
    return objects_.pods.back();
  }
  scheduling::Explanation Explain(const SharedPod& pod) {
    const Deciders deciders(
        scheduling::DefaultConfiguration({.default_name = "nos-scheduler",
                                          .partitioned_by = scheduling::PartitionedBy::kScheduler}),
        pod->scheduler_name, false);
    return ExplainWaiting(objects_, pod, deciders, gpu::Catalogue::Builtin());
  }
  ClusterObjects objects_;
};

TEST_F(ExplainerTest, RestoresNominationsAndEvictions) {
  cluster::Pod claimant = PodOf("a", "q", 5);
  claimant.nominated_node = "n";
  const SharedPod first = Add(claimant);
  cluster::Pod stranger = PodOf("other", "x", 1);
  stranger.priority = 100;
  const SharedPod second = Add(stranger);
  EXPECT_EQ(Explain(first).remedy,
            "wait for the end of pod c/p0, pod c/p1, pod c/p2, 1 more on node n, which are ending");
  const scheduling::Explanation why = Explain(second);
  EXPECT_FALSE(why.preemption)
      << "the quota reserves the capacity for a/q, independent of priority";
  EXPECT_EQ(why.remedy_code, scheduling::remedies::kWaitForPods);
  ASSERT_TRUE(why.in_the_way);
  EXPECT_THAT(why.in_the_way->coming, ::testing::ElementsAre("a/q"));
}

// A GPU is charged at its actual memory if the pod can be placed on it.
TEST_F(ExplainerTest, ChargesActualMemoryOfGpu) {
  objects_.pods.clear();
  cluster::Node node = *objects_.nodes.front();
  node.meta.labels["nvidia.com/gpu.memory"] = "16384";
  node.allocatable["nvidia.com/gpu"] = Quantity::FromValue(1);
  objects_.nodes.front() = std::make_shared<const cluster::Node>(node);
  auto quota = std::make_shared<cluster::ElasticQuota>(
      *objects_.context->quotas.rows().find("a/quota")->second);
  quota->min = {{"nos.nebuly.com/gpu-memory", Quantity::FromValue(16)}};
  objects_.context->quotas.Set("a/quota", quota);
  cluster::Pod pod = PodOf("a", "q", 1);
  pod.containers.front().requests["nvidia.com/gpu"] = Quantity::FromValue(1);
  const scheduling::Explanation fits = Explain(Add(pod));
  EXPECT_EQ(fits.quota, "");
  EXPECT_TRUE(fits.place);
  quota->min = {{"nos.nebuly.com/gpu-memory", Quantity::FromValue(15)}};
  objects_.context->quotas.Set("a/quota", quota);
  EXPECT_EQ(Explain(objects_.pods.back()).quota,
            "elastic quota a/quota asks for 16 of nos.nebuly.com/gpu-memory: with it 1 would be "
            "borrowed, and 0 is idle");
}

// The same for a hybrid node: its GPU is charged at its actual memory although no resource is
// offered yet.
TEST_F(ExplainerTest, ChargesActualMemoryOfHybridGpu) {
  objects_.pods.clear();
  cluster::Node node = *objects_.nodes.front();
  node.meta.labels["nos.nebuly.com/gpu-partitioning"] = "hybrid";
  node.meta.annotations = {{"nos.nebuly.com/status-model-0", "A30+GPU+TIME-4"},
                           {"nos.nebuly.com/status-other-model-0", ""},
                           {"nos.nebuly.com/status-layout-0", ""}};
  objects_.nodes.front() = std::make_shared<const cluster::Node>(node);
  auto quota = std::make_shared<cluster::ElasticQuota>(
      *objects_.context->quotas.rows().find("a/quota")->second);
  const auto asks = [&](const char* resource, int64_t min) {
    quota->min = {{"nos.nebuly.com/gpu-memory", Quantity::FromValue(min)}};
    objects_.context->quotas.Set("a/quota", quota);
    objects_.pods.clear();
    cluster::Pod pod = PodOf("a", "q", 1);
    pod.containers.front().requests[resource] = Quantity::FromValue(1);
    return Explain(Add(pod)).quota;
  };
  EXPECT_EQ(asks("nvidia.com/gpu", 24), "");
  EXPECT_EQ(asks("nvidia.com/gpu", 23),
            "elastic quota a/quota asks for 24 of nos.nebuly.com/gpu-memory: with it 1 would be "
            "borrowed, and 0 is idle");
  EXPECT_EQ(asks("nvidia.com/gpu.shared", 6), "");
  EXPECT_EQ(asks("nvidia.com/gpu.shared", 5),
            "elastic quota a/quota asks for 6 of nos.nebuly.com/gpu-memory: with it 1 would be "
            "borrowed, and 0 is idle");
}

// Pods with GPU requirements are explained with the slice that meets them.
TEST_F(ExplainerTest, GpuRequirementsCountAsRequest) {
  objects_.pods.clear();
  cluster::Node node = *objects_.nodes.front();
  node.meta.labels = {{"nos.nebuly.com/gpu-partitioning", "mig"},
                      {"nvidia.com/gpu.product", "NVIDIA-A100-SXM4-40GB"},
                      {"nvidia.com/gpu.count", "1"}};
  node.meta.annotations = {{"nos.nebuly.com/status-layout-0", ""}};
  objects_.nodes.front() = std::make_shared<const cluster::Node>(node);
  const auto why = [&](const char* memory) {
    cluster::Pod pod = PodOf("other", "q", 1);
    pod.meta.annotations["nos.nebuly.com/need-memory"] = memory;
    return Explain(Add(pod));
  };
  const scheduling::Explanation fits = why("8Gi");
  ASSERT_TRUE(fits.place);
  EXPECT_EQ(fits.place->repartition.made.size(), 1);
  EXPECT_NE(fits.requirements, "");
  objects_.pods.clear();
  const scheduling::Explanation never = why("90Gi");
  EXPECT_FALSE(never.place);
  EXPECT_EQ(never.remedy_code, scheduling::remedies::kRequestLess);
}

}  // namespace
}  // namespace nos::cmd
