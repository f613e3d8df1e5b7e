// Cost of choosing victims for a quota's guaranteed resources: 5,000 nodes, 1,000 quotas, 50,000
// pods, all capacity used and half of it borrowed.
#include <benchmark/benchmark.h>

#include <string>

#include "gpu/catalogue.h"
#include "scheduling/engine.h"
#include "scheduling/framework.h"
#include "scheduling/reclaim.h"

namespace nos::scheduling {
namespace {

constexpr int kNodes = 5000, kQuotas = 1000, kPods = 50'000;
constexpr int64_t kCpuOfNode = 10;

std::shared_ptr<const cluster::Pod> PodOf(int i, const std::string& ns, int64_t cpu = 1) {
  auto made = std::make_shared<cluster::Pod>();
  made->meta.ns = ns;
  made->meta.name = "pod-" + std::to_string(i);
  made->meta.uid = made->meta.name;
  made->meta.created = Time(std::chrono::seconds(i));
  made->containers.emplace_back().requests = {{"cpu", Quantity::FromValue(cpu)},
                                              {"memory", Quantity::FromValue(int64_t{1} << 30)}};
  return made;
}

// Half of the quotas use twice their guarantee, the others nothing. `spare`: number of nodes
// without pods.
void Fill(Engine& engine, int spare) {
  for (int i = 0; i < kNodes + spare; ++i) {
    auto node = std::make_shared<cluster::Node>();
    node->meta.name = "node-" + std::to_string(100'000 + i);
    node->allocatable = {{"cpu", Quantity::FromValue(kCpuOfNode)},
                         {"memory", Quantity::FromValue(int64_t{256} << 30)},
                         {"pods", Quantity::FromValue(110)}};
    engine.SetNode(std::move(node));
  }
  engine.ChangeContext([&](cluster::ClusterContext& context) {
    for (int i = 0; i < kQuotas; ++i) {
      auto quota = std::make_shared<cluster::ElasticQuota>();
      quota->meta.ns = "team-" + std::to_string(i);
      quota->meta.name = "quota";
      quota->namespaces = {quota->meta.ns};
      quota->min = {{"cpu", Quantity::FromValue(kPods / kQuotas)}};
      const std::string key = quota->Key();
      context.quotas.Set(key, std::move(quota));
    }
  });
  for (int i = 0; i < kPods; ++i) {
    engine.Assume(PodOf(i, "team-" + std::to_string(i % (kQuotas / 2))),
                  "node-" + std::to_string(100'000 + i % kNodes));
  }
}

void Ask(benchmark::State& state, Engine& engine, const Framework& framework,
         const std::shared_ptr<const cluster::Pod>& pod) {
  const auto unit_of = [](const auto& one) { return EvictionUnit{one}; };
  size_t victims = 0;
  for (auto _ : state) {
    Reclaim reclaim(
        engine.ledger(), [&](std::string_view) { return engine.BalanceFor(*pod); },
        framework.quotas()->options(), unit_of);
    const auto found = reclaim.Find(framework, engine.snapshot(), pod);
    victims = found ? found->victims.size() : 0;
  }
  state.counters["victims"] = static_cast<double>(victims);
}

void Decide(benchmark::State& state) {
  const Framework framework = Framework::Default();
  Engine engine(gpu::Catalogue::Builtin());
  Fill(engine, static_cast<int>(state.range(0)));
  Ask(state, engine, framework,
      PodOf(kPods, "team-" + std::to_string(kQuotas - 1), state.range(1)));
}
BENCHMARK(Decide)
    ->Args({0, 1})
    ->Args({0, 6})
    ->Args({1, 1})
    ->Args({1, 6})
    ->ArgNames({"spare", "cpu"})
    ->Unit(benchmark::kMillisecond);

// Nodes of eight whole GPUs, four of which are borrowed on each.
void DecideGpus(benchmark::State& state) {
  constexpr int kGpus = 8;
  const Framework framework = Framework::Default();
  Engine engine(gpu::Catalogue::Builtin());
  const auto gpus = [](int64_t count) {
    return cluster::ResourceList{{"nvidia.com/gpu", Quantity::FromValue(count)}};
  };
  const auto pod_of = [&](int i, const std::string& ns, int64_t count) {
    auto pod = std::make_shared<cluster::Pod>(*PodOf(i, ns));
    pod->containers.back().requests = gpus(count);
    return pod;
  };
  engine.ChangeContext([&](cluster::ClusterContext& context) {
    for (const std::string ns : {"a", "b"}) {
      auto quota = std::make_shared<cluster::ElasticQuota>();
      quota->meta.ns = ns;
      quota->meta.name = "quota";
      quota->namespaces = {ns};
      quota->min = gpus(kNodes * kGpus / 2);
      context.quotas.Set(quota->Key(), quota);
    }
  });
  for (int i = 0; i < kNodes; ++i) {
    auto node = std::make_shared<cluster::Node>();
    node->meta.name = "node-" + std::to_string(100'000 + i);
    node->allocatable = gpus(kGpus);
    node->allocatable["pods"] = Quantity::FromValue(110);
    engine.SetNode(std::move(node));
  }
  for (int i = 0; i < kNodes * kGpus; ++i) {
    engine.Assume(pod_of(i, "a", 1), "node-" + std::to_string(100'000 + i % kNodes));
  }
  Ask(state, engine, framework, pod_of(kNodes * kGpus, "b", state.range(0)));
}
BENCHMARK(DecideGpus)->Arg(1)->Arg(4)->Arg(8)->ArgName("gpus")->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace nos::scheduling
