// Elastic quotas in the scheduler: admission of pods, and evictions for guarantees.
#include <gmock/gmock.h>

#include <string>

#include "controllers/scheduler/quota_fixture_test.h"

namespace nos::controllers {
namespace {

using ::testing::Contains;

class SchedulerQuotaTest : public QuotaFixture {};

// Evicts the youngest borrowers, and no more than needed.
TEST_F(SchedulerQuotaTest, ReclaimsGuaranteeFromYoungestBorrower) {
  CpuNode("n", "4");
  CpuQuotas({{"a", "2"}, {"b", "2"}});
  for (const char* name : {"p1", "p2", "p3", "p4"}) Pod("a", name);
  Run();
  ASSERT_EQ(Count({"a/p1", "a/p2", "a/p3", "a/p4"}, "n"), 4);
  Pod("b", "q");
  Run();
  EXPECT_EQ(At("b/q"), "n");
  EXPECT_EQ(At("a/p4"), "gone");
  EXPECT_EQ(Count({"a/p1", "a/p2", "a/p3"}, "n"), 3);
  EXPECT_THAT(Split(reconcile::testing::EventsOf(api_), '\n'),
              Contains("Preempted: Preempted by pod bq on node n: an elastic quota "
                       "guarantees to that Pod what this one borrows"));
}

// While the victims terminate, no further pod is evicted, and their quota stays reserved.
TEST_F(SchedulerQuotaTest, EvictsOnceForGuaranteeAcrossRestart) {
  CpuNode("n", "4");
  CpuQuotas({{"a", "2"}, {"b", "2"}});
  for (const char* name : {"p1", "p2", "p3", "p4"}) Pod("a", name);
  Run();
  LetPodsEndSlowly();
  Pod("b", "q");
  Run();
  EXPECT_EQ(At("a/p4"), "ending");
  Pod("a", "p5");  // would use the freed quota
  Run();
  Restart();  // the scheduler forgets its evictions
  Run();
  EXPECT_EQ(Count({"a/p1", "a/p2", "a/p3", "a/p4"}, "ending"), 1);
  EXPECT_EQ(At("b/q"), "");
  api_.Remove("pods", "a/p4");
  Run();
  EXPECT_EQ(At("b/q"), "n");
  EXPECT_EQ(At("a/p5"), "");
  EXPECT_EQ(Count({"a/p1", "a/p2", "a/p3"}, "n"), 3);
}

// The scheduler crashed between two evictions and before it wrote the nomination.
TEST_F(SchedulerQuotaTest, CountsEarlierVictimsAfterCrash) {
  CpuNode("n", "4");
  CpuQuotas({{"a", "2"}, {"b", "2"}});
  for (const char* name : {"p1", "p2", "p3", "p4"}) Pod("a", name);
  Run();
  LetPodsEndSlowly();
  EvictedByAnother("a/p4");
  Restart();
  Pod("b", "q", "2");
  Run();
  EXPECT_EQ(Count({"a/p1", "a/p2", "a/p3", "a/p4"}, "ending"), 2);
}

// The node's label says 80 GB; the default would be 32 GB.
TEST_F(SchedulerQuotaTest, ChargesWholeGpuByItsMemory) {
  for (const auto& [name, mib] : {std::pair("small", "24576"), std::pair("big", "81920")}) {
    api_.Put(
        {{"kind", "Node"},
         {"metadata", {{"name", name}, {"labels", {{"nvidia.com/gpu.memory", mib}}}}},
         {"status", {{"allocatable", {{"cpu", "96"}, {"pods", "110"}, {"nvidia.com/gpu", "2"}}}}}});
  }
  Quota("a", {{"nos.nebuly.com/gpu-memory", "60"}});
  for (const char* name : {"p1", "p2", "p3"}) PodOf("a", name, "nvidia.com/gpu", "1");
  Run();
  EXPECT_EQ(Count({"a/p1", "a/p2", "a/p3"}, "small"), 2);
  EXPECT_EQ(Count({"a/p1", "a/p2", "a/p3"}, "big"), 0);
  EXPECT_NE(WhyOf("a/p3").find("gpu-memory"), std::string::npos);
}

}  // namespace
}  // namespace nos::controllers
