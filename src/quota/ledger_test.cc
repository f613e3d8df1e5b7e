#include "quota/ledger.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/random.h"

namespace nos::quota {
namespace {

const std::vector<std::string> kNamespaces = {"a", "b", "c", "d"};
const std::vector<std::string> kResources = {"cpu", "nvidia.com/gpu", "x.io/y"};

SharedQuota QuotaOf(const std::string& ns, const std::string& name,
                    std::vector<std::string> namespaces) {
  auto quota = std::make_shared<cluster::ElasticQuota>();
  quota->meta.ns = ns;
  quota->meta.name = name;
  quota->composite = namespaces.size() != 1 || namespaces.front() != ns;
  quota->namespaces = std::move(namespaces);
  quota->min = {{"cpu", Quantity::FromValue(1)}};
  return quota;
}

Amounts Cpus(int64_t milli) {
  Amounts charge;
  charge.Set(cluster::kCpu, milli);
  return charge;
}

Ledger::Pod PodOf(const std::string& ns, const std::string& name, int64_t created = 0) {
  auto pod = std::make_shared<cluster::Pod>();
  pod->meta.ns = ns;
  pod->meta.name = name;
  pod->meta.created = Time(std::chrono::seconds(created));
  return pod;
}

TEST(LedgerTest, AppliesQuotasAddedAndRemovedWhilePodsRun) {
  Ledger ledger;
  ledger.SetPod(PodOf("a", "p"), Cpus(300));
  ledger.SetPod(PodOf("b", "p"), Cpus(500));
  EXPECT_FALSE(ledger.balance().AccountOf("a"));
  ledger.SetQuotas({QuotaOf("a", "q", {"a"})});
  EXPECT_EQ(ledger.balance().used(0), Cpus(300));
  ledger.SetQuotas({QuotaOf("a", "q", {"a"}), QuotaOf("x", "q", {"a", "b"})});
  EXPECT_EQ(ledger.balance().used(*ledger.balance().AccountOf("a")), Cpus(800));
  ledger.SetQuotas({QuotaOf("a", "q", {"a"})});
  EXPECT_EQ(ledger.balance().used(0), Cpus(300));
}

// A resource that only the parent names is shared by the parent's own namespaces and its children,
// oldest pods first.
TEST(LedgerTest, ResourceNotNamedByChildUsesMinOfParent) {
  const auto gpus = [](int64_t n) {
    Amounts charge;
    charge.Set(cluster::InternResource("nvidia.com/gpu"), n);
    return charge;
  };
  auto org = std::make_shared<cluster::ElasticQuota>(*QuotaOf("org", "q", {"org"}));
  org->min = {{"cpu", Quantity::FromValue(4)}, {"nvidia.com/gpu", Quantity::FromValue(2)}};
  auto team = std::make_shared<cluster::ElasticQuota>(*QuotaOf("team", "q", {"team"}));
  team->parent = "org/q";
  Ledger ledger;
  ledger.SetQuotas({org, team});
  ledger.SetPod(PodOf("team", "old", 1), gpus(1));
  ledger.SetPod(PodOf("org", "own", 2), gpus(1));
  EXPECT_FALSE(ledger.IsOverQuota("org/own"));
  ledger.SetPod(PodOf("team", "young", 3), gpus(1));
  EXPECT_FALSE(ledger.IsOverQuota("team/old"));
  EXPECT_TRUE(ledger.IsOverQuota("team/young"));
  EXPECT_EQ(ledger.StandingOf(*ledger.balance().AccountOf("team")).in_quota, 1U);
  ledger.SetPod(PodOf("org", "first", 0), gpus(1));  // another pod of the team is now over quota
  EXPECT_FALSE(ledger.IsOverQuota("team/old"));
  EXPECT_TRUE(ledger.IsOverQuota("org/own"));
  ledger.SetPod(PodOf("team", "cpu", 4), Cpus(1000));
  EXPECT_FALSE(ledger.IsOverQuota("team/cpu"));
}

TEST(LedgerTest, ReplacesChargeOfPod) {
  Ledger ledger;
  ledger.SetQuotas({QuotaOf("a", "q", {"a"})});
  ledger.SetPod(PodOf("a", "p"), Cpus(300));
  ledger.SetPod(PodOf("a", "p"), Cpus(300));
  ledger.SetPod(PodOf("a", "p"), Cpus(700));
  EXPECT_EQ(ledger.balance().used(0), Cpus(700));
  ledger.RemovePod("a/p");
  ledger.RemovePod("a/p");
  EXPECT_TRUE(ledger.balance().used(0).empty());
  EXPECT_EQ(ledger.ChargeOf("a/p"), nullptr);
}

TEST(LedgerTest, CountsPodsOnMissingNodes) {
  cluster::Pod here = *PodOf("a", "here"), away = *PodOf("a", "away"), done = *PodOf("a", "done"),
               waits = *PodOf("a", "waits");
  for (cluster::Pod* pod : {&here, &away, &done, &waits}) {
    pod->containers.emplace_back().requests = {{"nvidia.com/gpu", Quantity::FromValue(1)}};
  }
  here.node_name = "n";
  away.node_name = "gone";
  done.node_name = "gone";
  done.phase = "Succeeded";
  std::vector<Ledger::Pod> pods;
  for (const cluster::Pod& pod : {here, away, done, waits}) {
    pods.push_back(std::make_shared<const cluster::Pod>(pod));
  }
  auto node = std::make_shared<cluster::Node>();
  node->meta.name = "n";
  node->meta.labels = {{"nvidia.com/gpu.memory", "16384"}};
  const auto snapshot = cluster::ClusterSnapshot::Build({node}, pods, gpu::Catalogue::Builtin());
  const Ledger ledger = LedgerOf({QuotaOf("a", "q", {"a"})}, snapshot, pods, {});
  const Amounts& used = ledger.balance().used(0);
  EXPECT_EQ(used.Get(cluster::kPods), 2);
  EXPECT_EQ(used.Get(cluster::InternResource(kGpuMemory)), 16 + 32)
      << "16 on the node, the default on the missing node";
}

TEST(LedgerTest, ReportsPodsOverQuota) {
  Ledger ledger;
  ledger.SetPod(PodOf("a", "old", 1), Cpus(600));
  ledger.SetPod(PodOf("a", "young", 2), Cpus(600));
  EXPECT_FALSE(ledger.IsOverQuota("a/young")) << "no quota is in force";
  ledger.SetQuotas({QuotaOf("a", "q", {"a"})});
  EXPECT_FALSE(ledger.IsOverQuota("a/old"));
  EXPECT_TRUE(ledger.IsOverQuota("a/young"));
  EXPECT_EQ(ledger.StandingOf(0).in_quota, 1u);
  ledger.RemovePod("a/old");
  EXPECT_FALSE(ledger.IsOverQuota("a/young"));
  EXPECT_FALSE(ledger.IsOverQuota("a/old"));
}

ChargeParts WithClaim(const std::string& claim, int64_t milli, int64_t own = 100) {
  return {Cpus(own), {{claim, Cpus(milli)}}};
}

TEST(LedgerTest, ClaimCountsOnceForTheOldestOfItsUsers) {
  Ledger ledger;
  ledger.SetQuotas({QuotaOf("a", "q", {"a"})});
  ledger.SetPod(PodOf("a", "second", 2), WithClaim("a/c", 500));
  ledger.SetPod(PodOf("a", "third", 3), WithClaim("a/c", 500));
  EXPECT_EQ(ledger.balance().used(0), Cpus(700));
  EXPECT_EQ(*ledger.ChargeOf("a/second"), Cpus(600));
  ledger.SetPod(PodOf("a", "first", 1), WithClaim("a/c", 500));
  EXPECT_EQ(ledger.balance().used(0), Cpus(800));
  EXPECT_EQ(*ledger.ChargeOf("a/first"), Cpus(600));
  EXPECT_EQ(*ledger.ChargeOf("a/second"), Cpus(100));
  EXPECT_EQ(ledger.UsersOf("a/c").size(), 3u);
  ledger.RemovePod("a/first");
  EXPECT_EQ(*ledger.ChargeOf("a/second"), Cpus(600)) << "the next one is charged";
  EXPECT_EQ(*ledger.ChargeOf("a/third"), Cpus(100));
  ledger.SetPod(PodOf("a", "second", 2), WithClaim("a/c", 700));
  EXPECT_EQ(ledger.balance().used(0), Cpus(900)) << "its device is known now";
  ledger.RemovePod("a/second");
  ledger.RemovePod("a/third");
  EXPECT_EQ(ledger.balance().used(0), Amounts());
  EXPECT_TRUE(ledger.UsersOf("a/c").empty());
}

// The labels of the pods follow the charge.
TEST(LedgerTest, StandingFollowsTheChargeOfAClaim) {
  Ledger ledger;
  ledger.SetQuotas({QuotaOf("a", "q", {"a"})});
  ledger.SetPod(PodOf("a", "first", 1), WithClaim("a/c", 900, 200));
  ledger.SetPod(PodOf("a", "second", 2), WithClaim("a/c", 900, 0));
  EXPECT_TRUE(ledger.IsOverQuota("a/first"));
  ledger.RemovePod("a/first");
  EXPECT_FALSE(ledger.IsOverQuota("a/second"));
  (void)ledger.TakeChanged();
  ledger.SetPod(PodOf("a", "first", 1), WithClaim("a/c", 900, 200));
  EXPECT_EQ(ledger.TakeChanged(), std::set<size_t>{0});
  EXPECT_TRUE(ledger.IsOverQuota("a/first"));
}

TEST(LedgerTest, ClaimIsFreeWhenItsLastUserHasLeft) {
  Ledger ledger;
  ledger.SetPod(PodOf("a", "first", 1), WithClaim("a/c", 500));
  ledger.SetPod(PodOf("a", "second", 2), WithClaim("a/c", 500));
  const auto freed = [&](const std::string& pod, const std::set<std::string>& gone) {
    return ledger.FreedBy(pod, [&](const std::string& other) { return gone.contains(other); });
  };
  EXPECT_EQ(freed("a/first", {}), Cpus(100)) << "the other one keeps the devices";
  EXPECT_EQ(freed("a/second", {}), Cpus(100));
  EXPECT_EQ(freed("a/first", {"a/second"}), Cpus(600));
  EXPECT_EQ(freed("a/second", {"a/first"}), Cpus(600));
  EXPECT_EQ(freed("a/none", {}), Amounts());
  const auto sharers = [&](const Amounts& asked) {
    return ledger.SharersOf("a/second", asked).size();
  };
  EXPECT_EQ(sharers(Cpus(1)), 2u);
  Amounts other;
  other.Set(cluster::InternResource("x.io/y"), 1);
  EXPECT_EQ(sharers(other), 0u) << "the claim counts for nothing that is asked";
}

TEST(LedgerTest, PodIsNotChargedForClaimsInUse) {
  Ledger ledger;
  const ChargeParts charge = WithClaim("a/c", 500);
  EXPECT_EQ(ledger.WithoutOthers(charge, "a/new").Total(), Cpus(600));
  ledger.SetPod(PodOf("a", "user"), charge);
  EXPECT_EQ(ledger.WithoutOthers(charge, "a/new").Total(), Cpus(100));
  EXPECT_EQ(ledger.WithoutOthers(charge, "a/user").Total(), Cpus(600));
}

// Compares everything that is observable of the pools of all levels.
void ExpectSame(const Balance& a, const Balance& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_TRUE(a.used(i) == b.used(i));
    for (const std::string& name : kResources) {
      const cluster::ResourceId id = cluster::InternResource(name);
      EXPECT_TRUE(a.ShareOf(i, id) == b.ShareOf(i, id));
      EXPECT_TRUE(a.LentBy(i, id) == b.LentBy(i, id));
      for (const int64_t asked : {1, 5, 50}) {
        Amounts charge;
        charge.Set(id, asked);
        EXPECT_TRUE(a.WhyNot(i, charge).has_value() == b.WhyNot(i, charge).has_value());
      }
    }
  }
}

template <typename T>
const T& OneOf(Random& random, const std::vector<T>& items) {
  return items[random.Below(items.size())];
}

class LedgerWorld {
 public:
  explicit LedgerWorld(uint64_t seed) : random_(seed) {}

