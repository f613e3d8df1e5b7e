#include "scheduling/plugins/scheduling_gates/plugin.h"

#include <gtest/gtest.h>

#include "scheduling/testing/build.h"

namespace nos::scheduling {
namespace {

TEST(SchedulingGatesTest, KeepsPodOutOfQueueUntilAllGatesAreRemoved) {
  const SchedulingGates plugin;
  auto pod = testing::PodOf("p");
  EXPECT_TRUE(plugin.PreEnqueue(pod).fits());
  pod.scheduling_gates = {"foo", "bar"};
  const Verdict verdict = plugin.PreEnqueue(pod);
  EXPECT_EQ(verdict.kind, Verdict::Kind::kUnresolvable);
  EXPECT_EQ(verdict.message, "waiting for scheduling gates: [foo bar]");
  EXPECT_FALSE(plugin.MayHelp({ClusterEvent::Kind::kNodeAdded}, pod));
}

}  // namespace
}  // namespace nos::scheduling
