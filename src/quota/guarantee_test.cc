// A namespace always obtains what its own min covers, after eviction of all victims that the rules
// allow.
#include <gtest/gtest.h>

#include "base/random.h"
#include "quota/entitlement.h"
#include "quota/ledger.h"

namespace nos::quota {
namespace {

const cluster::ResourceId kX = cluster::InternResource("example.com/x");

Amounts Of(uint64_t amount) {
  Amounts amounts;
  amounts.Set(kX, static_cast<Amount>(amount));
  return amounts;
}

// Random quotas, partly nested and partly with lending limits, and pods that they admitted.
class GuaranteeTest : public ::testing::TestWithParam<uint64_t> {
 protected:
  GuaranteeTest() {
    ledger_.SetQuotas(RandomQuotas());
    for (int i = 0; i < 25; ++i) {
      const std::string ns = "t" + std::to_string(random_.Below(kQuotas));
      const Amounts charge = Of(1 + random_.Below(3));
      if (ledger_.balance().WhyNot(At(ns), charge)) continue;
      pods_.push_back(PodOf(ns, i));
      ledger_.SetPod(pods_.back(), charge);
    }
    if (random_.Below(3) == 0) ledger_.SetQuotas(RandomQuotas());
  }

  std::vector<SharedQuota> RandomQuotas() {
    std::vector<SharedQuota> quotas;
    std::vector<uint64_t> rest;
    for (size_t i = 0; i < kQuotas; ++i) {
      auto quota = std::make_shared<cluster::ElasticQuota>();
      quota->meta.ns = "t" + std::to_string(i);
      quota->meta.name = "q";
      quota->namespaces = {quota->meta.ns};
      uint64_t min = random_.Below(6);
      if (i > 0 && random_.Below(3) == 0) {
        const size_t parent = random_.Below(i);
        quota->parent = "t" + std::to_string(parent) + "/q";
        min = std::min(min, rest[parent]);
        rest[parent] -= min;
      }
      rest.push_back(min);
      quota->min = ListOf(Of(min));
      if (min == 0) quota->min["example.com/x"] = Quantity();
      if (random_.Below(3) == 0) quota->lending_limit = ListOf(Of(random_.Below(4)));
      quotas.push_back(quota);
    }
    return quotas;
  }
  static Ledger::Pod PodOf(const std::string& ns, int number) {
    auto pod = std::make_shared<cluster::Pod>();
    pod->meta.ns = ns;
    pod->meta.name = "p" + std::to_string(number);
    pod->meta.created = Time(std::chrono::seconds(number));
    return pod;
  }
  size_t At(const std::string& ns) { return *ledger_.balance().AccountOf(ns); }
  Amount OwnUse(const std::string& ns) {
    Amounts sum;
    for (const auto& pod : pods_) {
      if (pod->meta.ns == ns) sum.Add(*ledger_.ChargeOf(pod->Key()));
    }
    return sum.Get(kX);
  }
  void TakeAll(Entitlement& claim) {
    std::vector<Ledger::Pod> rest = pods_;
    for (size_t before = SIZE_MAX; rest.size() < before;) {
      before = rest.size();
      std::erase_if(rest, [&](const Ledger::Pod& pod) {
        const Holding victim{At(pod->meta.ns), *ledger_.ChargeOf(pod->Key()), 0,
                             ledger_.IsOverQuota(pod->Key())};
        const bool goes = claim.WhyNot() && claim.MayTake(victim);
        if (goes) claim.Take(victim);
        return goes;
      });
    }
  }

  static constexpr size_t kQuotas = 4;
  Random random_{GetParam()};
  Ledger ledger_;
  std::vector<Ledger::Pod> pods_;
};

TEST_P(GuaranteeTest, GuaranteedPodIsAdmittedAfterEvictions) {
  for (size_t i = 0; i < kQuotas; ++i) {
    const std::string ns = "t" + std::to_string(i);
    const Amounts charge = Of(1 + random_.Below(2));
    const Amount min = ledger_.balance().terms(At(ns)).own_min.Get(kX);
    if (OwnUse(ns) + charge.Get(kX) > min) continue;
    Entitlement claim(ledger_.balance(), {At(ns), charge}, {});
    TakeAll(claim);
    EXPECT_FALSE(claim.WhyNot()) << ns << ": " << claim.WhyNot()->Text();
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, GuaranteeTest, ::testing::Range<uint64_t>(1, 501));

}  // namespace
}  // namespace nos::quota
