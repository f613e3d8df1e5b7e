#include "scheduling/plugins/dynamic_resources/plugin.h"

#include <gtest/gtest.h>

#include "scheduling/testing/build.h"

namespace nos::scheduling {
namespace {

TEST(DynamicResourcesTest, LeavesPodsWithResourceClaimsToKubeScheduler) {
  const DynamicResources plugin;
  auto pod = testing::PodOf("p");
  EXPECT_TRUE(plugin.PreEnqueue(pod).fits());
  pod.claims_devices = true;
  const Verdict verdict = plugin.PreEnqueue(pod);
  EXPECT_EQ(verdict.kind, Verdict::Kind::kUnresolvable);
  EXPECT_EQ(verdict.code, "ResourceClaims");
  EXPECT_NE(verdict.message.find("schedulerName: default-scheduler"), std::string::npos);
  EXPECT_FALSE(plugin.MayHelp({ClusterEvent::Kind::kNodeAdded}, pod));
}

}  // namespace
}  // namespace nos::scheduling
