// Cost of one request to the in-process API server.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <memory>

#include "kube/client.h"
#include "sim/api_server.h"

namespace nos::sim {
namespace {

Json Pod(int64_t i) {
  return {
      {"metadata", {{"name", fmt::format("p{}", i)}, {"labels", {{"app", "x"}}}}},
      {"spec",
       {{"containers", JsonArray{{{"name", "c"},
                                  {"image", "registry.example/app:1"},
                                  {"resources", {{"limits", {{"nvidia.com/mig-1g.5gb", 1}}}}}}}}}}};
}

struct Cluster {
  explicit Cluster(int64_t pods) {
    for (int64_t i = 0; i < pods; ++i) (void)client.Create(kube::kPods, "default", Pod(i));
  }
  SystemClock clock;
  ApiServer server{clock};
  kube::Client client{server};
};

void CreateAndDelete(benchmark::State& state) {
  Cluster cluster(state.range(0));
  const Json pod = Pod(-1);
  for ([[maybe_unused]] auto _ : state) {
    benchmark::DoNotOptimize(cluster.client.Create(kube::kPods, "default", pod));
    benchmark::DoNotOptimize(cluster.client.Delete(kube::kPods, "default", "p-1"));
  }
}
BENCHMARK(CreateAndDelete)->Arg(10)->Arg(5000);

void PatchStatus(benchmark::State& state) {
  Cluster cluster(5000);
  int64_t round = 0;
  for ([[maybe_unused]] auto _ : state) {
    const Json patch = {{"status", {{"phase", "Running"}, {"message", fmt::to_string(++round)}}}};
    benchmark::DoNotOptimize(cluster.client.Patch(kube::kPods, "default", "p7",
                                                  kube::PatchType::kMerge, patch, "status"));
  }
}
BENCHMARK(PatchStatus);

void List(benchmark::State& state) {
  Cluster cluster(state.range(0));
  for ([[maybe_unused]] auto _ : state)
    benchmark::DoNotOptimize(cluster.client.List(kube::kPods, "", {}));
}
BENCHMARK(List)->Arg(5000)->Unit(benchmark::kMillisecond);

void WatchedPatch(benchmark::State& state) {
  Cluster cluster(100);
  std::vector<std::unique_ptr<kube::WatchStream>> watches;
  kube::ListOptions options;
  options.resource_version = cluster.client.List(kube::kPods, "", {})->resource_version;
  watches.reserve(static_cast<size_t>(state.range(0)));
  for (int64_t i = 0; i < state.range(0); ++i) {
    watches.push_back(std::move(*cluster.client.Watch(kube::kPods, "", options)));
  }
  int64_t round = 0;
  for ([[maybe_unused]] auto _ : state) {
    const Json patch = {{"status", {{"message", fmt::to_string(++round)}}}};
    (void)cluster.client.Patch(kube::kPods, "default", "p7", kube::PatchType::kMerge, patch,
                               "status");
    for (const auto& watch : watches) benchmark::DoNotOptimize(watch->Next());
  }
}
BENCHMARK(WatchedPatch)->Arg(1)->Arg(100);

}  // namespace
}  // namespace nos::sim
