#include "scheduling/preemption/shortfall.h"

#include <gtest/gtest.h>

#include "quota/charge.h"
#include "scheduling/testing/build.h"

namespace nos::scheduling {
namespace {

using testing::Amounts;
using testing::NodeOf;
using testing::PodOf;

// Shortfall for a pod on a node with resources `has` that runs a pod with `runs`.
ResourceShortfall LacksOf(Amounts asked, Amounts has, Amounts runs,
                          cluster::StringMap labels = {}) {
  const auto snapshot =
      testing::Snap({NodeOf("n", has, std::move(labels))}, {PodOf("running", runs, "n")});
  return {cluster::RequestsOf(PodOf("p", asked)), snapshot.node(0)};
}
quota::Amounts ChargeOf(Amounts requests) {
  return quota::ChargeOf(PodOf("v", requests), nullptr, {});
}
ResourceShortfall::Use UseOf(const ResourceShortfall& lacks, Amounts frees) {
  return lacks.UseOf(ChargeOf(frees));
}

TEST(LacksTest, CountsOnlyMissingResources) {
  ResourceShortfall lacks =
      LacksOf({{"cpu", "2"}, {"nvidia.com/gpu", "8"}}, {{"cpu", "4"}, {"nvidia.com/gpu", "8"}},
              {{"cpu", "1"}, {"nvidia.com/gpu", "8"}});
  EXPECT_TRUE(lacks.any());
  EXPECT_EQ(UseOf(lacks, {{"cpu", "1"}}), ResourceShortfall::Use::kNone);
  EXPECT_EQ(UseOf(lacks, {{"nvidia.com/gpu", "4"}}), ResourceShortfall::Use::kSome);
  EXPECT_EQ(UseOf(lacks, {{"nvidia.com/gpu", "8"}}), ResourceShortfall::Use::kAll);
  for (int i = 0; i < 2; ++i) {
    lacks.Lessen(ChargeOf({{"nvidia.com/gpu", "4"}}));
    EXPECT_EQ(lacks.any(), i == 0);
  }
}

TEST(LacksTest, AnyPodMayHelpWithoutKnownShortfall) {
  const ResourceShortfall lacks = LacksOf({{"cpu", "1"}}, {{"cpu", "4"}}, {{"cpu", "1"}});
  EXPECT_FALSE(lacks.any());
  EXPECT_EQ(UseOf(lacks, {{"cpu", "1"}}), ResourceShortfall::Use::kAll);
}

TEST(LacksTest, AnyGpuPodMayFreeMissingSlice) {
  const ResourceShortfall lacks =
      LacksOf({{"nvidia.com/mig-3g.20gb", "1"}}, {{"cpu", "4"}}, {{"cpu", "1"}},
              {{std::string(cluster::kPartitioningLabel), "mig"}});
  EXPECT_EQ(UseOf(lacks, {{"cpu", "1"}}), ResourceShortfall::Use::kNone);
  EXPECT_EQ(UseOf(lacks, {{"nvidia.com/mig-1g.5gb", "1"}}), ResourceShortfall::Use::kAll);
}

}  // namespace
}  // namespace nos::scheduling
