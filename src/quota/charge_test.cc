#include "quota/charge.h"

#include <gtest/gtest.h>

#include "cluster/annotations.h"

namespace nos::quota {
namespace {

cluster::Pod PodOf(const cluster::ResourceList& requests) {
  cluster::Pod pod;
  pod.containers.emplace_back().requests = requests;
  return pod;
}

int64_t GpuMemory(const cluster::ResourceList& requests, const cluster::Node* node = nullptr) {
  return static_cast<int64_t>(
      ChargeOf(PodOf(requests), node, {}).Get(cluster::InternResource(kGpuMemory)));
}

Quantity Of(int64_t amount) { return Quantity::FromValue(amount); }

TEST(ChargeTest, ChargesAllRequestedResources) {
  cluster::Pod pod = PodOf({{"cpu", Quantity::FromMilli(1500)}, {"memory", Of(100)}});
  pod.overhead = {{"cpu", Quantity::FromMilli(250)}};
  pod.init_containers.emplace_back().requests = {{"memory", Of(300)}};
  const Amounts charge = ChargeOf(pod, nullptr, {});
  EXPECT_EQ(charge.Get(cluster::kCpu), 1750);
  EXPECT_EQ(charge.Get(cluster::kMemory), 300);
  EXPECT_EQ(charge.Get(cluster::kPods), 1);
  EXPECT_EQ(charge.entries().size(), 3u);
}

TEST(ChargeTest, ChargesGpuSlicesByMemory) {
  EXPECT_EQ(GpuMemory({{"nvidia.com/mig-1g.10gb", Of(2)}, {"nvidia.com/mig-1g.5gb.me", Of(1)}}),
            25);
  EXPECT_EQ(GpuMemory({{"nvidia.com/gpu-8gb", Of(3)}}), 24);
  EXPECT_EQ(GpuMemory({{"nvidia.com/mig-3g.40gb.mps4", Of(2)}}), 20);
  EXPECT_EQ(GpuMemory({{"nvidia.com/mig-3g.20gb.mps3", Of(1)}}), 7);
  EXPECT_EQ(GpuMemory({{"nvidia.com/gpu", Of(2)}}), 64);
  EXPECT_EQ(GpuMemory({{"nvidia.com/mig-1g.10gb", Of(1)}, {"nvidia.com/gpu", Of(1)}}), 42);
}

TEST(ChargeTest, IgnoresMalformedSliceNames) {
  for (const char* name : {"nvidia.com/mig-1g", "nvidia.com/mig-g.5gb", "nvidia.com/mig-1g.gb",
                           "nvidia.com/mig-1g.99999999999999999999gb", "nvidia.com/gpu-gb",
                           "nvidia.com/gpu-8", "nvidia.com/gpu-8gbx", "amd.com/gpu",
                           "nvidia.com/mig-3g.40gb.mps0", "nvidia.com/mig-3g.40gb.mps4x"}) {
    EXPECT_EQ(GpuMemory({{name, Of(1)}}), 0) << name;
  }
}

TEST(ChargeTest, ChargesWholeGpuAtMemoryOfNode) {
  cluster::Node node;
  node.meta.labels["nvidia.com/gpu.memory"] = "81559";
  EXPECT_EQ(GpuMemory({{"nvidia.com/gpu", Of(2)}}, &node), 160);
  node.meta.labels["nvidia.com/gpu.replicas"] = "3";
  EXPECT_EQ(GpuMemory({{"nvidia.com/gpu.shared", Of(1)}}, &node), 27);
  EXPECT_EQ(GpuMemory({{"nvidia.com/mig-1g.5gb", Of(1)}}, &node), 5);
  for (const char* nonsense : {"", "-1", "0", "1e9", "99999999999999"}) {
    node.meta.labels = {{"nvidia.com/gpu.memory", nonsense}, {"nvidia.com/gpu.replicas", nonsense}};
    EXPECT_EQ(GpuMemory({{"nvidia.com/gpu", Of(1)}}, &node), 32) << nonsense;
  }
}

TEST(ChargeTest, ChargesTimeSliceOfHybridNodeAtItsFractionOfGpu) {
  cluster::Node node;
  node.meta.labels["nvidia.com/gpu.memory"] = "81559";
  node.meta.annotations = {{"nos.nebuly.com/status-layout-0", ""},
                           {"nos.nebuly.com/status-layout-1", ""}};
  node.meta.annotations["nos.nebuly.com/status-model-0"] = "MPS-79GB";
  node.meta.annotations["nos.nebuly.com/status-other-model-0"] = "H100-80GB+GPU+TIME-4";
  EXPECT_EQ(GpuMemory({{"nvidia.com/gpu.shared", Of(1)}}, &node), 20);
  EXPECT_EQ(GpuMemory({{"nvidia.com/gpu", Of(1)}}, &node), 80);
  node.meta.annotations["nos.nebuly.com/status-model-1"] = "H100-80GB+GPU+TIME-3";
  EXPECT_EQ(GpuMemory({{"nvidia.com/gpu.shared", Of(1)}}, &node), 27) << "the larger slice";
  node.meta.labels.clear();
  EXPECT_EQ(GpuMemory({{"nvidia.com/gpu", Of(1)}}, &node), 80) << "memory of the model";
  node.meta.annotations["nos.nebuly.com/status-other-model-0"] = "H100-80GB+GPU";
  node.meta.annotations.erase("nos.nebuly.com/status-model-1");
  EXPECT_EQ(GpuMemory({{"nvidia.com/gpu.shared", Of(1)}}, &node), 80);
}

TEST(ChargeTest, ChargesTimeSliceOfUnreadableGpuAtMaximumSlicing) {
  cluster::Node node;
  node.meta.labels = {{"nvidia.com/gpu.memory", "81559"},
                      {std::string(cluster::kPartitioningLabel), "hybrid"}};
  EXPECT_EQ(GpuMemory({{"nvidia.com/gpu.shared", Of(1)}}, &node), 12) << "one of seven slices";
  EXPECT_EQ(GpuMemory({{"nvidia.com/gpu", Of(1)}}, &node), 80);
  node.meta.annotations["nos.nebuly.com/status-model-1"] = "H100-80GB+GPU+TIME-4";
  EXPECT_EQ(GpuMemory({{"nvidia.com/gpu.shared", Of(1)}}, &node), 12) << "it has no such GPU";
  node.meta.annotations["nos.nebuly.com/status-layout-1"] = "";
  EXPECT_EQ(GpuMemory({{"nvidia.com/gpu.shared", Of(1)}}, &node), 20) << "like the readable GPU";
}

TEST(ChargeTest, UsesModelMemoryWithoutMemoryLabel) {
  cluster::Node node;
  node.meta.labels["nvidia.com/gpu.product"] = "NVIDIA-A100-SXM4-40GB";
  EXPECT_EQ(GpuMemory({{"nvidia.com/gpu", Of(1)}}, &node), 40);
  node.meta.annotations = {{"nos.nebuly.com/status-layout-0", ""},
                           {"nos.nebuly.com/status-layout-1", ""},
                           {"nos.nebuly.com/status-model-0", "A30"},
                           {"nos.nebuly.com/status-model-1", "A100-80GB"}};
  EXPECT_EQ(GpuMemory({{"nvidia.com/gpu", Of(1)}}, &node), 40) << "no more than the label says";
  node.meta.labels.clear();
  EXPECT_EQ(GpuMemory({{"nvidia.com/gpu", Of(1)}}, &node), 80)
      << "the largest model that the agent reports";
  node.meta.annotations["nos.nebuly.com/status-model-1"] = "A30";
  node.meta.labels["nvidia.com/gpu.product"] = "NVIDIA-A100-SXM4-40GB";
  EXPECT_EQ(GpuMemory({{"nvidia.com/gpu", Of(1)}}, &node), 24);
  node.meta.labels["nvidia.com/gpu.memory"] = "24576";
  EXPECT_EQ(GpuMemory({{"nvidia.com/gpu", Of(1)}}, &node), 24);
  node.meta.labels = {{"nvidia.com/gpu.product", "Voodoo-2"}};
  node.meta.annotations.clear();
  EXPECT_EQ(GpuMemory({{"nvidia.com/gpu", Of(1)}}, &node), 32);
}

// A stolen node could otherwise make its pods count so much that pods of their quota on other nodes
// are evicted.
TEST(ChargeTest, BelievesOnlyModelsOfGpusThatExist) {
  cluster::Node node;
  node.meta.labels["nvidia.com/gpu.count"] = "1";
  node.meta.annotations = {{"nos.nebuly.com/status-layout-0", ""},
                           {"nos.nebuly.com/status-model-0", "A100-40GB"},
                           {"nos.nebuly.com/status-model-63", "GPU-1024GB+GPU"}};
  EXPECT_EQ(GpuWorthOf(&node, {}).whole, 40);
  node.meta.annotations["nos.nebuly.com/status-layout-63"] = "";
  EXPECT_EQ(GpuWorthOf(&node, {}).whole, 40) << "the label counts";
  node.meta.annotations["nos.nebuly.com/status-other-model-1"] = "H100-80GB+GPU+TIME-4";
  EXPECT_EQ(GpuWorthOf(&node, {}).time_slice, 40);
  node.meta.labels.clear();
  node.meta.annotations.erase("nos.nebuly.com/status-layout-63");
  EXPECT_EQ(GpuWorthOf(&node, {}).whole, 40) << "it has no layout";
  node.meta.annotations["nos.nebuly.com/status-model-0"] = "GPU-1024GB+GPU";
  for (const char* index : {"", "x", "-0", "0x", "99999999999999999999"}) {
    node.meta.annotations["nos.nebuly.com/status-model-" + std::string(index)] = "A100-80GB";
  }
  EXPECT_EQ(GpuWorthOf(&node, {}).whole, 1024) << "nothing else is known";
  node.meta.labels["nvidia.com/gpu.product"] = "NVIDIA-A100-SXM4-40GB";
  EXPECT_EQ(GpuWorthOf(&node, {}).whole, 40);
}

TEST(ChargeTest, ClampsNegativeAndHugeRequests) {
  EXPECT_EQ(GpuMemory({{"nvidia.com/gpu", Of(-5)}}), 0);
  const Amounts charge = ChargeOf(PodOf({{"nvidia.com/gpu", Of(INT64_MAX)}}), nullptr, {});
  EXPECT_EQ(charge.Get(cluster::InternResource(kGpuMemory)), Amount{INT64_MAX} * 32);
}

// Users can add GPU products that the built-in catalogue lacks.
TEST(ChargeTest, ChargesTimeSliceOfGpuOutsideBuiltinCatalogue) {
  cluster::Node node;
  node.meta.labels = {{"nvidia.com/gpu.memory", "98304"}};
  node.meta.annotations["nos.nebuly.com/status-layout-0"] = "";
  node.meta.annotations["nos.nebuly.com/status-model-0"] = "MINE-96GB+GPU+TIME-4";
  EXPECT_EQ(GpuWorthOf(&node, {}), (GpuWorth{96, 24}));
  for (const char* name : {"MINE-96GB+GPU+TIME-", "MINE-96GB+GPU+TIME-99", "+TIME-4x", "TIME-0"}) {
    node.meta.annotations["nos.nebuly.com/status-model-0"] = name;
    EXPECT_EQ(GpuWorthOf(&node, {}), (GpuWorth{96, 96})) << name;
  }
}

}  // namespace
}  // namespace nos::quota
