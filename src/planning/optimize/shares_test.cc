// Plans for shares of GPU memory (MPS).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"
#include "gpu/shares.h"
#include "planning/model/share_states.h"
#include "planning/planner.h"
#include "planning/testing/clusters.h"
#include "scheduling/remedies.h"

namespace nos::planning {
namespace {

using testing::ClusterBuilder;
using ::testing::ElementsAre;
using testing::LayoutText;
using testing::PlanFault;
using ::testing::UnorderedElementsAre;

Plan Checked(const ClusterBuilder& cluster, const PlanOptions& options = {}) {
  Plan plan = cluster.MakePlan(options);
  EXPECT_EQ(PlanFault(plan, cluster.Snapshot()), "");
  return plan;
}

const PodOutcome& Outcome(const Plan& plan, const std::string& name) {
  return *std::ranges::find(plan.pods, name, [](const PodOutcome& p) { return p.pod->meta.name; });
}

TEST(SharesTest, DestroysFewestFreeShares) {
  ClusterBuilder cluster;
  cluster.SharedNode("a", 40, {"2gb@0:free,2gb@1:free,20gb@2:free,12gb@3:used"});
  cluster.Pod("p", {"16gb"});
  const Plan plan = Checked(cluster);
  EXPECT_EQ(LayoutText(plan, "a", 0), "2gb@0 2gb@1 12gb@3* 16gb@4+");
}

TEST(SharesTest, PodMayUseSharesOfSeveralGpus) {
  ClusterBuilder cluster;
  cluster.SharedNode("a", 24, {"", "12gb@0:used"});
  cluster.Pod("p", {"20gb", "12gb"});
  const Plan plan = Checked(cluster);
  EXPECT_EQ(plan.placed, 1);
  EXPECT_EQ(LayoutText(plan, "a", 0), "20gb@0+");
  EXPECT_EQ(LayoutText(plan, "a", 1), "12gb@0* 12gb@1+");
}

// A container's processes can connect to the MPS daemon of one GPU only.
TEST(SharesTest, RejectsSeveralSharesInOneContainer) {
  ClusterBuilder cluster;
  cluster.SharedNode("a", 24, {"", ""});
  const auto put = [&](const std::string& name, const std::string& resource, int count) {
    cluster::Container& container = cluster.Pod(name, {"5gb"}).containers[0];
    container.name = "main";
    container.requests[resource] = Quantity::FromValue(count);
  };
  put("twice", "nvidia.com/gpu-5gb", 2);
  put("two-sizes", "nvidia.com/gpu-6gb", 1);
  cluster.Pod("two-containers", {"5gb", "6gb"});
  const Plan plan = Checked(cluster);
  EXPECT_EQ(plan.placed, 1);
  EXPECT_TRUE(Outcome(plan, "two-containers").placed);
  EXPECT_EQ(Outcome(plan, "twice").reasons[0].code, "SeveralShares");
  EXPECT_EQ(Outcome(plan, "two-sizes").reasons[0].code, "SeveralShares");
  for (const char* pod : {"twice", "two-sizes"}) {
    EXPECT_EQ(Outcome(plan, pod).remedy_code, scheduling::remedies::kRequestOneShare);
  }
  EXPECT_EQ(
      Outcome(plan, "twice").remedy,
      "request one nvidia.com/gpu-10gb in container main, or each share in a container of its own");
  EXPECT_EQ(
      Outcome(plan, "two-sizes").remedy,
      "request one nvidia.com/gpu-11gb in container main, or each share in a container of its own");
}

TEST(SharesTest, ExplainsShareTooLargeForAnyGpu) {
  ClusterBuilder cluster;
  cluster.SharedNode("a", 31, {""});
  cluster.Pod("p", {"32gb"});
  const Plan plan = Checked(cluster);
  EXPECT_EQ(plan.placed, 0);
  EXPECT_EQ(Outcome(plan, "p").remedy_code, scheduling::remedies::kAddNode);
  EXPECT_EQ(Outcome(plan, "p").remedy,
            "add a node that the pod may use, with label nos.nebuly.com/gpu-partitioning=mps and "
            "32 GiB of a GPU's memory free");
}

TEST(SharesTest, KeepsMemoryForLongWaitingPod) {
  ClusterBuilder cluster;
  cluster.SharedNode("a", 40, {"20gb@0:used"});
  PlanOptions options;
  options.now = Time() + std::chrono::hours(1000);
  cluster.Pod("large", {"30gb"}).meta.created = options.now - std::chrono::hours(1);
  for (int i = 0; i < 4; ++i) {
    cluster.Pod("small" + std::to_string(i), {"5gb"}).meta.created = options.now;
  }
  const Plan plan = Checked(cluster, options);
  // 30 of 40 GiB are kept: the used 20 become free for the pod, and two small ones fit beside.
  EXPECT_EQ(plan.placed, 2);
  EXPECT_FALSE(Outcome(plan, "large").placed);
}

// Memory planned for a pod with a higher wait rank stays taken when slots are kept for another pod.
TEST(SharesTest, MemoryPlannedForHigherRankStaysTaken) {
  ClusterBuilder cluster;
  cluster.SharedNode("a", 40, {"10gb@0:free,20gb@1:used"});
  PlanOptions options;
  options.now = Time() + std::chrono::hours(1000);
  cluster.Pod("large", {"30gb"}).meta.created = options.now - std::chrono::hours(1);
  cluster.Pod("old", {"18gb"}).meta.created = options.now - std::chrono::hours(2);
  cluster.Pod("new", {"10gb"}).meta.created = options.now;
  const Plan plan = Checked(cluster, options);
  EXPECT_TRUE(Outcome(plan, "old").placed);
  EXPECT_FALSE(Outcome(plan, "new").placed);
}

TEST(SharesTest, PlansAreLegalForAnyWaitingTime) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    ClusterBuilder cluster;
    PlanOptions options;
    options.now = Time() + std::chrono::hours(1000);
    for (int n = 0; n < 2; ++n) {
      const int gib = 12 + static_cast<int>(random.Below(30));
      std::vector<std::string> layouts(2);
      for (std::string& layout : layouts) {
        int left = gib;
        for (int i = 0; i < 4; ++i) {
          const int size = 1 + static_cast<int>(random.Below(12));
          if (size > left || random.Chance(0.4)) continue;
          left -= size;
          layout += (layout.empty() ? "" : ",") + std::to_string(size) + "gb@" + std::to_string(i) +
                    (random.Chance(0.5) ? ":used" : ":free");
        }
      }
      cluster.SharedNode("n" + std::to_string(n), gib, layouts);
    }
    for (int p = 0; p < 12; ++p) {
      std::vector<std::string> sizes;
      for (uint64_t s = 0; s < 1 + random.Below(2); ++s) {
        sizes.push_back(std::to_string(2 + random.Below(20)) + "gb");
      }
      cluster.Pod("p" + std::to_string(p), sizes).meta.created =
          options.now - std::chrono::minutes(random.Below(200));
    }
    Checked(cluster, options);
  }
}

