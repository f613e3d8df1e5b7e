#include "sim/world/checks/quota_checker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/world/node/invariants.h"

namespace nos::sim {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;

class QuotaCheckerTest : public testing::Test {
 protected:
  using Pod = QuotaChecker::Pod;

  static Pod Make(const std::string& ns, const std::string& name, int64_t cpu, bool bound) {
    auto pod = std::make_shared<cluster::Pod>();
    pod->meta.ns = ns;
    pod->meta.name = pod->meta.uid = name;
    cluster::Container container;
    container.requests["cpu"] = Quantity::FromValue(cpu);
    pod->containers = {container};
    if (bound) pod->node_name = "n";
    return pod;
  }
  static PlainQuota Quota(const std::string& ns, int64_t min, std::optional<int64_t> max = {}) {
    PlainQuota quota{ns, {ns}, {}, {}};
    quota.min.Set(cluster::InternResource("cpu"), min * quota::Amount{1000});
    if (max) quota.max.Set(cluster::InternResource("cpu"), *max * quota::Amount{1000});
    return quota;
  }
  void Bind(const std::string& ns, const std::string& name, int64_t cpu) {
    checker.See(Make(ns, name, cpu, false), Make(ns, name, cpu, true), now);
  }
  void SetQuotas(std::vector<PlainQuota> quotas) {
    checker.SetQuotas(std::move(quotas), now);
    now += kFaultsLinger + seconds(1);
  }
  bool MayTake(const std::string& from, const std::string& by) {
    return checker.MayTake(*Make(from, "victim", 1, true), *Make(by, "claimant", 1, false), now);
  }

