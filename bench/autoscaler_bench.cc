// Cost of one reconciliation of the autoscaler with 5,000 nodes, 40,000 running pods, 20 NodePools
// and 10,000 unschedulable pods, in front of a fake API server that answers at once: everything
// from the caches to the writes. Single-threaded.
//
//   build/release/bench/nos_bench_autoscaler
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <memory>
#include <string>

#include "base/log.h"
#include "controllers/autoscaler.h"
#include "kube/testing/fake_api.h"
#include "reconcile/runner.h"
#include "scheduling/framework.h"

namespace nos::controllers {
namespace {

constexpr int kNodes = 5000, kGpus = 8, kPools = 20;
constexpr const char* kSince = "2026-01-01T00:00:00Z";

Json FullNode(int index) {
  JsonObject annotations;
  for (int gpu = 0; gpu < kGpus; ++gpu) {
    annotations[fmt::format("nos.nebuly.com/status-layout-{}", gpu)] = "7g.40gb@0:used";
  }
  return {{"kind", "Node"},
          {"metadata",
           {{"name", fmt::format("node-{:05}", index)},
            {"uid", fmt::format("node-{:05}", index)},
            {"creationTimestamp", kSince},
            {"labels",
             {{"pool", fmt::format("pool-{}", index % kPools)},
              {"nos.nebuly.com/gpu-partitioning", "mig"},
              {"nvidia.com/gpu.product", "NVIDIA-A100-SXM4-40GB"},
              {"nvidia.com/gpu.count", std::to_string(kGpus)}}},
            {"annotations", annotations}}},
          {"status",
           {{"allocatable", {{"cpu", "96"}, {"memory", "1Ti"}, {"pods", "110"}}},
            {"conditions", JsonArray{{{"type", "Ready"}, {"status", "True"}}}}}}};
}

Json PodOf(const std::string& name, const std::string& profile, int cpu, const std::string& node) {
  JsonArray conditions;
  if (node.empty()) {
    conditions.push_back({{"type", "PodScheduled"},
                          {"status", "False"},
                          {"reason", "Unschedulable"},
                          {"lastTransitionTime", kSince}});
  }
  return {
      {"kind", "Pod"},
      {"metadata",
       {{"namespace", "ml"},
        {"name", name},
        {"uid", name},
        {"creationTimestamp", kSince},
        {"ownerReferences", JsonArray{{{"apiVersion", "apps/v1"},
                                       {"kind", "ReplicaSet"},
                                       {"name", "set"},
                                       {"uid", "set"},
                                       {"controller", true}}}}}},
      {"spec",
       {{"nodeName", node},
        {"containers",
         JsonArray{
             {{"name", "main"},
              {"resources",
               {{"requests", {{"cpu", std::to_string(cpu)}, {"nvidia.com/mig-" + profile, "1"}}},
                {"limits", {{"nvidia.com/mig-" + profile, "1"}}}}}}}}}},
      {"status", {{"phase", node.empty() ? "Pending" : "Running"}, {"conditions", conditions}}}};
}

// Four GPU models, 2 to 8 GPUs, different amounts of CPU.
Json PoolOf(int index) {
  const struct {
    const char* model;
    int price;  // of one GPU
  } models[] = {{"A100-40GB", 3}, {"A100-80GB", 4}, {"H100-80GB", 8}, {"A30", 1}};
  const auto& [model, price] = models[index % 4];
  const int gpus = 2 << (index / 4 % 3);
  const std::string name = fmt::format("pool-{}", index);
  return {{"apiVersion", "nos.nebuly.com/v1alpha1"},
          {"kind", "NodePool"},
          {"metadata", {{"name", name}, {"uid", name}}},
          {"spec",
           {{"cpu", std::to_string(12 * gpus * (1 + index / 12))},
            {"memory", "1Ti"},
            {"gpu", {{"model", model}, {"count", gpus}, {"partitioning", "mig"}}},
            {"price", std::to_string(gpus * price + index / 12)},
            {"max", 2000},
            {"startSeconds", 300},
            {"nodeSelector", {{"pool", name}}},
            {"deleteAnnotation", "infra.example/goes"},
            {"scaleTargetRef",
             {{"apiVersion", "infra.example/v1"},
              {"kind", "Fleet"},
              {"namespace", "infra"},
              {"name", name}}}}}};
}

class Cluster {
 public:
  explicit Cluster(int waiting) {
    SetLogLevel(LogLevel::kError);
    api_.discovery["/apis/infra.example/v1"] = {
        {"resources",
         JsonArray{{{"name", "fleets"}, {"kind", "Fleet"}, {"namespaced", true}},
                   {{"name", "fleets/scale"}, {"kind", "Scale"}, {"namespaced", true}}}}};
    for (int n = 0; n < kNodes; ++n) {
      api_.Put(FullNode(n));
      for (int g = 0; g < kGpus; ++g) {
        api_.Put(
            PodOf(fmt::format("on-{:05}-{}", n, g), "7g.40gb", 7, fmt::format("node-{:05}", n)));
      }
    }
    constexpr const char* kProfiles[] = {"1g.5gb",  "2g.10gb", "3g.20gb", "7g.40gb", "1g.10gb",
                                         "3g.40gb", "1g.6gb",  "2g.12gb", "7g.80gb"};
    for (int i = 0; i < waiting; ++i) {
      api_.Put(PodOf(fmt::format("waits-{:05}", i), kProfiles[i % 9], 1 + i % 4, ""));
    }
    Reset();
  }
  // Resets to the state before any decision: filled caches, a new autoscaler.
  void Reset() {
    runner_.reset();
    for (int p = 0; p < kPools; ++p) {
      api_.Put(PoolOf(p));
      api_.Put({{"kind", "Fleet"},
                {"metadata", {{"namespace", "infra"}, {"name", fmt::format("pool-{}", p)}}},
                {"spec", {{"replicas", kNodes / kPools}}}});
    }
    api_.writes.clear();
    autoscaler_ = std::make_unique<Autoscaler>(config_, framework_, gpu::Catalogue::Builtin());
    runner_ = std::make_unique<reconcile::Runner>(api_, WatchingForAutoscaler());
    while (runner_->Step(clock_)) {
    }
    runner_->Use(autoscaler_.get());
  }
  void Look() { runner_->Step(clock_); }
  // Runs until it has nothing more to do now.
  void Settle() {
    while (runner_->Step(clock_)) {
    }
  }
  void ChangeSomething(int change) {
    Json pod = *api_.Find("pods", "ml/on-00000-0");
    MakeObject(pod, "metadata", "labels")["changes"] = std::to_string(change);
    api_.Put(std::move(pod));
  }
  void Wait(Duration time) { clock_.AdvanceTo(clock_.Now() + time); }
  size_t decisions() const { return autoscaler_->decisions().size(); }
  int64_t Asked() const {
    int64_t nodes = -kNodes;
    for (const Json& fleet : api_.All("fleets")) {
      nodes += Find(fleet, "spec", "replicas")->get_int64();
    }
    return nodes;
  }