  // Applies one random event.
  void Step() {
    const int kind = static_cast<int>(random_.Below(10));
    const std::string key = "p" + std::to_string(random_.Below(12));
    if (kind == 0) {
      SetQuotas();
    } else if (kind < 3) {
      const std::string ns = OneOf(random_, kNamespaces);
      ledger.RemovePod(ns + "/" + key);
      pods_.erase(ns + "/" + key);
    } else {
      const std::string ns = OneOf(random_, kNamespaces);
      ChargeParts charge;
      charge.own.Set(cluster::InternResource(OneOf(random_, kResources)),
                     OneOf(random_, std::vector<int64_t>{1, 2, 7, 40, INT64_MAX}));
      for (const size_t claim : {0, 1, 2}) {
        if (!random_.Chance(0.2)) continue;
        Amounts amounts;
        amounts.Set(cluster::InternResource(kResources[claim]), static_cast<int64_t>(claim) + 1);
        charge.claims.emplace_back(ns + "/c" + std::to_string(claim), std::move(amounts));
      }
      ledger.SetPod(PodOf(ns, key), charge);
      pods_[ns + "/" + key] = {PodOf(ns, key), charge};
    }
  }
  Ledger Recounted() const {
    Ledger fresh;
    for (const auto& [key, pod] : pods_) fresh.SetPod(pod.first, pod.second);
    fresh.SetQuotas(quotas_);
    return fresh;
  }

