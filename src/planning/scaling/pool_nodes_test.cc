#include "planning/pool_nodes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster/instance_search.h"
#include "cluster/snapshot.h"

namespace nos::planning {
namespace {

using cluster::NodePool;
using cluster::SharingMode;
using ::testing::HasSubstr;

NodePool Pool(const std::string& model, int count, SharingMode partitioning) {
  NodePool pool;
  pool.meta.name = "pool";
  pool.gpu.model = model;
  pool.gpu.count = count;
  pool.gpu.partitioning = partitioning;
  pool.resources = {{"cpu", Quantity::FromValue(96)},
                    {"memory", Quantity::FromValue(int64_t{1} << 40)},
                    {"pods", Quantity::FromValue(110)}};
  pool.labels = {{"pool", "a"}};
  pool.node_selector = {{"pool", "a"}};
  pool.max = 4;
  return pool;
}

cluster::NodeInfo InfoOf(const NodePool& pool) {
  const gpu::Catalogue& catalogue = gpu::Catalogue::Builtin();
  const auto node = NewNodeOf(pool, 3, catalogue);
  EXPECT_TRUE(node.ok()) << node.status().message();
  cluster::ClusterSnapshot snapshot = cluster::ClusterSnapshot::Build({}, {}, catalogue);
  snapshot.AddNodes({*node});
  EXPECT_EQ(snapshot.size(), 1U);
  return *snapshot.Find("pool/new-3");
}

TEST(PoolNodesTest, MigNodeStartsEmptyAndPartitionable) {
  NodePool pool = Pool("A100-80GB", 8, SharingMode::kMig);
  pool.taints = {{"gpu", "yes", "NoSchedule"}};
  const cluster::NodeInfo info = InfoOf(pool);
  EXPECT_TRUE(cluster::IsOf(pool, *info.node));
  EXPECT_EQ(info.node->taints.size(), 1U);
  EXPECT_EQ(info.node->meta.labels.at("kubernetes.io/hostname"), "pool/new-3");
  EXPECT_EQ(info.node->meta.labels.at("kubernetes.io/arch"), "amd64");
  EXPECT_EQ(info.allocatable.Get(cluster::kCpu), 96'000);
  ASSERT_EQ(info.gpus.gpus.size(), 8U);
  EXPECT_TRUE(info.gpus.problems.empty());
  EXPECT_EQ(info.gpus.gpus[7].model->name(), "A100-80GB");
  EXPECT_TRUE(info.gpus.gpus[7].reported);
  EXPECT_TRUE(cluster::MayBePartitioned(info));
  EXPECT_EQ(info.allocatable.Get(cluster::InternResource("nvidia.com/gpu")), 0);
}

TEST(PoolNodesTest, NodesOfSuperchipsAreArmHostsUnlessPoolSaysOtherwise) {
  const auto architecture = [](const NodePool& pool) {
    return InfoOf(pool).node->meta.labels.at("kubernetes.io/arch");
  };
  NodePool pool = Pool("GB200", 4, SharingMode::kMig);
  EXPECT_EQ(architecture(pool), "arm64");
  pool.labels["kubernetes.io/arch"] = "riscv64";
  EXPECT_EQ(architecture(pool), "riscv64");
  // The catalogue's model has GPUs on both kinds of hosts; the product says which.
  pool = Pool("H100-96GB", 1, SharingMode::kMig);
  EXPECT_EQ(architecture(pool), "amd64");
  pool.gpu.model.clear();
  pool.gpu.product = "NVIDIA-GH200-480GB";
  EXPECT_EQ(architecture(pool), "arm64");
}

TEST(PoolNodesTest, WholeGpusAreAllocatableResource) {
  NodePool pool = Pool("", 4, SharingMode::kNone);
  pool.gpu.product = "Tesla-T4";
  const cluster::NodeInfo info = InfoOf(pool);
  EXPECT_FALSE(info.gpus.managed);
  EXPECT_EQ(info.allocatable.Get(cluster::InternResource("nvidia.com/gpu")), 4);
  EXPECT_EQ(info.node->meta.labels.at("nvidia.com/gpu.product"), "Tesla-T4");
}

TEST(PoolNodesTest, SharedAndHybridNodesEqualAgentReports) {
  const cluster::NodeInfo shared = InfoOf(Pool("A100-40GB", 2, SharingMode::kMps));
  EXPECT_EQ(shared.gpus.gpus.at(1).model->name(), "MPS-39GB");
  NodePool pool = Pool("H100-80GB", 2, SharingMode::kHybrid);
  pool.gpu.time_slices = 4;
  const cluster::NodeInfo hybrid = InfoOf(pool);
  EXPECT_TRUE(hybrid.gpus.whole);
  EXPECT_EQ(hybrid.gpus.gpus.at(0).model->name(), "H100-80GB+GPU+TIME-4");
  ASSERT_NE(hybrid.gpus.gpus.at(0).alternative, nullptr);
  EXPECT_EQ(hybrid.gpus.gpus.at(0).alternative->name(), "MPS-79GB");
  // MIG mode of Ampere GPUs stays off.
  const cluster::NodeInfo ampere = InfoOf(Pool("A100-80GB", 1, SharingMode::kHybrid));
  EXPECT_EQ(ampere.gpus.gpus.at(0).model->name(), "GPU-80GB+GPU");
  // Hence there are no more time slices than compute slices in MIG mode.
  NodePool small = Pool("A30", 1, SharingMode::kHybrid);
  small.gpu.time_slices = 7;
  EXPECT_EQ(InfoOf(small).gpus.gpus.at(0).model->name(), "GPU-24GB-4+GPU+TIME-4");
}

TEST(PoolNodesTest, CountsNodesOfEachPool) {
  std::vector<std::shared_ptr<const NodePool>> pools;
  for (const char* label : {"a", "b", "a"}) {
    NodePool pool = Pool("A30", 1, SharingMode::kMig);
    pool.labels = pool.node_selector = {{"pool", label}};
    pools.push_back(std::make_shared<const NodePool>(std::move(pool)));
  }
  cluster::ClusterSnapshot snapshot;
  for (const char* name : {"a-1", "a-2", "b-1", "c-1"}) {
    cluster::Node node;
    node.meta.name = name;
    node.meta.labels = {{"pool", std::string(name, 1)}};
    snapshot.AddNodes({std::make_shared<const cluster::Node>(std::move(node))});
  }
  EXPECT_EQ(CountNodes(snapshot, pools), (std::vector<int>{2, 1, 0}));
  EXPECT_EQ(planning::PoolOf(*snapshot.Find("c-1")->node, pools), -1);
}

TEST(PoolNodesTest, ReportsUnknownModelAndMissingMemory) {
  const gpu::Catalogue& catalogue = gpu::Catalogue::Builtin();
  const auto error = [&](const NodePool& pool) {
    return NewNodeOf(pool, 0, catalogue).status().message();
  };
  EXPECT_EQ(error(Pool("B9999", 1, SharingMode::kMig)),
            "NodePool pool: spec.gpu.model: 'B9999' is not in the catalogue: add it to the "
            "catalogue file (docs/catalogue.md)");
  EXPECT_EQ(error(Pool("B9999", 1, SharingMode::kMps)),
            "NodePool pool: spec.gpu.memory: is missing, for the catalogue does not know 'B9999': "
            "say how much memory one GPU has");
  NodePool pool = Pool("", 1, SharingMode::kMps);
  pool.gpu.product = "Tesla-T4";
  pool.gpu.memory = Quantity::FromValue(int64_t{16} << 30);
  EXPECT_EQ(InfoOf(pool).gpus.gpus.at(0).model->name(), "MPS-15GB");
  pool.gpu.memory = Quantity::FromValue(int64_t{1} << 30);
  EXPECT_THAT(error(pool), HasSubstr("too little"));
}

}  // namespace
}  // namespace nos::planning
