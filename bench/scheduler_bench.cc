// Decisions per second of the scheduling engine, without an API server: each pod is decided and
// assumed before the next.
//
//   build/release/bench/nos_bench_scheduler
//
// Counter pods/s: decisions per second of one thread. Nodes have 32 cores and 110 pod places, in
// three zones; of the GPU workload, 8 A100 each, cut into seven 1g slices.
#include <benchmark/benchmark.h>

#include <string>

#include "cluster/snapshot.h"
#include "gpu/catalogue.h"
#include "scheduling/engine.h"

namespace nos::scheduling {
namespace {

using cluster::Node;
using cluster::Pod;

constexpr int kZones = 3;

std::shared_ptr<const Node> MakeNode(int i, bool slices) {
  Node node;
  node.meta.name = "node-" + std::to_string(100'000 + i);
  node.meta.labels = {{"kubernetes.io/hostname", node.meta.name},
                      {"topology.kubernetes.io/zone", "zone-" + std::to_string(i % kZones)}};
  node.allocatable = {{"cpu", Quantity::FromValue(32)},
                      {"memory", Quantity::FromValue(int64_t{256} << 30)},
                      {"pods", Quantity::FromValue(110)}};
  if (slices) node.allocatable["nvidia.com/mig-1g.5gb"] = Quantity::FromValue(56);
  return std::make_shared<const Node>(std::move(node));
}

enum Workload { kPlain, kSlices, kManyKinds, kAntiAffinity, kSpread, kZoneSpread };

std::shared_ptr<const Pod> MakePod(int i, Workload workload) {
  Pod pod;
  pod.meta.ns = "default";
  pod.meta.name = "pod-" + std::to_string(i);
  pod.meta.uid = pod.meta.name;
  pod.scheduler_name = "nos-scheduler";
  pod.phase = "Pending";
  pod.containers.resize(1);
  pod.containers[0].name = "main";
  pod.containers[0].image = "registry.example/app:1";
  auto& requests = pod.containers[0].requests;
  requests = {{"cpu", Quantity::FromMilli(100)}, {"memory", Quantity::FromValue(500 << 20)}};
  // As many deployments as keep a pod for each node.
  const std::string app = "app-" + std::to_string(i % 10);
  pod.meta.labels = {{"app", app}};
  const cluster::LabelSelector same{{{"app", app}}, {}};
  if (workload == kSlices) requests["nvidia.com/mig-1g.5gb"] = Quantity::FromValue(1);
  if (workload == kManyKinds) requests["cpu"] = Quantity::FromMilli(100 + i % 1000);
  if (workload == kAntiAffinity) {
    pod.pod_anti_affinity.required.push_back({same, {}, {}, "kubernetes.io/hostname"});
  }
  if (workload == kSpread || workload == kZoneSpread) {
    const std::string key =
        workload == kSpread ? "kubernetes.io/hostname" : "topology.kubernetes.io/zone";
    pod.spread.push_back(
        {workload == kSpread ? 1 : 5, key, "DoNotSchedule", same, {}, "Honor", "Ignore", {}});
  }
  return std::make_shared<const Pod>(std::move(pod));
}

void BM_Decisions(benchmark::State& state, Workload workload) {
  const auto nodes = static_cast<int>(state.range(0));
  const auto count = static_cast<int>(state.range(1));
  const Framework framework = Framework::Default();
  std::vector<std::shared_ptr<const Pod>> pods;
  for (int i = 0; i < count; ++i) pods.push_back(MakePod(i, workload));
  int64_t decided = 0;
  for (auto _ : state) {
    state.PauseTiming();
    Engine engine(gpu::Catalogue::Builtin());
    for (int i = 0; i < nodes; ++i) engine.SetNode(MakeNode(i, workload == kSlices));
    state.ResumeTiming();
    for (const auto& pod : pods) {
      const Decision decision = engine.Schedule(framework, pod);
      if (decision.node == nullptr) return state.SkipWithError("a pod found no node");
      engine.Assume(pod, decision.node->node->meta.name);
      ++decided;
    }
  }
  state.counters["pods/s"] =
      benchmark::Counter(static_cast<double>(decided), benchmark::Counter::kIsRate);
}

#define NOS_DECISIONS(name, workload)             \
  BENCHMARK_CAPTURE(BM_Decisions, name, workload) \
      ->Args({1000, 10000})                       \
      ->Args({5000, 10000})                       \
      ->Unit(benchmark::kMillisecond)             \
      ->UseRealTime()
NOS_DECISIONS(plain, kPlain);
NOS_DECISIONS(slices, kSlices);
NOS_DECISIONS(thousand_kinds, kManyKinds);
NOS_DECISIONS(anti_affinity_by_host, kAntiAffinity);
NOS_DECISIONS(spread_by_host, kSpread);
NOS_DECISIONS(spread_by_zone, kZoneSpread);
#undef NOS_DECISIONS

}  // namespace
}  // namespace nos::scheduling
