#include "controllers/pending/awaited_gpus.h"

#include <gtest/gtest.h>

#include "base/quantity.h"

namespace nos::controllers {
namespace {

// A node with an A100-40GB, from which the pod of the 3g.20gb leaves. The pod "large" is nominated
// to it and needs the whole GPU; "other" can get a slice beside the leaving pod.
class AwaitedGpusTest : public ::testing::Test {
 protected:
  using Pod = std::shared_ptr<cluster::Pod>;

  AwaitedGpusTest() {
    node_->meta.name = "n";
    node_->meta.labels = {{"nos.nebuly.com/gpu-partitioning", "mig"},
                          {"nvidia.com/gpu.product", "NVIDIA-A100-SXM4-40GB"},
                          {"nvidia.com/gpu.count", "1"}};
    node_->meta.annotations = {{"nos.nebuly.com/status-layout-0", "3g.20gb@4:used,1g.5gb@0:free"}};
    leaving_->node_name = "n";
    leaving_->meta.deleted = Time();
    large_->nominated_node = "n";
  }
  static Pod PodOf(const std::string& name, const std::string& profile) {
    auto pod = std::make_shared<cluster::Pod>();
    pod->meta.ns = "ml";
    pod->meta.name = name;
    pod->containers.emplace_back().requests["nvidia.com/mig-" + profile] = Quantity::FromValue(1);
    return pod;
  }
  // True if GPU 0 is kept for "large".
  bool Held(const std::set<std::string, std::less<>>& covered = {}) {
    const std::vector<std::shared_ptr<const cluster::Pod>> pods{leaving_, large_, other_};
    auto snapshot = cluster::ClusterSnapshot::Build({node_}, pods, gpu::Catalogue::Builtin());
    HoldAwaitedGpus(pods, {other_}, covered, snapshot);
    const cluster::Gpu& gpu = snapshot.node(0).gpus.gpus.at(0);
    const bool all_used =
        std::ranges::all_of(gpu.instances, [](const auto& instance) { return instance.used; });
    EXPECT_EQ(gpu.fixed, all_used);
    return gpu.fixed;
  }

  std::shared_ptr<cluster::Node> node_ = std::make_shared<cluster::Node>();
  Pod leaving_ = PodOf("leaving", "3g.20gb"), large_ = PodOf("large", "7g.40gb"),
      other_ = PodOf("other", "1g.5gb");
};

TEST_F(AwaitedGpusTest, KeepsGpuThatNominatedPodWaitsFor) { EXPECT_TRUE(Held()); }

TEST_F(AwaitedGpusTest, KeepsNothingIfNobodyLeaves) {
  leaving_->meta.deleted.reset();
  EXPECT_FALSE(Held());
}

TEST_F(AwaitedGpusTest, KeepsNothingForPodThatHasRoom) {
  large_ = PodOf("large", "2g.10gb");
  large_->nominated_node = "n";
  EXPECT_FALSE(Held());
}

TEST_F(AwaitedGpusTest, KeepsNothingOnNodeThatIsNotPartitioned) {
  node_->meta.labels.erase("nos.nebuly.com/gpu-partitioning");
  const std::vector<std::shared_ptr<const cluster::Pod>> pods{leaving_, large_, other_};
  auto snapshot = cluster::ClusterSnapshot::Build({node_}, pods, gpu::Catalogue::Builtin());
  HoldAwaitedGpus(pods, {other_}, {}, snapshot);
  for (const cluster::Gpu& gpu : snapshot.node(0).gpus.gpus) EXPECT_FALSE(gpu.fixed);
}

struct Rival {
  const char* name;
  bool large_covered;
  int32_t large_priority;
  bool other_covered;
  int32_t other_priority;
  bool held;
};

class AwaitedGpusRivalTest : public AwaitedGpusTest, public ::testing::WithParamInterface<Rival> {};

TEST_P(AwaitedGpusRivalTest, PodsThatGoBeforeDoNotWait) {
  const Rival& rival = GetParam();
  std::set<std::string, std::less<>> covered;
  if (rival.large_covered) covered.insert("ml/large");
  if (rival.other_covered) covered.insert("ml/other");
  large_->priority = rival.large_priority;
  other_->priority = rival.other_priority;
  EXPECT_EQ(Held(covered), rival.held);
}

INSTANTIATE_TEST_SUITE_P(Standings, AwaitedGpusRivalTest,
                         ::testing::Values(Rival{"EqualPriority", false, 0, false, 0, true},
                                           Rival{"HigherPriority", false, 0, false, 1, false},
                                           Rival{"CoveredBeforeBorrower", false, 1, true, 0, false},
                                           Rival{"BorrowerBehindCovered", true, 0, false, 1, true},
                                           Rival{"BothCovered", true, 1, true, 0, true},
                                           Rival{"BothCoveredAndHigherPriority", true, 0, true, 1,
                                                 false}),
                         [](const auto& each) { return each.param.name; });

// A rival that cannot get a slice on the node, whatever is kept, does not matter.
TEST_F(AwaitedGpusTest, RivalWithoutRoomOnTheNodeDoesNotMatter) {
  other_ = PodOf("other", "7g.40gb");
  other_->priority = 1;
  EXPECT_TRUE(Held());
}

}  // namespace
}  // namespace nos::controllers
