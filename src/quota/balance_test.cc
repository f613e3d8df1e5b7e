#include "quota/balance.h"

#include <gtest/gtest.h>

#include <map>

namespace nos::quota {
namespace {

constexpr std::string_view kGb = "nos.nebuly.com/gpu-memory";
const cluster::ResourceId kMemory = cluster::InternResource(kGb);

cluster::ResourceList Gb(int64_t amount) {
  return {{std::string(kGb), Quantity::FromValue(amount)}};
}
Amounts Asks(int64_t amount, std::string_view resource = kGb) {
  Amounts charge;
  charge.Set(cluster::InternResource(resource), amount);
  return charge;
}

cluster::ElasticQuota QuotaOf(const std::string& ns, cluster::ResourceList min) {
  cluster::ElasticQuota quota;
  quota.meta.ns = ns;
  quota.meta.name = "q";
  quota.namespaces = {ns};
  quota.min = std::move(min);
  return quota;
}

class BalanceTest : public ::testing::Test {
 protected:
  void Put(cluster::ElasticQuota quota) {
    quotas_.push_back(std::make_shared<const cluster::ElasticQuota>(std::move(quota)));
    balance_ = Balance(quotas_);
  }
  void Put(const std::string& ns, int64_t min) { Put(QuotaOf(ns, Gb(min))); }
  size_t At(std::string_view ns) { return *balance_.AccountOf(ns); }
  void Use(std::string_view ns, int64_t amount) { balance_.Add(At(ns), Asks(amount)); }
  std::string WhyNot(std::string_view ns, const Amounts& asked) {
    const auto refusal = balance_.WhyNot(At(ns), asked);
    return refusal ? refusal->Text() : "";
  }
  std::string WhyNot(std::string_view ns, int64_t amount) { return WhyNot(ns, Asks(amount)); }
  int64_t Share(std::string_view ns) {
    return static_cast<int64_t>(balance_.ShareOf(At(ns), kMemory));
  }
  int64_t Lent(std::string_view ns) {
    return static_cast<int64_t>(balance_.LentBy(At(ns), kMemory));
  }
  int64_t Borrowed(std::string_view ns) {
    return static_cast<int64_t>(balance_.BorrowedBy(At(ns), kMemory));
  }

