// Cost of a step of the scheduler while many pods wait for their slices to be created, in front of
// a fake API server and agents that never finish: between two steps one pod of one node changes.
//
//   build/release/bench/nos_bench_scheduler_steps
#include <benchmark/benchmark.h>

#include <string>

#include "base/log.h"
#include "controllers/scheduler.h"
#include "kube/testing/fake_api.h"
#include "reconcile/runner.h"
#include "scheduling/framework.h"

namespace nos::controllers {
namespace {

constexpr int kGpus = 8, kPodsOfNode = 7 * kGpus;

Json EmptyGpuNode(const std::string& name) {
  JsonObject annotations;
  for (int gpu = 0; gpu < kGpus; ++gpu) {
    annotations["nos.nebuly.com/status-layout-" + std::to_string(gpu)] = "";
  }
  return {{"kind", "Node"},
          {"metadata",
           {{"name", name},
            {"labels",
             {{"nos.nebuly.com/gpu-partitioning", "mig"},
              {"nvidia.com/gpu.product", "NVIDIA-A100-SXM4-40GB"},
              {"nvidia.com/gpu.count", std::to_string(kGpus)}}},
            {"annotations", annotations}}},
          {"status", {{"allocatable", {{"cpu", "96"}, {"pods", "110"}}}}}};
}

Json PodThat(const std::string& name, const std::string& resource, const std::string& node,
             const std::string& label) {
  return {{"kind", "Pod"},
          {"metadata",
           {{"namespace", "ml"},
            {"name", name},
            {"uid", name},
            {"labels", {{"changes", label}}},
            {"creationTimestamp", "2026-01-01T00:00:00Z"}}},
          {"spec",
           {{"schedulerName", "nos-scheduler"},
            {"nodeName", node},
            {"containers",
             JsonArray{{{"name", "main"}, {"resources", {{"limits", {{resource, "1"}}}}}}}}}},
          {"status", {{"phase", node.empty() ? "Pending" : "Running"}}}};
}

void BM_StepWhilePodsWaitForPartitions(benchmark::State& state) {
  SetLogLevel(LogLevel::kError);
  const auto waiting = static_cast<int>(state.range(0));
  kube::FakeApi api;
  for (int i = 0; i * kPodsOfNode < waiting; ++i)
    api.Put(EmptyGpuNode("node-" + std::to_string(i)));
  for (int i = 0; i < waiting; ++i) {
    api.Put(PodThat("pod-" + std::to_string(i), "nvidia.com/mig-1g.5gb", "", ""));
  }
  const scheduling::Framework framework =
      scheduling::Framework::Default(scheduling::PartitionedBy::kScheduler);
  SchedulerConfig config;
  config.partition_requests.deadline = std::chrono::hours(1);
  config.report_partitioning_after = std::chrono::hours(1);
  Scheduler scheduler(config, {{"nos-scheduler", &framework}}, gpu::Catalogue::Builtin());
  reconcile::RunnerOptions options;
  options.watch_context = true;
  reconcile::Runner runner(scheduler, api, options);
  ManualClock clock{Time(std::chrono::seconds(1'800'000'000))};
  while (runner.Step(clock)) {
  }
  if (static_cast<int>(scheduler.bindings()) != waiting) {
    return state.SkipWithError("not all pods wait for their GPUs");
  }
  int i = 0;
  for (auto _ : state) {
    state.PauseTiming();
    api.Put(PodThat("other", "nvidia.com/none", "node-0", std::to_string(i++)));
    clock.AdvanceTo(clock.Now() + std::chrono::milliseconds(1));
    state.ResumeTiming();
    runner.Step(clock);
  }
}
BENCHMARK(BM_StepWhilePodsWaitForPartitions)
    ->Arg(100)
    ->Arg(1000)
    ->Arg(10'000)
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace nos::controllers