  // Every pod's standing equals that of a fresh ledger, and TakeChanged reported the account of
  // every pod whose standing changed.
  void ExpectSameStandings() {
    Ledger fresh = Recounted();
    const std::set<size_t> changed = ledger.TakeChanged();
    std::map<std::string, bool> over;
    for (const auto& [key, pod] : pods_) {
      over[key] = ledger.IsOverQuota(key);
      EXPECT_EQ(over[key], fresh.IsOverQuota(key)) << key;
      const auto account = ledger.balance().AccountOf(pod.first->meta.ns);
      const auto before = over_.find(key);
      if (same_quotas_ && account && before != over_.end() && before->second != over[key]) {
        EXPECT_TRUE(changed.contains(*account)) << key;
      }
    }
    over_ = std::move(over);
    same_quotas_ = true;
  }

  Ledger ledger;

 private:
  void SetQuotas() {
    same_quotas_ = false;
    quotas_.clear();
    const int count = static_cast<int>(random_.Below(5));
    for (int i = 0; i < count; ++i) {
      const std::string ns = OneOf(random_, kNamespaces);
      auto quota = std::make_shared<cluster::ElasticQuota>(*QuotaOf(
          ns, "q" + std::to_string(i),
          OneOf(random_,
                std::vector<std::vector<std::string>>{{ns}, {"a", "b"}, {"c", "d", "a"}})));
      for (const std::string& name : kResources) {
        if (random_.Chance(0.5)) {
          quota->min[name] =
              Quantity::FromValue(OneOf(random_, std::vector<int64_t>{0, 1, 10, 100}));
        }
      }
      if (random_.Chance(0.5)) quota->lending_limit = {{"x.io/y", Quantity::FromValue(3)}};
      if (i > 0 && random_.Chance(0.5)) quota->parent = quotas_.front()->Key();
      quotas_.push_back(std::move(quota));
    }
    ledger.SetQuotas(quotas_);
  }

