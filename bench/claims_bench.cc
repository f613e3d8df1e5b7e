// Decisions per second of the scheduling engine on pods with a ResourceClaim each, without an API
// server: each pod is decided, assumed and its device reserved before the next.
//
//   build/release/bench/nos_bench_claims
//
// Counter claims/s: decisions per second of one thread; first_ms: the first decision on a pod of a
// kind, before. Nodes have eight GPUs, in the form in which
// NVIDIA's driver publishes them. Claims are for a MIG slice of the smallest profile, or of three
// in turn. "full": a claim on each node has 39 of the node's 56 compute slices. The devices of all
// nodes are at hand before, as those of a scheduler that stood by (cmd/daemon/standby_devices.h).
#include <benchmark/benchmark.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <memory>
#include <string>

#include "bench/nvidia_slices.h"
#include "cluster/snapshot.h"
#include "dra/cel_expressions.h"
#include "dra/device_index.h"
#include "gpu/catalogue.h"
#include "scheduling/engine.h"
#include "scheduling/framework.h"
#include "scheduling/framework/cycle_state.h"

namespace nos::scheduling {
namespace {

constexpr int kMaxClaims = 10'000;
constexpr const char* kProfiles[] = {"1g.10gb", "2g.20gb", "3g.40gb"};

std::string NodeName(int i) { return "node-" + std::to_string(100'000 + i); }

std::shared_ptr<const cluster::Node> MakeNode(int i) {
  cluster::Node node;
  node.meta.name = NodeName(i);
  node.meta.labels = {{"kubernetes.io/hostname", node.meta.name}};
  node.allocatable = {{"cpu", Quantity::FromValue(32)},
                      {"memory", Quantity::FromValue(int64_t{256} << 30)},
                      {"pods", Quantity::FromValue(110)}};
  return std::make_shared<const cluster::Node>(std::move(node));
}

std::shared_ptr<const cluster::Pod> MakePod(int i) {
  cluster::Pod pod;
  pod.meta.ns = "default";
  pod.meta.name = pod.meta.uid = "pod-" + std::to_string(i);
  pod.scheduler_name = "nos-scheduler";
  pod.phase = "Pending";
  pod.containers.resize(1);
  pod.containers[0].name = "main";
  pod.containers[0].requests = {{"cpu", Quantity::FromMilli(100)}};
  pod.claims = {{"gpu", "claim-" + std::to_string(i), "", false}};
  return std::make_shared<const cluster::Pod>(std::move(pod));
}

template <typename T>
std::shared_ptr<const T> Read(const Json& json, Status (*read)(JsonSource, T&)) {
  auto object = std::make_shared<T>();
  if (!read(json, *object).ok()) std::abort();
  return object;
}

std::shared_ptr<const dra::ResourceClaim> MakeClaim(int i, int profiles) {
  const std::string name = "claim-" + std::to_string(i);
  const std::string selector = std::string("device.attributes['gpu.nvidia.com'].profile == '") +
                               kProfiles[i % profiles] + "'";
  const Json exactly = {{"deviceClassName", "mig.nvidia.com"},
                        {"allocationMode", "ExactCount"},
                        {"count", 1},
                        {"selectors", JsonArray{{{"cel", {{"expression", selector}}}}}}};
  return Read<dra::ResourceClaim>(
      {{"metadata", {{"namespace", "default"}, {"name", name}, {"uid", name}}},
       {"spec",
        {{"devices", {{"requests", JsonArray{{{"name", "slice"}, {"exactly", exactly}}}}}}}}},
      dra::ReadResourceClaim);
}

// Has five of the node's GPUs and four of the seven compute slices of another.
std::shared_ptr<const dra::ResourceClaim> Held(const std::string& node) {
  JsonArray results;
  const auto add = [&](const std::string& device) {
    results.push_back(JsonObject{
        {"request", "slice"}, {"driver", "gpu.nvidia.com"}, {"pool", node}, {"device", device}});
  };
  for (int gpu = 0; gpu < 5; ++gpu) add("gpu-" + std::to_string(gpu) + "-mig-7g80gb-0-0");
  add("gpu-5-mig-4g40gb-5-0");
  const Json exactly = {{"deviceClassName", "mig.nvidia.com"},
                        {"allocationMode", "ExactCount"},
                        {"count", static_cast<int64_t>(results.size())}};
  return Read<dra::ResourceClaim>(
      {{"metadata", {{"namespace", "default"}, {"name", "held-" + node}, {"uid", "held-" + node}}},
       {"spec",
        {{"devices", {{"requests", JsonArray{{{"name", "slice"}, {"exactly", exactly}}}}}}}},
       {"status", {{"allocation", {{"devices", {{"results", results}}}}}}}},
      dra::ReadResourceClaim);
}

double ResidentMiB() {
  malloc_trim(0);
  int64_t total = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  return static_cast<double>(resident * sysconf(_SC_PAGESIZE)) / (1 << 20);
}

void BM_Claims(benchmark::State& state, int profiles, bool full) {
  const auto nodes = static_cast<int>(state.range(0));
  const int claims = std::min(kMaxClaims, 5 * nodes);  // all fit, also on full nodes
  const Framework framework = Framework::Default();
  int64_t decided = 0;
  for (auto _ : state) {
    state.PauseTiming();
    const double before = ResidentMiB();
    auto devices = std::make_shared<dra::DeviceIndex>(
        dra::Features::Of(37), std::make_shared<const dra::CelExpressions>());
    auto engine_of_run = std::make_unique<Engine>(gpu::Catalogue::Builtin());
    Engine& engine = *engine_of_run;
    for (int i = 0; i < nodes; ++i) engine.SetNode(MakeNode(i));
    engine.ChangeContext([&](cluster::ClusterContext& context) {
      const std::string selector =
          "device.driver == 'gpu.nvidia.com' && "
          "device.attributes['gpu.nvidia.com'].type == 'mig'";
      context.device_classes.Set(
          "mig.nvidia.com",
          Read<dra::DeviceClass>(
              {{"metadata", {{"name", "mig.nvidia.com"}}},
               {"spec", {{"selectors", JsonArray{{{"cel", {{"expression", selector}}}}}}}}},
              dra::ReadDeviceClass));
      for (int i = 0; i < nodes; ++i) {
        for (const Json& slice : bench::NvidiaSlices(NodeName(i))) {
          context.device_slices.Set(std::string(FindString(slice, "metadata", "name")),
                                    Read<dra::ResourceSlice>(slice, dra::ReadResourceSlice));
        }
        if (full) context.device_claims.Set("default/held-" + NodeName(i), Held(NodeName(i)));
      }
      for (int i = 0; i < claims; ++i) {
        context.device_claims.Set("default/claim-" + std::to_string(i), MakeClaim(i, profiles));
      }
    });
    engine.FollowDevices(devices);
    const dra::FindClass find_class = [&](const std::string& name) {
      return engine.snapshot().context().device_classes.Share(name);
    };
    std::vector<dra::PreparedClaims> kinds;
    for (int i = 0; i < profiles; ++i) {
      kinds.emplace_back(std::vector{MakeClaim(i, profiles)}, find_class, devices->features());
    }
    for (int i = 0; i < nodes; ++i) {
      devices->Prefetch(*engine.snapshot().Find(NodeName(i))->node, kinds);
    }
    state.counters["MiB"] = ResidentMiB() - before;
    // The first pod of each kind is tried on all nodes.
    const auto began = std::chrono::steady_clock::now();
    for (int i = 0; i < profiles; ++i) {
      if (engine.Schedule(framework, MakePod(i)).node == nullptr) {
        return state.SkipWithError("a pod found no node");
      }
    }
    state.counters["first_ms"] =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - began)
            .count() /
        profiles;
    state.ResumeTiming();
    for (int i = 0; i < claims; ++i) {
      const auto pod = MakePod(i);
      const Decision decision = engine.Schedule(framework, pod);
      if (decision.node == nullptr) return state.SkipWithError("a pod found no node");
      const std::string node = decision.node->node->meta.name;
      engine.Assume(pod, node);
      CycleState cycle;
      if (!engine.Reserve(framework, *pod, node, cycle).fits()) {
        return state.SkipWithError("a device was not reserved");
      }
      ++decided;
    }
    state.PauseTiming();
    kinds.clear();
    engine_of_run.reset();
    devices.reset();
    state.ResumeTiming();
  }
  state.counters["claims/s"] =
      benchmark::Counter(static_cast<double>(decided), benchmark::Counter::kIsRate);
}

#define NOS_CLAIMS(name, profiles, full)             \
  BENCHMARK_CAPTURE(BM_Claims, name, profiles, full) \
      ->Arg(1000)                                    \
      ->Arg(5000)                                    \
      ->Iterations(1)                                \
      ->Unit(benchmark::kMillisecond)                \
      ->UseRealTime()
NOS_CLAIMS(one_profile, 1, false);
NOS_CLAIMS(three_profiles, 3, false);
NOS_CLAIMS(one_profile_full, 1, true);
NOS_CLAIMS(three_profiles_full, 3, true);
#undef NOS_CLAIMS

}  // namespace
}  // namespace nos::scheduling
