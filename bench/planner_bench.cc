// Cost of one plan, from a snapshot to the plan, single-threaded, on nodes of eight A100-40GB.
//
// The counters of every case show the number of placed pods, the upper bound, and the changes. Peak
// memory of the process (VmHWM) is a counter of the scaling cases; it belongs to one case only if
// that case runs alone: --benchmark_filter=Scaling/5000.
#include <benchmark/benchmark.h>
#include <fmt/core.h>

#include <fstream>
#include <limits>
#include <map>

#include "base/random.h"
#include "planning/planner.h"
#include "planning/remedies.h"
#include "scheduling/framework.h"

namespace nos::planning {
namespace {

using SharedPods = std::vector<std::shared_ptr<const cluster::Pod>>;

struct Cluster {
  cluster::ClusterSnapshot snapshot;
  SharedPods pending;
};

std::shared_ptr<const cluster::Node> NodeOf(int index, int cpu,
                                            const std::vector<std::string>& layouts) {
  auto node = std::make_shared<cluster::Node>();
  node->meta.name = fmt::format("node-{:05}", index);
  node->meta.labels = {{std::string(cluster::kPartitioningLabel), "mig"},
                       {std::string(cluster::kProductLabel), "NVIDIA-A100-SXM4-40GB"},
                       {std::string(cluster::kCountLabel), std::to_string(layouts.size())}};
  for (size_t g = 0; g < layouts.size(); ++g) {
    node->meta.annotations[fmt::format("{}status-layout-{}", cluster::kPrefix, g)] = layouts[g];
  }
  node->allocatable = {{"cpu", Quantity::FromValue(cpu)},
                       {"memory", Quantity::FromValue(int64_t{1} << 40)},
                       {"pods", Quantity::FromValue(256)}};
  return node;
}

std::shared_ptr<const cluster::Pod> PodOf(int index, const std::vector<std::string>& profiles,
                                          int cpu_milli, int priority = 0) {
  auto pod = std::make_shared<cluster::Pod>();
  pod->meta.ns = "team";
  pod->meta.name = fmt::format("pod-{:06}", index);
  pod->phase = "Pending";
  pod->priority = priority;
  cluster::Container& c = pod->containers.emplace_back();
  c.requests = {{"cpu", Quantity::FromMilli(cpu_milli)},
                {"memory", Quantity::FromValue(int64_t{4} << 30)}};
  for (const std::string& profile : profiles) {
    Quantity& asked = c.requests["nvidia.com/mig-" + profile];
    asked = asked + Quantity::FromValue(1);
  }
  return pod;
}

int64_t PeakMebibytes() {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word) {
    if (word != "VmHWM:") continue;
    int64_t kibibytes = 0;
    status >> kibibytes;
    return kibibytes / 1024;
  }
  return 0;
}

void Run(benchmark::State& state, const Cluster& cluster, const PlanOptions& options = {}) {
  const scheduling::Framework framework = scheduling::Framework::Default();
  Plan plan;
  for ([[maybe_unused]] auto _ : state)
    plan = MakePlan(cluster.snapshot, cluster.pending, framework, options);
  state.counters["pods"] = static_cast<double>(cluster.pending.size());
  state.counters["placed"] = plan.placed;
  state.counters["bound"] = plan.upper_bound;
  state.counters["gpus"] = plan.gpus_touched;
  state.counters["nodes"] = plan.nodes_touched;
  state.counters["created"] = plan.created;
  state.counters["destroyed"] = plan.destroyed;
  state.counters["peakMiB"] = static_cast<double>(PeakMebibytes());
}

Cluster EmptyNodes(int nodes, int cpu, const SharedPods& pods,
                   const std::vector<std::string>& layouts) {
  std::vector<std::shared_ptr<const cluster::Node>> list;
  list.reserve(nodes);
  for (int n = 0; n < nodes; ++n) list.push_back(NodeOf(n, cpu, layouts));
  return {cluster::ClusterSnapshot::Build(list, {}, gpu::Catalogue::Builtin()), pods};
}

// Half of them 1g, a quarter each 2g and 3g.
SharedPods SmallPods(int count, int cpu_milli = 1000) {
  SharedPods pods;
  const char* profiles[] = {"1g.5gb", "2g.10gb", "1g.5gb", "3g.20gb"};
  for (int i = 0; i < count; ++i) pods.push_back(PodOf(i, {profiles[i % 4]}, cpu_milli));
  return pods;
}

constexpr const char* kWhole = "7g.40gb@0:free";

// For comparison: 44 s for the planner of the Go implementation on a 2-core machine.
void BM_Fit200Nodes800Pods(benchmark::State& state) {
  Run(state, EmptyNodes(200, 64, SmallPods(800), std::vector<std::string>(8, kWhole)));
}
BENCHMARK(BM_Fit200Nodes800Pods)->Unit(benchmark::kMillisecond);

void BM_FitMixedLayouts200Nodes800Pods(benchmark::State& state) {
  const std::string partitioned = "1g.5gb@0:free,1g.5gb@1:used,2g.10gb@2:free,3g.20gb@4:free";
  Run(state, EmptyNodes(200, 64, SmallPods(800),
                        {kWhole, partitioned, "", partitioned, kWhole, "", partitioned, kWhole}));
}
BENCHMARK(BM_FitMixedLayouts200Nodes800Pods)->Unit(benchmark::kMillisecond);

// For comparison: 61 s for the planner of the Go implementation.
void BM_NoneFits400Nodes400Pods(benchmark::State& state) {
  Run(state, EmptyNodes(400, 0, SmallPods(400), std::vector<std::string>(8, kWhole)));
}
BENCHMARK(BM_NoneFits400Nodes400Pods)->Unit(benchmark::kMillisecond);

// The same with 400 different CPU requests.
void BM_NoneFits400DifferentPods(benchmark::State& state) {
  SharedPods pods;
  for (int i = 0; i < 400; ++i) pods.push_back(PodOf(i, {"1g.5gb"}, 1000 + i));
  Run(state, EmptyNodes(400, 0, pods, std::vector<std::string>(8, kWhole)));
}
BENCHMARK(BM_NoneFits400DifferentPods)->Unit(benchmark::kMillisecond);

// Their remedies, which the partitioner searches after it has carried out the plan. Each kind of
// pod takes a search over all nodes.
void BM_RemediesFor400DifferentPods(benchmark::State& state) {
  SharedPods pods;
  for (int i = 0; i < 400; ++i) pods.push_back(PodOf(i, {"1g.5gb"}, 1000 + i));
  const Cluster cluster = EmptyNodes(400, 0, pods, std::vector<std::string>(8, kWhole));
  const scheduling::Framework framework = scheduling::Framework::Default();
  const Plan plan = MakePlan(cluster.snapshot, cluster.pending, framework, {});
  size_t found = 0;
  for ([[maybe_unused]] auto _ : state) {
    Plan with = plan;
    AddRemedies(cluster.snapshot, {}, framework, {}, nullptr, with);
    found = 0;
    for (const PodOutcome& outcome : with.pods) found += outcome.remedy.empty() ? 0 : 1;
  }
  state.counters["remedies"] = static_cast<double>(found);
}
BENCHMARK(BM_RemediesFor400DifferentPods)->Unit(benchmark::kMillisecond);

// An acceptance test of the Go implementation's planner: at least 50 GPUs are needed.
void BM_Touches50Nodes200Pods(benchmark::State& state) {
  SharedPods pods;
  for (int i = 0; i < 200; ++i) {
    pods.push_back(PodOf(i, {i < 100 ? "1g.5gb" : i < 150 ? "2g.10gb" : "3g.20gb"}, 100));
  }
  Run(state, EmptyNodes(50, 64, pods, std::vector<std::string>(8, kWhole)));
}
BENCHMARK(BM_Touches50Nodes200Pods)->Unit(benchmark::kMillisecond);

// Ten pods per node.
void BM_Scaling(benchmark::State& state) {
  const int nodes = static_cast<int>(state.range(0));
  Run(state, EmptyNodes(nodes, 64, SmallPods(10 * nodes), std::vector<std::string>(8, kWhole)));
}
BENCHMARK(BM_Scaling)->Arg(625)->Arg(1250)->Arg(2500)->Arg(5000)->Unit(benchmark::kMillisecond);

// The same, half of them without slices and with 60 different CPU requests, a third of these with a
// whole GPU.
void BM_HalfWithoutSlices(benchmark::State& state) {
  const int nodes = static_cast<int>(state.range(0));
  SharedPods pods = SmallPods(5 * nodes);
  for (int i = 0; i < 5 * nodes; ++i) {
    cluster::Pod pod = *PodOf(5 * nodes + i, {}, 100 * (1 + i % 60));
    if (i % 3 == 0) pod.containers[0].requests["nvidia.com/gpu"] = Quantity::FromValue(1);
    pods.push_back(std::make_shared<const cluster::Pod>(std::move(pod)));
  }
  std::vector<std::shared_ptr<const cluster::Node>> list;
  for (int n = 0; n < nodes; ++n) {
    cluster::Node node = *NodeOf(n, 64, std::vector<std::string>(n % 2 == 0 ? 8 : 0, kWhole));
    if (n % 2 == 1) node.allocatable["nvidia.com/gpu"] = Quantity::FromValue(8);
    list.push_back(std::make_shared<const cluster::Node>(std::move(node)));
  }
  Run(state, {cluster::ClusterSnapshot::Build(list, {}, gpu::Catalogue::Builtin()), pods});
}
BENCHMARK(BM_HalfWithoutSlices)->Arg(200)->Arg(1250)->Arg(5000)->Unit(benchmark::kMillisecond);

// Nodes in use: random used and free instances, CPU partly used, pods with 40 different CPU
// requests, some with several slices. `load`: requested slots in percent of the free ones.
Cluster InUse(int nodes, int load, int priorities, uint64_t seed) {
  Random random(seed);
  const gpu::Model& model = *gpu::Catalogue::Builtin().FindByName("A100-40GB");
  const gpu::LayoutTable& table = model.layouts();
  std::vector<std::shared_ptr<const cluster::Node>> list;
  int64_t free_slots = 0;
  for (int n = 0; n < nodes; ++n) {
    std::vector<std::string> layouts;
    for (int g = 0; g < 8; ++g) {
      gpu::LayoutId layout = gpu::LayoutTable::kEmpty;
      std::string text;
      int used_slots = 0;
      for (uint64_t i = random.Below(7); i > 0; --i) {
        const auto p = static_cast<gpu::PlacementId>(random.Below(table.placements().size()));
        const gpu::LayoutId next = table.Add(layout, p);
        if (next == gpu::LayoutTable::kIllegal) continue;
        layout = next;
        const bool used = random.Chance(0.6);
        if (used) used_slots += model.profile(table.placements()[p].profile).slots;
        text += fmt::format("{}{}:{}", text.empty() ? "" : ",",
                            model.PlacementName(table.placements()[p]), used ? "used" : "free");
      }
      free_slots += 8 - used_slots;
      layouts.push_back(std::move(text));
    }
    list.push_back(NodeOf(n, 16 + static_cast<int>(random.Below(96)), layouts));
  }
  Cluster cluster{cluster::ClusterSnapshot::Build(list, {}, gpu::Catalogue::Builtin()), {}};
  const std::vector<std::vector<std::string>> wants = {
      {"1g.5gb"},  {"1g.5gb"},  {"1g.5gb"},  {"2g.10gb"},          {"2g.10gb"},
      {"3g.20gb"}, {"4g.20gb"}, {"7g.40gb"}, {"1g.5gb", "1g.5gb"}, {"3g.20gb", "3g.20gb"},
      {"1g.10gb"}};
  const int slots[] = {1, 1, 1, 2, 2, 4, 4, 8, 2, 8, 2};
  for (int64_t asked = 0, i = 0; asked * 100 < free_slots * load; ++i) {
    const size_t want = random.Below(wants.size());
    asked += slots[want];
    cluster.pending.push_back(PodOf(static_cast<int>(i), wants[want],
                                    250 * (1 + static_cast<int>(random.Below(40))),
                                    static_cast<int>(random.Below(priorities)) * 100));
  }
  return cluster;
}

void BM_InUse(benchmark::State& state) {
  Run(state, InUse(static_cast<int>(state.range(0)), static_cast<int>(state.range(1)),
                   static_cast<int>(state.range(2)), 1));
}
BENCHMARK(BM_InUse)
    ->ArgNames({"nodes", "load", "priorities"})
    ->ArgsProduct({{10, 100, 1000}, {50, 90, 150}, {1, 3}})
    ->Args({5000, 90, 3})
    ->Unit(benchmark::kMillisecond);

// Empty nodes with a demand of 1.3 times their slots, from 2g to 7g: the choice of profiles
// determines how many pods are placed. `kinds`: number of different CPU sizes of nodes.
void BM_Overload(benchmark::State& state) {
  const int nodes = static_cast<int>(state.range(0)), kinds = static_cast<int>(state.range(1));
  Random random(1);
  std::vector<std::shared_ptr<const cluster::Node>> list;
  list.reserve(nodes);
  for (int n = 0; n < nodes; ++n)
    list.push_back(NodeOf(n, 64 + n % kinds, std::vector<std::string>(8)));
  const char* wants[] = {"2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb"};
  const int slots[] = {2, 4, 4, 8};
  SharedPods pods;
  for (int asked = 0; asked * 10 < nodes * 64 * 13;) {
    const size_t want = random.Below(4);
    asked += slots[want];
    pods.push_back(PodOf(static_cast<int>(pods.size()), {wants[want]}, 1000));
  }
  Run(state, {cluster::ClusterSnapshot::Build(list, {}, gpu::Catalogue::Builtin()), pods});
}
BENCHMARK(BM_Overload)
    ->ArgNames({"nodes", "kinds"})
    ->ArgsProduct({{4, 20, 200, 5000}, {1, 8}})
    ->Unit(benchmark::kMillisecond);

// All pods are different, and more than fit.
void BM_OverloadOfDifferentPods(benchmark::State& state) {
  const int nodes = static_cast<int>(state.range(0));
  SharedPods pods;
  const char* wants[] = {"1g.5gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb"};
  for (int i = 0; i < 30 * nodes; ++i) pods.push_back(PodOf(i, {wants[i % 5]}, 1000 + i));
  Run(state, EmptyNodes(nodes, 64, pods, std::vector<std::string>(8)));
}
BENCHMARK(BM_OverloadOfDifferentPods)->Arg(20)->Arg(200)->Arg(1000)->Unit(benchmark::kMillisecond);

// The time that a plan takes beyond its time limit, which is zero here: ten pods per node, all
// different. `slices`: up to this many of each of four profiles, the most expensive case for
// packing and explaining.
void BM_TimeIsUp(benchmark::State& state) {
  const int nodes = static_cast<int>(state.range(0));
  const auto slices = static_cast<uint64_t>(state.range(1));
  Random random(5);
  SharedPods pods;
  for (int i = 0; i < 10 * nodes; ++i) {
    std::vector<std::string> profiles;
    for (const char* profile : {"1g.5gb", "1g.10gb", "2g.10gb", "3g.20gb"}) {
      profiles.insert(profiles.end(), random.Below(slices) + 1, profile);
    }
    pods.push_back(PodOf(i, profiles, 1000 + i, static_cast<int>(random.Below(20))));
  }
  PlanOptions options;
  options.out_of_time = [] { return true; };
  Run(state, EmptyNodes(nodes, 64, pods, std::vector<std::string>(8)), options);
}
BENCHMARK(BM_TimeIsUp)
    ->ArgNames({"nodes", "slices"})
    ->ArgsProduct({{100, 1000, 2000}, {2, 12}})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace nos::planning
