// The engine's quota accounting equals a recount after random changes.
#include <gtest/gtest.h>

#include <map>

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

class EngineQuotaTest : public ::testing::TestWithParam<uint64_t> {
 protected:
  using Pod = std::shared_ptr<const cluster::Pod>;

  std::string Below(uint64_t most) { return std::to_string(random_.Below(most)); }

  void SetNode() {
    cluster::Node node = NodeOf("n" + Below(4), {{"cpu", "8"}, {"nvidia.com/gpu", "4"}});
    if (random_.Below(3) > 0) {
      node.meta.labels["nvidia.com/gpu.memory"] = random_.Below(2) == 0 ? "40960" : "81920";
    }
    engine_.SetNode(std::make_shared<const cluster::Node>(std::move(node)));
  }
  Pod NewPod() {
    auto pod = std::make_shared<cluster::Pod>(
        PodOf("p" + Below(12),
              {{"cpu", std::to_string(1 + random_.Below(2))}, {"nvidia.com/gpu", Below(2)}}));
    pod->meta.ns = "t" + Below(4);
    pod->meta.uid = "u" + Below(3);
    pod->priority = static_cast<int32_t>(random_.Below(2));
    return pod;
  }
  void ChangeQuota() {
    ElasticQuota quota;
    quota.meta.ns = "t" + Below(3);
    quota.meta.name = "q";
    quota.composite = random_.Below(3) == 0;
    quota.namespaces = {quota.meta.ns};
    if (quota.composite) quota.namespaces.push_back("t" + Below(4));
    quota.min = Resources({{"cpu", Below(6)}, {"nos.nebuly.com/gpu-memory", Below(200)}});
    if (random_.Below(2) == 0)
      quota.max = Resources({{"cpu", std::to_string(6 + random_.Below(4))}});
    const std::string key = quota.Key();
    engine_.ChangeContext([&](cluster::ClusterContext& context) {
      auto& table = quota.composite ? context.composite_quotas : context.quotas;
      table.Set(key, random_.Below(3) == 0 ? nullptr : std::make_shared<const ElasticQuota>(quota));
    });
  }
  void Event() {
    const Pod pod = NewPod();
    switch (random_.Below(9)) {
      case 0:
        return SetNode();
      case 1:
        return engine_.RemoveNode("n" + Below(4));
      case 2:
        return ChangeQuota();
      case 3:
        return engine_.RemovePod(pod->Key());
      case 4:
        return engine_.Forget(pod->Key());
      case 5: {
        auto bound = std::make_shared<cluster::Pod>(*pod);
        bound->node_name = random_.Below(4) == 0 ? "" : "n" + Below(5);
        bound->phase = random_.Below(5) == 0 ? "Succeeded" : "Running";
        return engine_.SetPod(bound);
      }
      case 6:
        return engine_.Nominate(pod, random_.Below(2) == 0 ? "" : "n" + Below(4));
      default:
        return Decide(pod);
    }
  }
  // Decides on the pod and checks that it exceeds no max and takes no nominated capacity.
  void Decide(const Pod& pod) {
    if (engine_.FindPlaced(pod->Key()) != nullptr) return;
    const Decision decision = engine_.Schedule(framework_, pod);
    if (decision.node == nullptr) return;
    const auto account = engine_.ledger().balance().AccountOf(pod->meta.ns);
    if (account) {
      const auto charge = quota::ChargeOf(*pod, decision.node->node.get(), {});
      EXPECT_FALSE(engine_.ledger().balance().WhyNot(*account, charge));
    }
    engine_.Assume(pod, decision.node->node->meta.name);
  }
  void ExpectRecount() {
    quota::Ledger fresh;
    fresh.SetQuotas(quota::QuotasOf(engine_.snapshot().context()));
    for (int ns = 0; ns < 4; ++ns) {
      for (int name = 0; name < 12; ++name) {
        const auto* placed =
            engine_.FindPlaced("t" + std::to_string(ns) + "/p" + std::to_string(name));
        if (placed == nullptr) continue;
        const cluster::NodeInfo* node = engine_.snapshot().Find(placed->node);
        fresh.SetPod(
            placed->pod,
            quota::ChargeOf(*placed->pod, node == nullptr ? nullptr : node->node.get(), {}));
      }
    }
    const quota::Balance& balance = engine_.ledger().balance();
    ASSERT_EQ(balance.size(), fresh.balance().size());
    for (size_t account = 0; account < balance.size(); ++account) {
      EXPECT_EQ(quota::ListOf(balance.used(account)), quota::ListOf(fresh.balance().used(account)));
    }
  }

  Random random_{GetParam()};
  Framework framework_ = Framework::Default();
  Engine engine_{gpu::Catalogue::Builtin()};
};

TEST_P(EngineQuotaTest, QuotaUseEqualsRecountAfterRandomEvents) {
  for (int step = 0; step < 300; ++step) {
    Event();
    ExpectRecount();
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, EngineQuotaTest, ::testing::Range<uint64_t>(1, 31));

}  // namespace
}  // namespace nos::scheduling