  std::vector<SharedQuota> quotas_;
  Balance balance_;
};

// The example in docs/quotas.md.
TEST_F(BalanceTest, SharesIdleCapacityInProportionToMin) {
  Put("a", 40);
  Put("b", 10);
  Put("c", 30);
  Use("a", 40);
  Use("b", 40);
  EXPECT_EQ(Share("a"), 15);
  EXPECT_EQ(Share("b"), 3);
  EXPECT_EQ(Share("c"), 11);
  EXPECT_EQ(Borrowed("b"), 30);
  EXPECT_EQ(Lent("c"), 30);
  EXPECT_EQ(Lent("a"), 0);
}

TEST_F(BalanceTest, LimitsTotalUseToSumOfMin) {
  Put("a", 10);
  Put("b", 20);
  EXPECT_EQ(WhyNot("a", 30), "");
  Use("a", 25);
  EXPECT_EQ(WhyNot("a", 5), "");
  EXPECT_EQ(WhyNot("a", 6),
            "elastic quota a/q asks for 6 of nos.nebuly.com/gpu-memory: with it 21 would be "
            "borrowed, and 20 is idle");
  EXPECT_EQ(WhyNot("b", 5), "");
  EXPECT_NE(WhyNot("b", 6), "") << "must be reclaimed by eviction";
  EXPECT_TRUE(balance_.WithinMin({At("b")}, Asks(20)));
  EXPECT_FALSE(balance_.WithinMin({At("b")}, Asks(21)));
}

TEST_F(BalanceTest, LimitsOnlyResourcesNamedByQuota) {
  cluster::ElasticQuota quota = QuotaOf("a", Gb(10));
  quota.max = {{"cpu", Quantity::FromValue(4)}, {std::string(kGb), Quantity::FromValue(10)}};
  Put(std::move(quota));
  EXPECT_EQ(WhyNot("a", Asks(int64_t{1} << 60, "memory")), "");
  EXPECT_EQ(WhyNot("a", Asks(4000, "cpu")), "");
  EXPECT_EQ(WhyNot("a", Asks(4500, "cpu")),
            "elastic quota a/q allows at most 4 of cpu: 0 used, 4500m asked for");
  Use("a", 10);
  EXPECT_EQ(WhyNot("a", Asks(0)), "");
}

// The end of all pods would not leave enough for the request.
TEST_F(BalanceTest, RemedyWaitsOnlyForPodsThatHoldEnough) {
  cluster::ElasticQuota capped = QuotaOf("a", Gb(5));
  capped.max = Gb(10);
  Put(std::move(capped));
  cluster::ElasticQuota limited = QuotaOf("b", Gb(5));
  limited.borrowing_limit = Gb(2);
  Put(std::move(limited));
  Put("c", 10);
  const auto remedy = [&](std::string_view ns, int64_t amount) {
    return balance_.WhyNot(At(ns), Asks(amount))->Remedy();
  };
  const std::string raise = "raise max of nos.nebuly.com/gpu-memory in elastic quota a/q to ";
  EXPECT_EQ(remedy("a", 11), raise + "11");
  EXPECT_EQ(remedy("b", 8),
            "raise borrowingLimit of nos.nebuly.com/gpu-memory in elastic quota b/q to 3");
  EXPECT_EQ(remedy("c", 21), "raise min of nos.nebuly.com/gpu-memory in elastic quota c/q by 1");
  Use("a", 4);
  EXPECT_EQ(remedy("a", 7),
            raise + "11, or wait until pods of its namespaces that have 1 of it end");
  EXPECT_EQ(remedy("a", 11), raise + "15");
  EXPECT_EQ(remedy("c", 20),
            "raise min of nos.nebuly.com/gpu-memory in elastic quota c/q by 4, or wait until pods "
            "that have 4 of it end");
}

TEST_F(BalanceTest, CompositeQuotaIsOneAccountAndOverridesOthers) {
  Put("a", 50);
  cluster::ElasticQuota team = QuotaOf("x", Gb(10));
  team.composite = true;
  team.namespaces = {"a", "b", "b"};
  Put(team);
  Put("c", 2);
  EXPECT_EQ(At("a"), At("b"));
  EXPECT_EQ(balance_.terms(At("a")).quota->Key(), "x/q");
  EXPECT_EQ(balance_.terms(At("a")).namespaces, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(
      balance_.terms(1).problems,
      std::vector<std::string>{"not in force in namespace a: composite elastic quota x/q is"});
  Use("a", 6);
  EXPECT_FALSE(balance_.WithinMin({At("b")}, Asks(5)));
}

TEST_F(BalanceTest, OldestQuotaOfNamespaceIsInForce) {
  cluster::ElasticQuota young = QuotaOf("a", Gb(1)), old = QuotaOf("a", Gb(2));
  young.meta.created = Time(std::chrono::seconds(20));
  old.meta.created = Time(std::chrono::seconds(10));
  old.meta.name = "z";
  Put(young);
  Put(old);
  EXPECT_EQ(balance_.terms(At("a")).quota->Key(), "a/z");
}

TEST_F(BalanceTest, QuotaNotInForceLendsNothing) {
  Put("a", 50);
  cluster::ElasticQuota team = QuotaOf("x", Gb(10));
  team.composite = true;
  team.namespaces = {"a"};
  Put(team);
  Put("c", 2);
  EXPECT_FALSE(balance_.terms(1).in_force);
  EXPECT_EQ(WhyNot("c", 12), "");
  EXPECT_NE(WhyNot("c", 13), "") << "the sum of all min in force is 10 + 2";
  EXPECT_EQ(Share("c"), 2);
}

TEST_F(BalanceTest, SecondQuotaOfNamespaceLendsNothing) {
  Put("a", 10);
  cluster::ElasticQuota second = QuotaOf("a", Gb(1000));
  second.meta.name = "z";
  second.meta.created = Time(std::chrono::seconds(20));
  Put(second);
  Put("b", 10);
  EXPECT_EQ(WhyNot("a", 20), "");
  EXPECT_NE(WhyNot("a", 21), "");
}

// However much others overuse.
TEST_F(BalanceTest, AdmitsPodCoveredByMinDespiteOveruseByOthers) {
  cluster::ElasticQuota bounded = QuotaOf("a", Gb(2));
  bounded.max = Gb(3);
  Put(bounded);
  Put("b", 4);
  Put("c", 4);
  Use("a", 1'000'000);
  EXPECT_NE(WhyNot("a", 1), "");
  EXPECT_EQ(WhyNot("b", 4), "");
  EXPECT_NE(WhyNot("b", 5), "") << "no capacity is idle";
}

TEST_F(BalanceTest, NominatedPodsDoNotCountAsEarlierOveruse) {
  Put("a", 0);
  Put("b", 2);
  Put("c", 2);
  Use("a", 4);
  const Balance settled = balance_;
  Use("c", 1);
  EXPECT_FALSE(balance_.WhyNot(At("b"), Asks(1)));
  EXPECT_TRUE(balance_.WhyNot(At("b"), Asks(1), &settled));
}

TEST_F(BalanceTest, RespectsBorrowingAndLendingLimits) {
  cluster::ElasticQuota borrower = QuotaOf("a", Gb(10)), lender = QuotaOf("b", Gb(10));
  borrower.borrowing_limit = Gb(5);
  lender.lending_limit = Gb(3);
  Put(borrower);
  Put(lender);
  EXPECT_EQ(WhyNot("a", 13), "");
  EXPECT_EQ(WhyNot("a", 14),
            "elastic quota a/q asks for 14 of nos.nebuly.com/gpu-memory: with it 4 would be "
            "borrowed, and 3 is idle");
  Use("a", 13);
  EXPECT_EQ(WhyNot("b", 7), "") << "capacity that b does not lend stays available to it";
  EXPECT_NE(WhyNot("b", 8), "");
  EXPECT_EQ(Share("a"), 1) << "half of 3, rounded down";
  Put("c", 90);
  EXPECT_EQ(WhyNot("a", 16),
            "elastic quota a/q may borrow at most 5 of nos.nebuly.com/gpu-memory: 6 borrowed with "
            "the 16 asked for");
}

TEST_F(BalanceTest, WeightScalesShareOfIdleCapacity) {
  cluster::ElasticQuota heavy = QuotaOf("a", Gb(10));
  heavy.weight = 3;
  Put(heavy);
  Put("b", 10);
  Put("c", 20);
  Use("a", 10);
  Use("b", 10);
  EXPECT_EQ(Share("a"), 10);
  EXPECT_EQ(Share("b"), 3);
}

TEST_F(BalanceTest, ComputesSharesExactlyForHugeAmounts) {
  constexpr int64_t kMaxInt64 = INT64_MAX;
  cluster::ElasticQuota heavy = QuotaOf("a", Gb(kMaxInt64));
  heavy.weight = 1000;
  Put(heavy);
  Put("b", kMaxInt64);
  EXPECT_EQ(balance_.ShareOf(At("b"), kMemory), Amount{2} * kMaxInt64 / 1001);
  EXPECT_EQ(balance_.ShareOf(At("a"), kMemory), Amount{2} * kMaxInt64 * 1000 / 1001);
}

class QuotaTreeTest : public BalanceTest {
 protected:
  QuotaTreeTest() {
    Put("org", 100);
    PutBelow("a", "org/q", 40);
    PutBelow("b", "org/q", 30);
    Put("other", 50);
  }
  void PutBelow(const std::string& ns, const std::string& parent, int64_t min) {
    cluster::ElasticQuota quota = QuotaOf(ns, Gb(min));
    quota.parent = parent;
    Put(quota);
  }
};

TEST_F(QuotaTreeTest, ParentUseIncludesChildren) {
  Use("a", 10);
  Use("org", 5);
  EXPECT_EQ(balance_.used(At("org")), Asks(15));
  EXPECT_EQ(balance_.used(At("a")), Asks(10));
  balance_.Add(At("a"), Asks(10), -1);
  balance_.Add(At("org"), Asks(5), -1);
  EXPECT_TRUE(balance_.used(At("org")).empty());
}

TEST_F(QuotaTreeTest, LendsToSiblingsAndOtherQuotas) {
  EXPECT_EQ(Share("a"), 40 + 40) << "40/100 of 100 idle within the level, and of 100 from above";
  EXPECT_EQ(WhyNot("a", 150), "");
  EXPECT_NE(WhyNot("a", 151), "");
  Use("a", 120);
  EXPECT_EQ(Borrowed("a"), 80);
  EXPECT_EQ(Borrowed("org"), 20);
  EXPECT_EQ(Lent("b"), 30);
  EXPECT_EQ(Lent("other"), 20);
  EXPECT_EQ(WhyNot("other", 30), "");
  EXPECT_NE(WhyNot("other", 31), "");
  EXPECT_EQ(WhyNot("b", 30), "") << "other quotas still have 30 idle";
  Use("other", 30);
  EXPECT_NE(WhyNot("b", 1), "") << "its sibling borrows it";
}

TEST_F(QuotaTreeTest, LendingLimitKeepsCapacityFromSiblings) {
  cluster::ElasticQuota closed = QuotaOf("c", Gb(20));
  closed.parent = "org/q";
  closed.lending_limit = Gb(0);
  Put(closed);
  Use("other", 50);
  EXPECT_EQ(WhyNot("a", 80), "");
  EXPECT_NE(WhyNot("a", 81), "");
  EXPECT_NE(WhyNot("org", 81), "");
  EXPECT_EQ(WhyNot("c", 20), "");
}

TEST_F(QuotaTreeTest, ParentWithoutNamespacesCountsUseOfChildren) {
  cluster::ElasticQuota roof = QuotaOf("roof", Gb(20));
  roof.namespaces = {};
  Put(roof);
  EXPECT_EQ(WhyNot("other", 150), "");
  EXPECT_NE(WhyNot("other", 151), "") << "it has no children yet";
  PutBelow("c", "roof/q", 10);
  EXPECT_EQ(WhyNot("other", 170), "");
  EXPECT_NE(WhyNot("other", 171), "");
  EXPECT_EQ(WhyNot("c", 170), "");
}

TEST_F(QuotaTreeTest, ParentNamespacesGetMinMinusChildrenMin) {
  EXPECT_TRUE(balance_.IsGuaranteed(At("org"), Asks(30)));
  EXPECT_FALSE(balance_.IsGuaranteed(At("org"), Asks(31)));
  Use("a", 100);
  EXPECT_TRUE(balance_.IsGuaranteed(At("org"), Asks(30))) << "its child borrows this capacity";
}

TEST_F(QuotaTreeTest, AdmitsPodCoveredByMinDespiteOveruseOfParent) {
  cluster::ElasticQuota bounded = *quotas_[0];
  bounded.max = Gb(110);
  quotas_[0] = std::make_shared<const cluster::ElasticQuota>(bounded);
  balance_ = Balance(quotas_);
  Use("org", 1'000'000);
  EXPECT_EQ(WhyNot("a", 40), "");
  EXPECT_EQ(WhyNot("other", 50), "");
  EXPECT_NE(WhyNot("a", 41), "");
}

TEST_F(QuotaTreeTest, ReportsInvalidParent) {
  PutBelow("x", "y/q", 1);
  PutBelow("y", "x/q", 1);
  PutBelow("z", "no/where", 1);
  EXPECT_EQ(balance_.terms(At("x")).parent, At("y"));
  EXPECT_EQ(balance_.terms(At("y")).parent, std::nullopt);
  EXPECT_EQ(balance_.terms(At("y")).problems,
            std::vector<std::string>{"its parent x/q is below it"});
  EXPECT_EQ(balance_.terms(At("z")).problems,
            std::vector<std::string>{"its parent no/where does not exist"});
}

}  // namespace
}  // namespace nos::quota
