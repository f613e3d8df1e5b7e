#include "quota/standing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>

#include "base/random.h"

namespace nos::quota {
namespace {

Amounts Of(const std::string& resource, int64_t amount) {
  Amounts amounts;
  amounts.Set(cluster::InternResource(resource), amount);
  return amounts;
}

Holder HolderOf(const std::string& pod, int64_t created, int32_t priority, int64_t amount) {
  auto object = std::make_shared<cluster::Pod>();
  object->meta.name = pod;
  object->meta.created = Time(std::chrono::seconds(created));
  object->priority = priority;
  return {std::move(object), Of("x.io/y", amount)};
}

std::vector<std::string> InQuota(int64_t min, std::vector<Holder> holders) {
  std::vector<Holder*> ordered;
  for (Holder& holder : holders) ordered.push_back(&holder);
  std::ranges::sort(ordered, StandingOrder(Of("x.io/y", min)));
  const size_t count = CountInQuota(Of("x.io/y", min), ordered);
  std::vector<std::string> names;
  for (size_t i = 0; i < ordered.size(); ++i) {
    EXPECT_EQ(ordered[i]->over_quota, i >= count);
    if (i < count) names.push_back(ordered[i]->pod->meta.name);
  }
  return names;
}

using Names = std::vector<std::string>;

TEST(StandingTest, CoversOldestPodsFirst) {
  EXPECT_EQ(InQuota(5, {HolderOf("c", 3, 0, 2), HolderOf("b", 2, 0, 2), HolderOf("a", 1, 0, 2)}),
            (Names{"a", "b"}));
}

TEST(StandingTest, OrdersEqualAgeByPriorityThenSizeThenName) {
  EXPECT_EQ(InQuota(9, {HolderOf("d", 1, 0, 2), HolderOf("c", 1, 0, 2), HolderOf("b", 1, 0, 1),
                        HolderOf("a", 1, 7, 3)}),
            (Names{"a", "b", "c", "d"}));
}

TEST(StandingTest, CoversNoPodBehindFirstOverQuota) {
  EXPECT_EQ(InQuota(5, {HolderOf("a", 1, 0, 2), HolderOf("b", 2, 0, 9), HolderOf("c", 3, 0, 1)}),
            (Names{"a"}));
}

TEST(StandingTest, CountsOnlyResourcesNamedByMin) {
  Holder holder = HolderOf("a", 1, 0, 9);
  std::vector<Holder*> holders = {&holder};
  EXPECT_EQ(CountInQuota(Of("cpu", 1), holders), 1u);
  EXPECT_EQ(CountInQuota(Amounts(), holders), 1u);
  EXPECT_EQ(CountInQuota(Of("x.io/y", 0), holders), 0u);
}

// Same result as CountInQuota over all holders; every other holder whose coverage changes is
// reported.
TEST(SharedStandingTest, EqualsCountInQuotaAfterRandomChanges) {
  const cluster::ResourceId resource = cluster::InternResource("x.io/y");
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Random random(seed);
    const auto min = static_cast<int64_t>(random.Below(30));
    SharedStanding shared(resource, min);
    std::vector<std::unique_ptr<Holder>> holders;
    for (int i = 0; i < 300; ++i) {
      std::map<const Holder*, bool> covered;
      for (const auto& holder : holders) covered[holder.get()] = shared.Covers(*holder);
      std::set<const Holder*> crossed;
      const auto note = [&](const Holder& holder) { crossed.insert(&holder); };
      if (holders.empty() || random.Below(3) > 0) {
        holders.push_back(std::make_unique<Holder>(HolderOf(
            std::to_string(i), static_cast<int64_t>(random.Below(20)),
            static_cast<int32_t>(random.Below(2)), static_cast<int64_t>(random.Below(6)))));
        shared.Add(*holders.back(), note);
      } else {
        const auto gone = holders.begin() + static_cast<ptrdiff_t>(random.Below(holders.size()));
        shared.Remove(**gone, note);
        covered.erase(gone->get());
        holders.erase(gone);
      }
      std::vector<Holder*> ordered;
      for (const auto& holder : holders) {
        if (holder->charge.Get(resource) > 0) ordered.push_back(holder.get());
      }
      std::ranges::sort(ordered, StandingOrder(Of("x.io/y", min)));
      (void)CountInQuota(Of("x.io/y", min), ordered);
      for (const auto& holder : holders) {
        ASSERT_EQ(shared.Covers(*holder), !holder->over_quota) << seed << " " << i;
      }
      for (const auto& [holder, was] : covered) {
        ASSERT_EQ(shared.Covers(*holder) != was, crossed.contains(holder)) << seed << " " << i;
      }
    }
  }
}

}  // namespace
}  // namespace nos::quota