 private:
  ManualClock clock_{Time(std::chrono::seconds(1'800'000'000))};
  kube::FakeApi api_;
  scheduling::Framework framework_ = scheduling::Framework::Default();
  AutoscalerConfig config_;
  std::unique_ptr<Autoscaler> autoscaler_;
  std::unique_ptr<reconcile::Runner> runner_;
};

// The first reconciliation of a new leader: reads everything, makes a plan, requests new nodes, and
// updates the NodePools' status.
void BM_FirstDecision(benchmark::State& state) {
  Cluster cluster(static_cast<int>(state.range(0)));
  for ([[maybe_unused]] auto _ : state) {
    state.PauseTiming();
    cluster.Reset();
    state.ResumeTiming();
    cluster.Look();
  }
  state.counters["decisions"] = static_cast<double>(cluster.decisions());
  state.counters["asked"] = static_cast<double>(cluster.Asked());
}
BENCHMARK(BM_FirstDecision)->Arg(0)->Arg(10'000)->Unit(benchmark::kMillisecond);

// A pod changes, and the next decision is due: new nodes for all pending pods are already
// requested.
void BM_DecisionWhileNodesCome(benchmark::State& state) {
  Cluster cluster(10'000);
  cluster.Settle();
  int i = 0;
  for ([[maybe_unused]] auto _ : state) {
    state.PauseTiming();
    cluster.Wait(std::chrono::seconds(2));
    cluster.ChangeSomething(i++);
    state.ResumeTiming();
    cluster.Look();
  }
}
BENCHMARK(BM_DecisionWhileNodesCome)->Unit(benchmark::kMillisecond);

// A pod changes shortly after a decision.
void BM_Event(benchmark::State& state) {
  Cluster cluster(10'000);
  cluster.Settle();
  int i = 0;
  for ([[maybe_unused]] auto _ : state) {
    state.PauseTiming();
    cluster.Wait(std::chrono::microseconds(1));
    cluster.ChangeSomething(i++);
    state.ResumeTiming();
    cluster.Look();
  }
}
BENCHMARK(BM_Event)->Unit(benchmark::kMillisecond)->Iterations(100);

}  // namespace
}  // namespace nos::controllers
