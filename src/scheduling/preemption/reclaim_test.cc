#include "scheduling/reclaim.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "base/random.h"
#include "scheduling/engine.h"
#include "scheduling/framework.h"
#include "scheduling/testing/build.h"

namespace nos::scheduling {
namespace {

using cluster::ElasticQuota;
using testing::NodeOf;
using testing::PodOf;
using testing::Resources;

// A small random cluster in which some quotas borrow.
class ReclaimTest : public ::testing::TestWithParam<uint64_t> {
 protected:
  using Pod = std::shared_ptr<const cluster::Pod>;

  ReclaimTest() {
    const size_t nodes = 1 + random_.Below(3);
    for (size_t i = 0; i < nodes; ++i) {
      const std::string name = "n" + std::to_string(i);
      engine_.SetNode(std::make_shared<const cluster::Node>(
          NodeOf(name,
                 {{"cpu", std::to_string(2 + random_.Below(5))},
                  {"memory", std::to_string(2 + random_.Below(5))}},
                 {{"name", name}})));
    }
    const size_t quotas = 1 + random_.Below(3);
    engine_.ChangeContext([&](cluster::ClusterContext& context) {
      for (size_t i = 0; i < quotas; ++i) {
        ElasticQuota quota;
        quota.meta.ns = "t" + std::to_string(i);
        quota.meta.name = "q";
        quota.namespaces = {quota.meta.ns};
        quota.min = Resources({{"cpu", std::to_string(random_.Below(5))}});
        if (random_.Below(2) == 0) {
          quota.min["memory"] = Quantity::FromValue(static_cast<int64_t>(random_.Below(5)));
        }
        context.quotas.Set(quota.Key(), std::make_shared<const ElasticQuota>(quota));
      }
    });
    for (size_t i = random_.Below(10); i > 0; --i) {
      const Pod pod = RandomPod();
      const Decision decision = engine_.Schedule(framework_, pod);
      if (decision.node == nullptr) continue;
      engine_.Assume(pod, decision.node->node->meta.name);
      running_.push_back(pod);
    }
  }

  Pod RandomPod() {
    auto pod = std::make_shared<cluster::Pod>(
        PodOf("p" + std::to_string(++made_), {{"cpu", std::to_string(1 + random_.Below(3))},
                                              {"memory", std::to_string(random_.Below(3))}}));
    pod->meta.ns = "t" + std::to_string(random_.Below(4));
    pod->meta.uid = pod->meta.name;
    pod->meta.created = Time(std::chrono::seconds(made_));
    pod->priority = static_cast<int32_t>(random_.Below(3));
    if (random_.Below(3) == 0)
      pod->node_selector = {{"name", "n" + std::to_string(random_.Below(3))}};
    return pod;
  }

  std::optional<Preemption> Find(const Pod& pod) {
    Reclaim reclaim(
        engine_.ledger(), [&](std::string_view) { return engine_.BalanceFor(*pod); }, options_,
        [](const Pod& victim) { return EvictionUnit{victim}; });
    return reclaim.Find(framework_, engine_.snapshot(), pod);
  }

  // True if the pod fits a node without the victims.
  bool FitsWithout(const std::vector<Pod>& victims, const Pod& pod) {
    std::vector<std::pair<Pod, std::string>> away;
    for (const Pod& victim : victims) {
      away.emplace_back(victim, engine_.FindPlaced(victim->Key())->node);
      engine_.Forget(victim->Key());
    }
    const bool fits = engine_.Schedule(framework_, pod).node != nullptr;
    for (const auto& [victim, node] : away) engine_.Assume(victim, node);
    return fits;
  }

