#include "scheduling/preemption/lacks.h"

#include <gtest/gtest.h>

#include "quota/charge.h"
#include "scheduling/testing/build.h"

namespace nos::scheduling {
namespace {

using testing::Amounts;
using testing::NodeOf;
using testing::PodOf;

// Shortfall for a pod on a node with resources `has` that runs a pod with `runs`.
Lacks LacksOf(Amounts asked, Amounts has, Amounts runs, cluster::StringMap labels = {}) {
  const auto snapshot =
      testing::Snap({NodeOf("n", has, std::move(labels))}, {PodOf("running", runs, "n")});
  return {cluster::RequestsOf(PodOf("p", asked)), snapshot.node(0)};
}
quota::Amounts ChargeOf(Amounts requests) {
  return quota::ChargeOf(PodOf("v", requests), nullptr, {});
}
Lacks::Use UseOf(const Lacks& lacks, Amounts frees) { return lacks.UseOf(ChargeOf(frees)); }

TEST(LacksTest, CountsOnlyMissingResources) {
  Lacks lacks =
      LacksOf({{"cpu", "2"}, {"nvidia.com/gpu", "8"}}, {{"cpu", "4"}, {"nvidia.com/gpu", "8"}},
              {{"cpu", "1"}, {"nvidia.com/gpu", "8"}});
  EXPECT_TRUE(lacks.any());
  EXPECT_EQ(UseOf(lacks, {{"cpu", "1"}}), Lacks::Use::kNone);
  EXPECT_EQ(UseOf(lacks, {{"nvidia.com/gpu", "4"}}), Lacks::Use::kSome);
  EXPECT_EQ(UseOf(lacks, {{"nvidia.com/gpu", "8"}}), Lacks::Use::kAll);
  for (int i = 0; i < 2; ++i) {
    lacks.Lessen(ChargeOf({{"nvidia.com/gpu", "4"}}));
    EXPECT_EQ(lacks.any(), i == 0);
  }
}

TEST(LacksTest, AnyPodMayHelpWithoutKnownShortfall) {
  const Lacks lacks = LacksOf({{"cpu", "1"}}, {{"cpu", "4"}}, {{"cpu", "1"}});
  EXPECT_FALSE(lacks.any());
  EXPECT_EQ(UseOf(lacks, {{"cpu", "1"}}), Lacks::Use::kAll);
}

TEST(LacksTest, AnyGpuPodMayFreeMissingSlice) {
  const Lacks lacks = LacksOf({{"nvidia.com/mig-3g.20gb", "1"}}, {{"cpu", "4"}}, {{"cpu", "1"}},
                              {{std::string(cluster::kPartitioningLabel), "mig"}});
  EXPECT_EQ(UseOf(lacks, {{"cpu", "1"}}), Lacks::Use::kNone);
  EXPECT_EQ(UseOf(lacks, {{"nvidia.com/mig-1g.5gb", "1"}}), Lacks::Use::kAll);
}

}  // namespace
}  // namespace nos::scheduling