// The limit was lowered while pods were running.
TEST(CopiesOfShareTest, IsZeroAboveClientLimit) {
  const gpu::Model& model = *gpu::FindShares("MPS-79GB+CLIENTS-2");
  EXPECT_EQ(CopiesOfShare(model, {3, 2}, {.may_repartition = true}, *model.FindProfile("1gb")), 0);
  EXPECT_EQ(CopiesOfShare(model, {3, 3}, {.may_repartition = true}, *model.FindProfile("1gb")), 0);
  EXPECT_EQ(CopiesOfShare(model, {1, 1}, {.may_repartition = true}, *model.FindProfile("1gb")), 1);
}

TEST(LargestShareSetsTest, ListsAllMaximalSets) {
  const gpu::Model& model = *gpu::FindShares("MPS-20GB");
  const std::vector<std::optional<gpu::ProfileId>> profiles = {model.FindProfile("8gb"),
                                                               model.FindProfile("6gb")};
  const std::vector<int> limits = {10, 10};
  const auto sets = LargestShareSets(model, {}, {.may_repartition = true}, profiles, limits, 100);
  ASSERT_TRUE(sets);
  EXPECT_THAT(*sets, UnorderedElementsAre(ElementsAre(2, 0), ElementsAre(1, 2), ElementsAre(0, 3)));
  EXPECT_FALSE(LargestShareSets(model, {}, {.may_repartition = true}, profiles, limits, 2));
  const std::vector<int> few = {1, 1};
  EXPECT_THAT(*LargestShareSets(model, {}, {.may_repartition = true}, profiles, few, 100),
              ElementsAre(ElementsAre(1, 1)));
}

}  // namespace
}  // namespace nos::planning
