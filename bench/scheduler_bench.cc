// Decisions per second of the scheduling engine, without an API server: each pod is decided and
// assumed before the next.
//
//   build/release/bench/nos_bench_scheduler
//
// Counter pods/s: decisions per second of one thread. Nodes have 32 cores and capacity for 110
// pods, in three zones; for the GPU workload also 8 A100, each partitioned into seven 1g slices.
#include <benchmark/benchmark.h>

#include <string>

#include "cluster/snapshot.h"
#include "gpu/catalogue.h"
#include "scheduling/engine.h"
#include "scheduling/framework.h"

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
  // Ten deployments: of 10,000 pods on 1,000 nodes, each deployment has one pod per node.
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

// Pods of two kinds alternate, beside one nominated pod per node that leaves no capacity for others
// on that node.
void BM_BesideNominated(benchmark::State& state, Workload workload) {
  const auto nodes = static_cast<int>(state.range(0));
  const Framework framework = Framework::Default();
  Engine engine(gpu::Catalogue::Builtin());
  for (int i = 0; i < nodes; ++i) {
    const auto node = MakeNode(i, false);
    Pod large = *MakePod(1'000'000 + i, kPlain);
    large.priority = 9;
    large.containers[0].requests["cpu"] = Quantity::FromValue(32);
    engine.SetNode(node);
    engine.Nominate(std::make_shared<const Pod>(large), node->meta.name);
  }
  int i = 0;
  for (auto _ : state) {
    const Decision decision = engine.Schedule(framework, MakePod(i++ % 2, workload));
    if (decision.node != nullptr) return state.SkipWithError("a pod took what was promised");
  }
}
BENCHMARK_CAPTURE(BM_BesideNominated, plain, kPlain)->Arg(1000)->Arg(5000);
BENCHMARK_CAPTURE(BM_BesideNominated, anti_affinity_by_host, kAntiAffinity)->Arg(1000);

// Each pod is of a new kind; each of its slices can be created on any node, but not all together.
void BM_SlicesThatDoNotFitTogether(benchmark::State& state) {
  const Framework framework = Framework::Default(PartitionedBy::kScheduler);
  Engine engine(gpu::Catalogue::Builtin());
  for (int i = 0; i < state.range(0); ++i) {
    Node node = *MakeNode(i, false);
    node.meta.labels["nos.nebuly.com/gpu-partitioning"] = "mig";
    node.meta.labels["nvidia.com/gpu.product"] = "NVIDIA-A100-SXM4-40GB";
    node.meta.labels["nvidia.com/gpu.count"] = "8";
    for (int gpu = 0; gpu < 8; ++gpu) {
      node.meta.annotations["nos.nebuly.com/status-layout-" + std::to_string(gpu)] = "";
    }
    engine.SetNode(std::make_shared<const Node>(std::move(node)));
  }
  int i = 0;
  for (auto _ : state) {
    Pod pod = *MakePod(i++, kPlain);
    pod.meta.labels["kind"] = std::to_string(i);
    pod.containers[0].requests["nvidia.com/mig-2g.10gb"] = Quantity::FromValue(24);
    pod.containers[0].requests["nvidia.com/mig-1g.5gb"] = Quantity::FromValue(9);
    const auto decision = engine.Schedule(framework, std::make_shared<const Pod>(pod));
    if (decision.node != nullptr) return state.SkipWithError("too many slices fit");
  }
}
BENCHMARK(BM_SlicesThatDoNotFitTogether)->Arg(1000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace nos::scheduling