  // True if each victim is allowed given the victims before it. `node`: where the pod goes, and may
  // evict unprotected pods, too.
  bool MayTakeAll(const std::vector<Pod>& victims, const Pod& pod, const std::string& node = "") {
    quota::Ledger& ledger = engine_.ledger();
    const quota::Balance& balance = ledger.balance();
    const auto holding = [&](const Pod& of) {
      const auto* charge = ledger.ChargeOf(of->Key());
      return quota::Holding{balance.AccountOf(of->meta.ns),
                            charge != nullptr ? *charge : quota::ChargeOf(*of, nullptr, {}),
                            of->priority, ledger.IsOverQuota(of->Key())};
    };
    std::vector<size_t> order(victims.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    do {
      quota::Entitlement claim(balance, holding(pod), options_.reclaim);
      const bool all = std::ranges::all_of(order, [&](size_t i) {
        const quota::Holding victim = holding(victims[i]);
        const bool here = engine_.FindPlaced(victims[i]->Key())->node == node;
        if (!claim.MayTake(victim) && !(here && claim.MayClear(victim))) return false;
        claim.Take(victim);
        return true;
      });
      if (all) return true;
    } while (std::ranges::next_permutation(order).found);
    return false;
  }

  // Size of the smallest allowed set that helps.
  std::optional<size_t> BruteForce(const Pod& pod) {
    std::optional<size_t> fewest;
    for (uint32_t set = 1; set < (1U << running_.size()); ++set) {
      std::vector<Pod> victims;
      for (size_t i = 0; i < running_.size(); ++i) {
        if ((set >> i & 1U) != 0) victims.push_back(running_[i]);
      }
      if (victims.size() > 4 || (fewest && victims.size() >= *fewest)) continue;
      if (FitsWithout(victims, pod) && MayTakeAll(victims, pod)) fewest = victims.size();
    }
    return fewest;
  }

  Random random_{GetParam()};
  Framework framework_ = Framework::Default();
  QuotaOptions options_;
  Engine engine_{gpu::Catalogue::Builtin()};
  std::vector<Pod> running_;
  int made_ = 0;
};

// All victims are allowed, they are enough, and none could be left out. If no set is found, no
// allowed set helps.
TEST_P(ReclaimTest, EvictsOnlyAllowedAndNeededPods) {
  for (int i = 0; i < 5; ++i) {
    const Pod pod = RandomPod();
    const bool has_quota = engine_.ledger().balance().AccountOf(pod->meta.ns).has_value();
    if (!has_quota || engine_.Schedule(framework_, pod).node != nullptr) continue;
    const auto found = Find(pod);
    const auto best = BruteForce(pod);
    if (!found) {
      EXPECT_FALSE(best) << "seed " << GetParam() << ": " << *best << " would do";
      continue;
    }
    EXPECT_TRUE(MayTakeAll(found->victims, pod, found->node));
    EXPECT_TRUE(!best || MayTakeAll(found->victims, pod)) << "protected pods first";
    EXPECT_TRUE(FitsWithout(found->victims, pod));
    EXPECT_TRUE(best != 1 || found->victims.size() == 1) << "seed " << GetParam();
    for (size_t spared = 0; spared < found->victims.size(); ++spared) {
      std::vector<Pod> others = found->victims;
      others.erase(others.begin() + static_cast<std::ptrdiff_t>(spared));
      EXPECT_FALSE(MayTakeAll(others, pod, found->node) && FitsWithout(others, pod))
          << "an unneeded victim";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, ReclaimTest, ::testing::Range<uint64_t>(1, 301));
// Covers Reclaim::SpareOwn: a pod of the claimant's own quota is spared because other victims free
// enough.
INSTANTIATE_TEST_SUITE_P(Rare, ReclaimTest, ::testing::Values<uint64_t>(54613));

// Quota a has the given min of CPU, c has 2, and b has none; n0 and n1 have 4 CPUs each.
class ReclaimOwnTest : public ::testing::Test {
 protected:
  using Pod = std::shared_ptr<cluster::Pod>;

  void Guarantee(const char* cpu) {
    engine_.ChangeContext([&](cluster::ClusterContext& context) {
      for (const auto& [ns, min] :
           {std::pair("a", cpu), std::pair("b", "0"), std::pair("c", "2")}) {
        ElasticQuota quota;
        quota.meta.ns = ns;
        quota.meta.name = "q";
        quota.namespaces = {ns};
        quota.min = Resources({{"cpu", min}});
        context.quotas.Set(quota.Key(), std::make_shared<const ElasticQuota>(quota));
      }
    });
    for (const char* name : {"n0", "n1"}) {
      engine_.SetNode(
          std::make_shared<const cluster::Node>(NodeOf(name, {{"cpu", "4"}}, {{"name", name}})));
    }
  }
  static Pod Make(const char* ns, const char* name, const char* cpu, int priority,
                  const char* node) {
    auto made = std::make_shared<cluster::Pod>(PodOf(name, {{"cpu", cpu}}));
    made->meta.ns = ns;
    made->meta.uid = made->meta.name;
    made->priority = priority;
    made->node_selector = {{"name", node}};
    return made;
  }
  Pod Runs(const char* ns, const char* name, const char* cpu, int priority, const char* node) {
    Pod pod = Make(ns, name, cpu, priority, node);
    engine_.Assume(pod, node);
    return pod;
  }
  std::optional<Preemption> Find(const Pod& asks) {
    Reclaim reclaim(
        engine_.ledger(), [&](std::string_view) { return engine_.BalanceFor(*asks); }, options_,
        [](const std::shared_ptr<const cluster::Pod>& victim) { return EvictionUnit{victim}; });
    return reclaim.Find(framework_, engine_.snapshot(), asks);
  }

  const Framework framework_ = Framework::Default();
  const QuotaOptions options_;
  Engine engine_{gpu::Catalogue::Builtin()};
};

// A less important pod of the same quota on another node uses min, and a pod of another quota uses
// the capacity.
TEST_F(ReclaimOwnTest, EvictsLowerPriorityPodsOfOwnQuotaOnAnyNode) {
  Guarantee("4");
  const Pod lesser = Runs("a", "lesser", "4", 0, "n1"), borrower = Runs("b", "b", "4", 9, "n0");
  const Pod asks = Make("a", "asks", "4", 5, "n0");
  const auto found = Find(asks);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->node, "n0");
  ASSERT_EQ(found->victims.size(), 2u);
  EXPECT_EQ(found->victims[0], borrower);
  EXPECT_EQ(found->victims[1], lesser);
  lesser->priority = 5;
  EXPECT_FALSE(Find(asks)) << "equal priority";
}

// Quota owner has the given min, and tenant has a min of 0 of the same resources. Node n1 has a GPU
// of 40 GB and 4 CPUs.
class ReclaimFromTenantTest : public ::testing::Test {
 protected:
  using Pod = std::shared_ptr<cluster::Pod>;

  void Guarantee(testing::Amounts mins) {
    engine_.ChangeContext([&](cluster::ClusterContext& context) {
      for (const std::string ns : {"owner", "tenant"}) {
        ElasticQuota quota;
        quota.meta.ns = ns;
        quota.meta.name = "q";
        quota.namespaces = {ns};
        quota.min = Resources(mins);
        if (ns == "tenant") {
          for (auto& [resource, min] : quota.min) min = Quantity::FromValue(0);
        }
        context.quotas.Set(quota.Key(), std::make_shared<const ElasticQuota>(quota));
      }
    });
    engine_.SetNode(std::make_shared<const cluster::Node>(
        NodeOf("n1", {{"cpu", "4"}, {"nvidia.com/gpu", "1"}},
               {{"kubernetes.io/hostname", "n1"}, {"nvidia.com/gpu.memory", "40960"}})));
  }
  static Pod Make(const char* ns, const char* name, testing::Amounts asks) {
    auto made = std::make_shared<cluster::Pod>(PodOf(name, asks));
    made->meta.ns = ns;
    made->meta.uid = made->meta.name;
    if (made->meta.ns == "owner") made->meta.labels = {{"app", "owner"}};
    return made;
  }
  Pod Runs(const char* ns, const char* name, testing::Amounts asks) {
    Pod pod = Make(ns, name, asks);
    engine_.Assume(pod, "n1");
    return pod;
  }
  // A pod that keeps the owner's pods off its node.
  Pod Repels(const char* name, testing::Amounts asks = {}) {
    Pod pod = Make("tenant", name, asks);
    cluster::PodAffinityTerm term;
    term.topology_key = "kubernetes.io/hostname";
    term.namespaces = {"owner"};
    term.selector = cluster::LabelSelector{};
    term.selector->match_labels = {{"app", "owner"}};
    pod->pod_anti_affinity.required = {term};
    engine_.Assume(pod, "n1");
    return pod;
  }
  // Names of the victims, sorted; "none": there is no plan.
  std::string Victims(const Pod& asks) {
    Reclaim reclaim(
        engine_.ledger(), [&](std::string_view) { return engine_.BalanceFor(*asks); }, options_,
        [](const std::shared_ptr<const cluster::Pod>& victim) { return EvictionUnit{victim}; });
    const auto found = reclaim.Find(framework_, engine_.snapshot(), asks);
    if (!found) return "none";
    std::set<std::string> names;
    for (const auto& victim : found->victims) names.insert(victim->meta.name);
    std::string all;
    for (const std::string& name : names) all += (all.empty() ? "" : " ") + name;
    return all;
  }

  const Framework framework_ = Framework::Default();
  const QuotaOptions options_;
  Engine engine_{gpu::Catalogue::Builtin()};
};

TEST_F(ReclaimFromTenantTest, EvictsPodWithoutRequestsThatRepelsOwner) {
  Guarantee({{"nvidia.com/gpu", "1"}, {"cpu", "1"}});
  (void)Runs("tenant", "borrower", {{"nvidia.com/gpu", "1"}});
  (void)Repels("repels");
  (void)Runs("tenant", "bystander", {});
  const Pod asks = Make("owner", "asks", {{"nvidia.com/gpu", "1"}, {"cpu", "1"}});
  EXPECT_EQ(Victims(asks), "borrower repels");
  engine_.Forget("tenant/borrower");
  EXPECT_EQ(Victims(asks), "repels");
  const Pod beyond = Make("owner", "beyond", {{"nvidia.com/gpu", "1"}, {"cpu", "2"}});
  EXPECT_EQ(Victims(beyond), "none") << "min does not cover it";
}

TEST_F(ReclaimFromTenantTest, EvictsPodWithCoresThatNoQuotaNames) {
  Guarantee({{"nos.nebuly.com/gpu-memory", "40"}});
  (void)Runs("tenant", "borrower", {{"nvidia.com/gpu", "1"}});
  (void)Runs("tenant", "cores", {{"cpu", "3"}});
  (void)Runs("tenant", "bystander", {{"cpu", "1"}});
  const Pod asks = Make("owner", "asks", {{"nvidia.com/gpu", "1"}, {"cpu", "3"}});
  EXPECT_EQ(Victims(asks), "borrower cores");
}

TEST_F(ReclaimFromTenantTest, SparesPodsThatTheirQuotaGuarantees) {
  Guarantee({{"nvidia.com/gpu", "1"}});
  engine_.ChangeContext([](cluster::ClusterContext& context) {
    ElasticQuota quota = *context.quotas.Find("tenant/q");
    quota.min = Resources({{"nvidia.com/gpu", "0"}, {"cpu", "2"}});
    context.quotas.Set(quota.Key(), std::make_shared<const ElasticQuota>(quota));
  });
  (void)Runs("tenant", "borrower", {{"nvidia.com/gpu", "1"}});
  (void)Repels("repels", {{"cpu", "2"}});
  EXPECT_EQ(Victims(Make("owner", "asks", {{"nvidia.com/gpu", "1"}})), "none");
  (void)Runs("tenant", "more", {{"cpu", "1"}});
  EXPECT_EQ(Victims(Make("owner", "asks", {{"nvidia.com/gpu", "1"}})), "borrower repels")
      << "the tenant uses more cores than its min";
}

}  // namespace
}  // namespace nos::scheduling
