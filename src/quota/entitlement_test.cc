#include "quota/entitlement.h"

#include <gtest/gtest.h>

namespace nos::quota {
namespace {

const std::string kGpu = "nvidia.com/gpu";

cluster::ResourceList Gpus(int64_t amount) { return {{kGpu, Quantity::FromValue(amount)}}; }
Amounts Of(const std::string& resource, int64_t amount) {
  Amounts amounts;
  amounts.Set(cluster::InternResource(resource), amount);
  return amounts;
}

// Quotas a, b and c of 10 GPUs each; d has no quota. Each row of the table in entitlement.h is a
// test.
class ClaimTest : public ::testing::Test {
 protected:
  ClaimTest() {
    Put("a", 10);
    Put("b", 10);
    Put("c", 10);
  }
  void Put(const std::string& ns, int64_t min, const std::string& parent = "") {
    auto quota = std::make_shared<cluster::ElasticQuota>();
    quota->meta.ns = ns;
    quota->meta.name = 'q';
    quota->namespaces = {ns};
    quota->min = Gpus(min);
    quota->parent = parent;
    quotas_.push_back(std::move(quota));
    balance_ = Balance(quotas_);
  }
  Holding Pod(const std::string& ns, int64_t gpus, int32_t priority = 0, bool over = true) {
    return {balance_.AccountOf(ns), Of(kGpu, gpus), priority, over, false};
  }
  void Use(const std::string& ns, int64_t gpus) {
    balance_.Add(*balance_.AccountOf(ns), Of(kGpu, gpus));
  }
  bool MayTake(const Holding& claimant, const Holding& victim) {
    return Entitlement(balance_, claimant, rules_).MayTake(victim);
  }