  Time now{};
  QuotaChecker checker;
};

TEST_F(QuotaCheckerTest, ReportsBindingsBeyondMax) {
  SetQuotas({Quota("a", 5, 2)});
  Bind("a", "one", 2);
  EXPECT_THAT(checker.TakeProblems(now), IsEmpty());
  Bind("a", "two", 1);
  EXPECT_THAT(checker.TakeProblems(now),
              ElementsAre("a/two is bound, and 3 of cpu are used by a: more than 2"));
}

TEST_F(QuotaCheckerTest, PodForWhichAPlaceIsPreparedUsesItsQuota) {
  SetQuotas({Quota("a", 2), Quota("b", 2)});
  Bind("a", "one", 2);
  EXPECT_FALSE(MayTake("a", "b"));
  checker.SetReserved({Make("a", "two", 1, false)});
  EXPECT_TRUE(MayTake("a", "b"));
  checker.SetReserved({Make("b", "three", 1, false)});
  EXPECT_FALSE(MayTake("a", "b"));
}

TEST_F(QuotaCheckerTest, ReportsBorrowingBeyondTheSumOfGuarantees) {
  SetQuotas({Quota("a", 2), Quota("b", 1)});
  Bind("a", "one", 3);
  Bind("b", "two", 1);
  EXPECT_THAT(checker.TakeProblems(now), IsEmpty()) << "each is within min, or was there before";
  now += seconds(11);
  Bind("a", "three", 1);
  EXPECT_THAT(checker.TakeProblems(now), IsEmpty()) << "an eviction may be under way";
  now += kEvictionRepeats;
  EXPECT_THAT(checker.TakeProblems(now),
              ElementsAre("a/three is bound, and 5 of cpu are used by all: more than 3"));
}

// A place may have been reserved for the borrower, and slices created, before the other pod came.
TEST_F(QuotaCheckerTest, AcceptsBorrowerBoundMomentsAfterGuaranteedPod) {
  SetQuotas({Quota("a", 2), Quota("b", 1)});
  Bind("a", "one", 2);
  Bind("b", "two", 1);
  now += seconds(2);
  Bind("a", "three", 1);
  now += kEvictionRepeats;
  EXPECT_THAT(checker.TakeProblems(now), IsEmpty());
}

TEST_F(QuotaCheckerTest, AcceptsBorrowingWhatAnEvictionFreesSoon) {
  SetQuotas({Quota("a", 2), Quota("b", 1)});
  Bind("a", "one", 2);
  Bind("b", "two", 1);
  Bind("a", "three", 1);
  checker.See(Make("b", "two", 1, true), nullptr, now);
  now += kEvictionRepeats;
  EXPECT_THAT(checker.TakeProblems(now), IsEmpty());
}

TEST_F(QuotaCheckerTest, BindingIsMadeUpForByItsOwnAmount) {
  SetQuotas({Quota("a", 2), Quota("b", 1)});
  Bind("a", "one", 3);
  Bind("b", "two", 1);  // within min, beside what "one" borrows
  Bind("a", "three", 1);
  checker.See(Make("a", "three", 1, true), nullptr, now);
  now += kEvictionRepeats;
  EXPECT_THAT(checker.TakeProblems(now), IsEmpty());
}

TEST_F(QuotaCheckerTest, ToleratesNewQuotasAndRivalBindingsForAWhile) {
  checker.SetQuotas({Quota("a", 5, 2)}, now);
  Bind("a", "one", 3);
  EXPECT_THAT(checker.TakeProblems(now), IsEmpty());
  now += kFaultsLinger + seconds(1);
  checker.SeeRival(now);
  Bind("a", "two", 1);
  EXPECT_THAT(checker.TakeProblems(now), IsEmpty());
  now += kFaultsLinger + seconds(1);
  Bind("a", "three", 1);
  EXPECT_THAT(checker.TakeProblems(now),
              ElementsAre("a/three is bound, and 5 of cpu are used by a: more than 2"));
}

TEST_F(QuotaCheckerTest, AcceptsEvictionsOnlyFromQuotasOverMin) {
  EXPECT_TRUE(MayTake("a", "b")) << "nobody has said what quotas there are";
  SetQuotas({Quota("a", 2), Quota("b", 2)});
  Bind("a", "one", 2);
  EXPECT_FALSE(MayTake("a", "b"));
  Bind("a", "two", 1);
  EXPECT_TRUE(MayTake("a", "b"));
  EXPECT_FALSE(MayTake("a", "a"));
  EXPECT_FALSE(MayTake("a", "none")) << "it has no quota";
  EXPECT_TRUE(MayTake("none", "b"));
}

TEST_F(QuotaCheckerTest, AcceptsEvictionsOfPodsThatMinDoesNotCover) {
  SetQuotas({Quota("a", 2), Quota("b", 2)});
  Bind("a", "one", 1);
  EXPECT_FALSE(MayTake("a", "b"));
  EXPECT_TRUE(
      checker.MayTake(*Make("a", "victim", 0, true), *Make("b", "claimant", 1, false), now));
}

TEST_F(QuotaCheckerTest, EvictedPodStopsCountingAfterAWhile) {
  SetQuotas({Quota("a", 2), Quota("b", 2)});
  Bind("a", "one", 3);
  const Pod pod = Make("a", "one", 3, true);
  auto evicted = std::make_shared<cluster::Pod>(*pod);
  evicted->conditions = {{"DisruptionTarget", "True", "PreemptionByScheduler", ""}};
  checker.See(pod, evicted, now);
  EXPECT_TRUE(MayTake("a", "b"));
  now += kFaultsLinger + seconds(1);
  EXPECT_FALSE(MayTake("a", "b"));
}

// The ended pod counts together with pods bound by a scheduler that does not know of the end yet.
TEST_F(QuotaCheckerTest, EndedPodCountsForAWhile) {
  SetQuotas({Quota("a", 3), Quota("b", 3)});
  Bind("a", "one", 2);
  const Pod pod = Make("a", "one", 2, true);
  auto ended = std::make_shared<cluster::Pod>(*pod);
  ended->phase = "Succeeded";
  checker.See(pod, ended, now);
  EXPECT_FALSE(MayTake("a", "b"));
  now += seconds(5);
  Bind("a", "two", 2);
  EXPECT_TRUE(MayTake("a", "b"));
  checker.See(ended, nullptr, now);
  now += kFaultsLinger - seconds(5);
  EXPECT_TRUE(MayTake("a", "b"));
  now += seconds(1);
  EXPECT_FALSE(MayTake("a", "b")) << "the other alone is within min";
}

}  // namespace
}  // namespace nos::sim
