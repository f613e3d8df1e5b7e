// Cost of decisions about new nodes: 10,000 pods that no plan could place, 20 node groups, beside
// 5,000 full nodes; and of choosing removable nodes among 5,000. Single-threaded.
//
// The counters of every case show the number of served pods, of new nodes, and their cost per hour.
#include <benchmark/benchmark.h>
#include <fmt/core.h>

#include <functional>
#include <map>

#include "planning/growth.h"
#include "planning/shrink.h"
#include "scheduling/framework.h"

namespace nos::planning {
namespace {

using SharedPods = std::vector<std::shared_ptr<const cluster::Pod>>;

std::shared_ptr<const cluster::Node> NodeOf(int index, const std::string& layout) {
  auto node = std::make_shared<cluster::Node>();
  node->meta.name = fmt::format("node-{:05}", index);
  node->meta.labels = {{std::string(cluster::kPartitioningLabel), "mig"},
                       {std::string(cluster::kProductLabel), "NVIDIA-A100-SXM4-40GB"},
                       {std::string(cluster::kCountLabel), "8"},
                       {"pool", fmt::format("pool-{}", index % 20)}};
  for (int g = 0; g < 8; ++g) {
    node->meta.annotations[fmt::format("{}status-layout-{}", cluster::kPrefix, g)] = layout;
  }
  node->allocatable = {{"cpu", Quantity::FromValue(64)},
                       {"memory", Quantity::FromValue(int64_t{1} << 40)},
                       {"pods", Quantity::FromValue(256)}};
  return node;
}

std::shared_ptr<cluster::Pod> PodOf(int index, const std::string& profile, int cpu_milli) {
  auto pod = std::make_shared<cluster::Pod>();
  pod->meta.ns = "team";
  pod->meta.name = fmt::format("pod-{:06}", index);
  pod->meta.labels = {{"app", fmt::format("app-{}", index % 50)}};
  pod->phase = "Pending";
  cluster::Container& container = pod->containers.emplace_back();
  container.requests = {{"cpu", Quantity::FromMilli(cpu_milli)},
                        {"memory", Quantity::FromValue(int64_t{4} << 30)}};
  if (!profile.empty()) {
    container.requests["nvidia.com/mig-" + profile] = Quantity::FromValue(1);
  }
  return pod;
}

// Twenty kinds of node: three GPU models, two to eight GPUs, different amounts of CPU for each, and
// some without GPUs.
std::vector<NodePoolState> Pools(int max) {
  const struct {
    const char* model;
    int price;  // of one GPU
  } models[] = {{"A100-40GB", 3000}, {"A100-80GB", 4000}, {"H100-80GB", 8000}, {"A30", 900}};
  std::vector<NodePoolState> pools;
  for (int p = 0; p < 20; ++p) {
    auto pool = std::make_shared<cluster::NodePool>();
    pool->meta.name = fmt::format("pool-{}", p);
    const auto& [model, price] = models[p % 4];
    const int gpus = p < 16 ? 2 << (p / 4 % 3) : 0;
    const int cpu = (gpus == 0 ? 16 : 12 * gpus) * (1 + p / 12);
    if (gpus > 0) {
      pool->gpu.model = model;
      pool->gpu.count = gpus;
      pool->gpu.partitioning = cluster::SharingMode::kMig;
    }
    pool->resources = {{"cpu", Quantity::FromValue(cpu)},
                       {"memory", Quantity::FromValue(int64_t{cpu} << 33)},
                       {"pods", Quantity::FromValue(110)}};
    pool->labels = pool->node_selector = {{"pool", pool->meta.name}};
    pool->max = max;
    pool->price = Quantity::FromMilli(gpus * price + cpu * 40);
    pools.push_back({std::move(pool), 0, 0, ""});
  }
  return pools;
}

cluster::ClusterSnapshot FullCluster(const std::string& layout, int pods_each) {
  std::vector<std::shared_ptr<const cluster::Node>> nodes;
  SharedPods running;
  for (int n = 0; n < 5000; ++n) {
    nodes.push_back(NodeOf(n, layout));
    for (int i = 0; i < pods_each; ++i) {
      auto pod = PodOf(1'000'000 + n * 8 + i, layout.substr(0, layout.find('@')), 7000);
      pod->node_name = nodes.back()->meta.name;
      pod->phase = "Running";
      pod->meta.owners = {{"apps/v1", "ReplicaSet", "set", "uid", true}};
      running.push_back(std::move(pod));
    }
  }
  auto snapshot = cluster::ClusterSnapshot::Build(nodes, running, gpu::Catalogue::Builtin());
  snapshot.ChangeContext();
  return snapshot;
}

void Grow(benchmark::State& state, const std::function<SharedPods(PlanOptions&)>& pods_of,
          int max = 1000, const std::string& layout = "7g.40gb@0:used") {
  const cluster::ClusterSnapshot snapshot = FullCluster(layout, 8);
  PlanOptions options;
  const SharedPods pods = pods_of(options);
  const std::vector<NodePoolState> pools = Pools(max);
  const scheduling::Framework framework = scheduling::Framework::Default();
  GrowthPlan plan;
  for ([[maybe_unused]] auto _ : state) {
    plan = PlanGrowth(snapshot, pods, pools, framework, options);
  }
  state.counters["pods"] = static_cast<double>(pods.size());
  state.counters["served"] = plan.served;
  state.counters["nodes"] = static_cast<double>(plan.nodes.size());
  state.counters["price"] = static_cast<double>(plan.milli_price) / 1000;
}

constexpr const char* kProfiles[] = {"1g.5gb",  "2g.10gb", "3g.20gb", "7g.40gb", "1g.10gb",
                                     "3g.40gb", "1g.6gb",  "4g.24gb", "",        "7g.80gb"};

SharedPods FewKinds(PlanOptions&) {
  SharedPods pods;
  for (int i = 0; i < 10'000; ++i) {
    auto pod = PodOf(i, kProfiles[i % 10], 1000 * (1 + i % 4));
    pod->priority = i % 3;
    pods.push_back(std::move(pod));
  }
  return pods;
}

SharedPods NoTwoAlike(PlanOptions&) {
  SharedPods pods;
  for (int i = 0; i < 10'000; ++i) pods.push_back(PodOf(i, kProfiles[i % 10], 500 + i));
  return pods;
}

SharedPods Gangs(PlanOptions& options) {
  SharedPods pods;
  for (int g = 0; g < 250; ++g) {
    Gang gang{fmt::format("gang-{}", g), 40, 0, {}, ""};
    for (int i = 0; i < 40; ++i) {
      gang.members.push_back(static_cast<int>(pods.size()));
      pods.push_back(PodOf(40 * g + i, kProfiles[g % 8], 1000 * (1 + g % 4)));
    }
    options.gangs.push_back(std::move(gang));
  }
  return pods;
}

// Each pod excludes its own kind by a filter that looks at other pods.
SharedPods KeptApart(PlanOptions&) {
  SharedPods pods;
  for (int i = 0; i < 500; ++i) {
    auto pod = PodOf(i, kProfiles[i % 4], 1000);
    cluster::PodAffinityTerm term;
    term.selector.emplace().match_labels = pod->meta.labels;
    term.topology_key = "kubernetes.io/hostname";
    pod->pod_anti_affinity.required = {term};
    pods.push_back(std::move(pod));
  }
  return pods;
}

void BM_FewKinds(benchmark::State& state) { Grow(state, FewKinds); }
BENCHMARK(BM_FewKinds)->Unit(benchmark::kMillisecond);
void BM_NoTwoAlike(benchmark::State& state) { Grow(state, NoTwoAlike); }
BENCHMARK(BM_NoTwoAlike)->Unit(benchmark::kMillisecond);
void BM_Gangs(benchmark::State& state) { Grow(state, Gangs); }
BENCHMARK(BM_Gangs)->Unit(benchmark::kMillisecond);
// Each existing node has capacity for some members of a gang.
void BM_GangsBeside(benchmark::State& state) { Grow(state, Gangs, 1000, "3g.20gb@0:used"); }
BENCHMARK(BM_GangsBeside)->Unit(benchmark::kMillisecond);
void BM_KeptApart(benchmark::State& state) { Grow(state, KeptApart); }
BENCHMARK(BM_KeptApart)->Unit(benchmark::kMillisecond);
// Node groups that are too small for all pods.
void BM_TooFewNodes(benchmark::State& state) { Grow(state, FewKinds, 20); }
BENCHMARK(BM_TooFewNodes)->Unit(benchmark::kMillisecond);

// 5,000 nodes with one slice each, up to `nodes` of which are removed.
void BM_Shrink(benchmark::State& state) {
  const cluster::ClusterSnapshot snapshot = FullCluster("1g.5gb@0:used", 8);
  const std::vector<NodePoolState> pools = Pools(1000);
  const scheduling::Framework framework = scheduling::Framework::Default();
  ShrinkOptions options;
  options.utilization_threshold = 1;
  options.max_nodes = static_cast<int>(state.range(0));
  ShrinkPlan plan;
  for ([[maybe_unused]] auto _ : state) plan = PlanShrink(snapshot, pools, framework, options);
  state.counters["gone"] = static_cast<double>(plan.nodes.size());
}
BENCHMARK(BM_Shrink)->Arg(1)->Arg(10)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace nos::planning