  std::vector<SharedQuota> quotas_;
  Balance balance_;
  ReclaimRules rules_;
};

TEST_F(ClaimTest, PodWithoutQuotaEvictsByPriority) {
  EXPECT_TRUE(MayTake(Pod("d", 1, 5), Pod("d", 1, 4)));
  EXPECT_FALSE(MayTake(Pod("d", 1, 5), Pod("d", 1, 5)));
  Use("a", 20);
  EXPECT_FALSE(MayTake(Pod("d", 1, 5), Pod("a", 1, 4))) << "never from a quota";
}

TEST_F(ClaimTest, GuaranteedPodEvictsBorrowersOfOtherQuotas) {
  Use("b", 12);
  EXPECT_TRUE(MayTake(Pod("a", 10), Pod("b", 1, 1'000))) << "priorities do not count";
  EXPECT_FALSE(MayTake(Pod("a", 10), Pod("b", 1, 0, false))) << "covered by b's min";
  Use("c", 10);
  EXPECT_FALSE(MayTake(Pod("a", 10), Pod("c", 1))) << "c borrows nothing";
  Use("a", 10);
  EXPECT_FALSE(MayTake(Pod("a", 10, 9), Pod("b", 1))) << "min does not cover more";
}

TEST_F(ClaimTest, GuaranteedPodDoesNotEvictPodsOfOwnQuota) {
  Use("a", 3);
  EXPECT_FALSE(MayTake(Pod("a", 1, 9), Pod("a", 1, 0)));
}

TEST_F(ClaimTest, GuaranteedPodEvictsPodsWithoutQuota) {
  EXPECT_TRUE(MayTake(Pod("a", 10), Pod("d", 1, 1'000)));
  Holding exempt = Pod("d", 1);
  exempt.is_exempt = true;
  EXPECT_FALSE(MayTake(Pod("a", 10), exempt));
  Holding other = Pod("d", 0);
  other.charge = Of("cpu", 1000);
  EXPECT_TRUE(MayTake(Pod("a", 10), other)) << "the pod needs its cores, too";
  rules_.from_pods_without_quota = false;
  EXPECT_FALSE(MayTake(Pod("a", 10), Pod("d", 1)));
}

TEST_F(ClaimTest, BorrowingPodEvictsLowerPriorityOfOwnQuota) {
  Use("a", 10);
  EXPECT_TRUE(MayTake(Pod("a", 1, 5), Pod("a", 1, 4, false)));
  EXPECT_FALSE(MayTake(Pod("a", 1, 5), Pod("a", 1, 5)));
}

TEST_F(ClaimTest, BorrowingPodEvictsLowerPriorityWithoutQuota) {
  Use("a", 10);
  EXPECT_TRUE(MayTake(Pod("a", 1, 5), Pod("d", 1, 4)));
  EXPECT_FALSE(MayTake(Pod("a", 1, 5), Pod("d", 1, 5)));
  Holding exempt = Pod("d", 1);
  exempt.is_exempt = true;
  EXPECT_FALSE(MayTake(Pod("a", 1, 5), exempt));
}

TEST_F(ClaimTest, BorrowingPodEvictsOthersOnlyWithinItsShare) {
  Use("a", 10);
  Use("b", 20);  // c's 10 are idle: the share of a and b is 3 each
  EXPECT_TRUE(MayTake(Pod("a", 3), Pod("b", 1)));
  EXPECT_FALSE(MayTake(Pod("a", 4), Pod("b", 1))) << "more than its share";
  EXPECT_FALSE(MayTake(Pod("a", 3), Pod("b", 1, 0, false)));
  balance_.Add(*balance_.AccountOf("b"), Of(kGpu, 7), -1);
  EXPECT_FALSE(MayTake(Pod("a", 3), Pod("b", 1))) << "b has no more than its share";
}

TEST_F(ClaimTest, NeverEvictsExemptPods) {
  Use("b", 12);
  Use("a", 10);
  Holding exempt = Pod("b", 1), own = Pod("a", 1, 0);
  exempt.is_exempt = own.is_exempt = true;
  EXPECT_FALSE(MayTake(Pod("c", 10), exempt));
  EXPECT_FALSE(MayTake(Pod("a", 1, 5), own));
  own.is_exempt = false;
  EXPECT_TRUE(MayTake(Pod("a", 1, 5), own));
}

TEST_F(ClaimTest, AccountsForTakenVictims) {
  Use("b", 12);
  Entitlement claim(balance_, Pod("a", 10), {});
  const Holding victim = Pod("b", 2);
  ASSERT_TRUE(claim.MayTake(victim));
  claim.Take(victim);
  EXPECT_FALSE(claim.MayTake(victim)) << "b is back at its min";
  claim.GiveBack(victim);
  EXPECT_TRUE(claim.MayTake(victim));
}

TEST_F(ClaimTest, ReportsWhetherQuotaAdmitsClaimant) {
  Use("b", 25);
  Entitlement claim(balance_, Pod("a", 10), {});
  EXPECT_TRUE(claim.IsGuaranteed());
  ASSERT_TRUE(claim.WhyNot().has_value());
  claim.Take(Pod("b", 5));
  EXPECT_FALSE(claim.WhyNot().has_value());
}

TEST_F(ClaimTest, IgnoresResourcesThatQuotaDoesNotName) {
  Use("b", 20);
  Holding claimant = Pod("a", 0);
  claimant.charge = Of("cpu", 1000);
  EXPECT_FALSE(Entitlement(balance_, claimant, {}).IsGuaranteed());
  EXPECT_FALSE(MayTake(claimant, Pod("b", 1)));
  EXPECT_FALSE(MayTake(claimant, Pod("d", 1)));
}

TEST_F(ClaimTest, ChecksBothQuotasOnEveryLevelOfTree) {
  quotas_.clear();
  Put("org", 20);
  Put("a", 10, "org/q");
  Put("b", 10, "org/q");
  Put("other", 10);
  Use("b", 18);
  EXPECT_TRUE(MayTake(Pod("a", 10), Pod("b", 1))) << "a sibling";
  Use("other", 12);
  EXPECT_FALSE(MayTake(Pod("a", 10), Pod("other", 1))) << "the parent uses its whole min";
  EXPECT_TRUE(MayTake(Pod("a", 2), Pod("other", 1)));
  EXPECT_FALSE(MayTake(Pod("other", 1), Pod("b", 1))) << "b borrows only from its sibling";
}

TEST_F(ClaimTest, GuaranteedPodClearsPodsOfOtherQuotasThatNothingProtects) {
  const auto may_clear = [&](const Holding& claimant, const Holding& victim) {
    return Entitlement(balance_, claimant, rules_).MayClear(victim);
  };
  Holding none = Pod("b", 0), cores = Pod("b", 0, 0, false);
  none.charge = Of("pods", 1);
  cores.charge = Of("cpu", 1000);
  EXPECT_TRUE(may_clear(Pod("a", 10), none));
  EXPECT_TRUE(may_clear(Pod("a", 10), cores));
  EXPECT_FALSE(may_clear(Pod("a", 11), none)) << "min does not cover the claimant";
  none.is_exempt = true;
  EXPECT_FALSE(may_clear(Pod("a", 10), none));
  Holding own = Pod("a", 0), free = Pod("d", 0);
  own.charge = free.charge = Of("pods", 1);
  EXPECT_FALSE(may_clear(Pod("a", 10), own));
  EXPECT_FALSE(may_clear(Pod("a", 10), free)) << "MayTake decides";
  Use("b", 10);
  EXPECT_FALSE(may_clear(Pod("a", 10), Pod("b", 1)));
  Use("b", 1);
  EXPECT_TRUE(may_clear(Pod("a", 10), Pod("b", 1)));
  EXPECT_FALSE(may_clear(Pod("a", 10), Pod("b", 1, 0, false))) << "covered by b's min";
}

TEST_F(ClaimTest, ParentProtectsPodsOfItsChildrenFromClearing) {
  quotas_.clear();
  Put("org", 20);
  Put("b", 10, "org/q");
  Put("a", 5, "org/q");
  Put("other", 10);
  Use("b", 12);
  EXPECT_FALSE(Entitlement(balance_, Pod("other", 1), {}).MayClear(Pod("b", 1)));
  EXPECT_TRUE(Entitlement(balance_, Pod("a", 1), {}).MayClear(Pod("b", 1)));
}

TEST_F(ClaimTest, ParentNamespacesCompeteWithChildren) {
  quotas_.clear();
  Put("org", 20);
  Put("a", 10, "org/q");
  Use("org", 20);
  EXPECT_TRUE(MayTake(Pod("a", 10), Pod("org", 1))) << "org uses more than its own part";
  balance_.Add(*balance_.AccountOf("org"), Of(kGpu, 10), -1);
  EXPECT_FALSE(MayTake(Pod("a", 10), Pod("org", 1)));
  Use("a", 10);
  EXPECT_FALSE(MayTake(Pod("org", 1), Pod("a", 1)));
  Use("a", 1);
  EXPECT_FALSE(MayTake(Pod("org", 1), Pod("a", 1))) << "org uses its own part already";
  balance_.Add(*balance_.AccountOf("org"), Of(kGpu, 5), -1);
  EXPECT_TRUE(MayTake(Pod("org", 5), Pod("a", 1)));
}

}  // namespace
}  // namespace nos::quota
