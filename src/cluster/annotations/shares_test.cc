// Annotations of GPUs that MPS shares by memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster/annotations.h"

namespace nos::cluster {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const gpu::Catalogue& Builtin() { return gpu::Catalogue::Builtin(); }

std::string N(std::string_view rest) { return std::string(kPrefix) + std::string(rest); }

// Two GPUs of 40 GiB.
Node MpsNode(StringMap annotations) {
  Node node;
  node.meta.name = "n1";
  node.meta.labels = {{std::string(kPartitioningLabel), "mps"},
                      {std::string(kCountLabel), "2"},
                      {std::string(kMemoryLabel), "40960"}};
  node.meta.annotations = std::move(annotations);
  return node;
}

TEST(ReadSharesTest, ReadsSharesOfAnySize) {
  const NodeGpus gpus =
      ReadNodeGpus(MpsNode({{N("status-model-0"), "MPS-39GB"},
                            {N("status-layout-0"), "10gb@0:used,10gb@3:free,7gb@1:free"},
                            {N("status-gpu-0-10gb-used"), "1"},
                            {N("status-gpu-0-10gb-free"), "1"},
                            {N("status-gpu-0-7gb-free"), "1"},
                            {N("status-holders-0"), "10gb@0=ml/train"}}),
                   Builtin());
  EXPECT_THAT(gpus.problems, IsEmpty());
  ASSERT_EQ(gpus.gpus.size(), 2u);
  const Gpu& gpu = gpus.gpus[0];
  EXPECT_EQ(gpu.model->name(), "MPS-39GB");
  ASSERT_EQ(gpu.instances.size(), 3u);
  EXPECT_EQ(gpu.model->PlacementName(gpu.instances[1].placement), "10gb@0");
  EXPECT_EQ(gpu.instances[1].pod, "ml/train");
  EXPECT_EQ(gpu.Used()->free_slots(), 29);
  EXPECT_EQ(gpu.All()->free_slots(), 12);
  EXPECT_EQ(gpus.gpus[1].model->name(), "MPS-39GB") << "by the label until the agent reports";
  EXPECT_FALSE(gpus.gpus[1].reported);
}

// The agent's limit was lowered while pods ran: used shares keep their numbers, and free shares
// exist only up to the limit.
TEST(ReadSharesTest, KeepsUsedSharesAboveALoweredLimit) {
  const auto read = [](const std::string& layout) {
    return ReadNodeGpus(
        MpsNode({{N("status-model-0"), "MPS-39GB+CLIENTS-2"}, {N("status-layout-0"), layout}}),
        Builtin());
  };
  const NodeGpus full = read("1gb@0:used,2gb@1:used,3gb@5:used,1gb@2:free");
  EXPECT_THAT(full.problems, IsEmpty());
  ASSERT_EQ(full.gpus.size(), 2u);
  EXPECT_EQ(full.gpus[0].instances.size(), 3u);
  ASSERT_TRUE(full.gpus[0].Used().has_value());
  EXPECT_EQ(full.gpus[0].Used()->taken_slots(), 6);
  EXPECT_EQ(full.gpus[0].Used()->Copies(*full.gpus[0].model->FindProfile("1gb")), 0);
  const NodeGpus fewer = read("1gb@0:used,2gb@1:free,3gb@5:free");
  EXPECT_EQ(fewer.gpus[0].model->name(), "MPS-39GB+CLIENTS-2");
  EXPECT_EQ(fewer.gpus[0].instances.size(), 2u);
  EXPECT_TRUE(fewer.gpus[0].All().has_value());
  EXPECT_EQ(read("30gb@0:used,9gb@1:used,1gb@2:used").gpus.size(), 1u) << "more memory than it has";
  EXPECT_EQ(read("1gb@0:used,1gb@0:used,1gb@2:used").gpus.size(), 1u) << "one number twice";
}

TEST(ReadSharesTest, ReadsSharesFromCounts) {
  const NodeGpus gpus = ReadNodeGpus(MpsNode({{N("status-model-1"), "MPS-39GB"},
                                              {N("status-gpu-0-10gb-used"), "2"},
                                              {N("status-gpu-0-5gb-free"), "1"}}),
                                     Builtin());
  EXPECT_THAT(gpus.problems, IsEmpty());
  ASSERT_EQ(gpus.gpus.size(), 2u);
  EXPECT_TRUE(gpus.gpus[0].assumed_starts);
  EXPECT_EQ(gpus.gpus[0].Used()->count(), 2);
  EXPECT_EQ(gpus.gpus[0].All()->taken_slots(), 25);
}

// The Go system's agent writes only counts, and a ConfigMap configures its device plugin.
TEST(ReadSharesTest, IgnoresNodesOfOtherMpsSystems) {
  EXPECT_FALSE(ReadNodeGpus(MpsNode({{N("status-gpu-0-10gb-used"), "2"}}), Builtin()).managed);
}

TEST(ReadSharesTest, ExcludesGpusWithImpossibleShares) {
  for (const char* layout : {"20gb@0:used,20gb@1:used", "10gb@0:used,5gb@0:free", "10gb@60:free",
                             "0gb@0:free", "1g.5gb@0:free"}) {
    const NodeGpus gpus = ReadNodeGpus(
        MpsNode({{N("status-model-0"), "MPS-39GB"}, {N("status-layout-0"), layout}}), Builtin());
    EXPECT_EQ(gpus.gpus.size(), 1u) << layout;
    EXPECT_EQ(gpus.problems.size(), 1u) << layout;
  }
}

// Right after the label changed, the agent still reports MIG.
TEST(ReadSharesTest, ExcludesGpuInAnotherMode) {
  const NodeGpus gpus = ReadNodeGpus(MpsNode({{N("status-model-1"), "MPS-39GB"},
                                              {N("status-model-0"), "A100-40GB"},
                                              {N("status-layout-0"), "7g.40gb@0:used"}}),
                                     Builtin());
  EXPECT_EQ(gpus.gpus.size(), 1u);
  EXPECT_EQ(gpus.problems.size(), 1u);
}

std::vector<std::string> TargetNames(const Node& node) {
  const NodeGpus gpus = ReadNodeGpus(node, Builtin());
  const auto targets = ReadSpec(node, gpus);
  std::vector<std::string> names;
  for (const TargetLayout& target : targets) {
    for (const gpu::Placement& placement : target.placements) {
      names.push_back(target.model->PlacementName(placement));
    }
  }
  return names;
}

TEST(ReadSharesTest, SharesKeepTheirNumbers) {
  const Node node = MpsNode({{N("status-model-0"), "MPS-39GB"},
                             {N("status-layout-0"), "10gb@2:used,10gb@3:free"},
                             {N("spec-gpu-0-10gb"), "2"},
                             {N("spec-gpu-0-5gb"), "3"}});
  EXPECT_THAT(TargetNames(node), ElementsAre("5gb@0", "5gb@1", "5gb@4", "10gb@2", "10gb@3"));
}

// The number of a used share is not available while the share is in use.
TEST(ReadSharesTest, DoesNotReuseTheNumberOfAUsedShare) {
  const Node node = MpsNode({{N("status-model-0"), "MPS-39GB"},
                             {N("status-layout-0"), "10gb@0:used,10gb@1:free,5gb@2:free"},
                             {N("spec-gpu-0-5gb"), "2"}});
  EXPECT_THAT(TargetNames(node), ElementsAre("5gb@1", "5gb@2"));
}

}  // namespace
}  // namespace nos::cluster