  Random random_;
  std::vector<SharedQuota> quotas_;
  std::map<std::string, std::pair<Ledger::Pod, ChargeParts>> pods_;
  std::map<std::string, bool> over_;  // at the previous check
  bool same_quotas_ = false;          // no SetQuotas since the previous check
};

class RandomLedgerTest : public ::testing::TestWithParam<uint64_t> {};

TEST_P(RandomLedgerTest, EqualsRecountAfterRandomEvents) {
  LedgerWorld world(GetParam());
  for (int i = 0; i < 3000; ++i) {
    world.Step();
    if (i % 30 == 0) ExpectSame(world.ledger.balance(), world.Recounted().balance());
    if (i % 3 == 0) world.ExpectSameStandings();
    if (HasFailure()) FAIL() << "step " << i;
  }
}

TEST_P(RandomLedgerTest, AdmittedPodsStayWithinSumOfGuarantees) {
  Random random(GetParam());
  std::vector<SharedQuota> quotas;
  std::vector<int64_t> mins;
  for (const std::string& ns : kNamespaces) {
    auto quota = std::make_shared<cluster::ElasticQuota>(*QuotaOf(ns, "q", {ns}));
    mins.push_back(static_cast<int64_t>(random.Below(20)));
    quota->min = {{"x.io/y", Quantity::FromValue(mins.back())}};
    quotas.push_back(std::move(quota));
  }
  Balance balance(quotas);
  const cluster::ResourceId id = cluster::InternResource("x.io/y");
  Amount used = 0, guaranteed = 0;
  for (const int64_t min : mins) guaranteed += min;
  for (int i = 0; i < 60; ++i) {
    const size_t account = *balance.AccountOf(OneOf(random, kNamespaces));
    Amounts charge;
    charge.Set(id, static_cast<int64_t>(1 + random.Below(8)));
    const bool fits = used + charge.Get(id) <= guaranteed;
    ASSERT_EQ(balance.WhyNot(account, charge).has_value(), !fits);
    if (!fits) continue;
    balance.Add(account, charge);
    used += charge.Get(id);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomLedgerTest, ::testing::Range(uint64_t{1}, uint64_t{9}));

}  // namespace
}  // namespace nos::quota
