#include "sim/world/checks/eviction_checker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reconcile/condition.h"
#include "sim/world/node/invariants.h"

namespace nos::sim {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;

class EvictionCheckerTest : public testing::Test {
 protected:
  using Pod = EvictionChecker::Pod;

  static Pod Make(const std::string& name, int priority, const std::string& node = "",
                  bool evicted = false) {
    auto pod = std::make_shared<cluster::Pod>();
    pod->meta.ns = "default";
    pod->meta.name = pod->meta.uid = name;
    pod->priority = priority;
    pod->node_name = node;
    if (evicted) {
      pod->conditions = {{"DisruptionTarget", "True", "PreemptionByScheduler", ""}};
    }
    return pod;
  }
  void Evict(const std::string& name, int priority) {
    checker.See(Make(name, priority, "n"), Make(name, priority, "n", true), now);
  }
  // The problem with an eviction for priority.
  static std::string NoneIsHigher(const std::string& pod, int priority) {
    return pod + " of priority " + std::to_string(priority) +
           " is evicted, and none that waits has a higher";
  }

  Time now{};
  QuotaChecker quotas;
  EvictionChecker checker{quotas};
};

TEST_F(EvictionCheckerTest, AcceptsEvictionsForHigherPriorityOnly) {
  checker.See(nullptr, Make("high", 5), now);
  Evict("low", 4);
  EXPECT_THAT(checker.TakeProblems(), IsEmpty());
  Evict("equal", 5);
  EXPECT_THAT(checker.TakeProblems(), ElementsAre(NoneIsHigher("default/equal", 5)));
  EXPECT_THAT(checker.TakeProblems(), IsEmpty()) << "reported once";
}

TEST_F(EvictionCheckerTest, AcceptsEvictionsForAnotherNamespacesQuota) {
  const auto evict = [&](const std::string& ns) {
    auto victim = std::make_shared<cluster::Pod>(*Make("victim", 9, "n"));
    auto evicted = std::make_shared<cluster::Pod>(*victim);
    victim->meta.ns = evicted->meta.ns = ns;
    evicted->conditions = {{"DisruptionTarget", "True", "PreemptionByScheduler",
                            "a pod whose elastic quota guarantees these resources"}};
    checker.See(victim, evicted, now);
  };
  checker.See(nullptr, Make("claimant", 0), now);
  evict("other");
  EXPECT_THAT(checker.TakeProblems(), IsEmpty());
  evict("default");
  EXPECT_THAT(
      checker.TakeProblems(),
      ElementsAre("default/victim of priority 9 is evicted, and none that waits has a right to "
                  "that"));
}

TEST_F(EvictionCheckerTest, RecordsForWhomPodsWereEvicted) {
  const auto high = Make("high", 5);
  checker.See(nullptr, high, now);
  const auto victim = Make("low", 4, "n");
  auto evicted = std::make_shared<cluster::Pod>(*victim);
  evicted->conditions = {
      {"DisruptionTarget", "True", "PreemptionByScheduler",
       reconcile::WithPreemptor("s: preempting to accommodate a higher priority pod",
                                high->meta.uid)}};
  checker.See(victim, evicted, now);
  ASSERT_EQ(checker.last().size(), 1U);
  EXPECT_EQ(checker.last().front().preemptor, "default/high");
  EXPECT_FALSE(checker.last().front().for_quota);
}

TEST_F(EvictionCheckerTest, FormerlyPendingPodCountsForAWhile) {
  checker.See(nullptr, Make("high", 5), now);
  checker.See(Make("high", 5), Make("high", 5, "n"), now);
  now += seconds(1);
  Evict("first", 4);
  EXPECT_THAT(checker.TakeProblems(), IsEmpty());
  now += kFaultsLinger;
  Evict("second", 4);
  EXPECT_THAT(checker.TakeProblems(), ElementsAre(NoneIsHigher("default/second", 4)));
}

}  // namespace
}  // namespace nos::sim
