// Allocations of claims on nodes with eight GPUs, each with 25 placements and itself as devices, in
// the form in which NVIDIA's driver publishes them: one slice a GPU, one with the counters of all.
// CEL is evaluated.
#include <benchmark/benchmark.h>
#include <malloc.h>
#include <unistd.h>

#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "bench/nvidia_slices.h"
#include "codec/json.h"
#include "dra/allocator.h"
#include "dra/cel_expressions.h"
#include "dra/least_loss.h"

namespace nos::dra {
namespace {

std::vector<std::string> SlicesOf(const std::string& node) {
  std::vector<std::string> slices;
  for (const Json& slice : bench::NvidiaSlices(node)) slices.push_back(WriteJson(slice));
  return slices;
}

std::string Mig(const std::string& profile) {
  return "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'mig' "
         "&& "
         "device.attributes['gpu.nvidia.com'].profile == '" +
         profile + "'";
}

PreparedClaims Prepared(const std::string& selector, int count, const Features& features,
                        const std::string& uid = "c") {
  auto device_class = std::make_shared<DeviceClass>();
  device_class->name = "mig";
  device_class->selectors = {selector};
  auto claim = std::make_shared<ResourceClaim>();
  claim->name = claim->uid = uid;
  DeviceRequest& request = claim->requests.emplace_back();
  request.name = "r";
  request.exactly.emplace();
  request.exactly->device_class = "mig";
  request.exactly->mode = "ExactCount";
  request.exactly->count = count;
  return PreparedClaims(
      {claim}, [device_class](const std::string&) { return device_class; }, features);
}

struct Cluster {
  explicit Cluster(int count, const CelExpressions::Limits& limits = {})
      : expressions(limits), inventory(Features::Of(37), expressions), nodes(count) {
    for (int i = 0; i < count; ++i) {
      nodes[i].meta.name = "node-" + std::to_string(i);
      for (const std::string& text : SlicesOf(nodes[i].meta.name)) {
        auto slice = std::make_shared<ResourceSlice>();
        if (ReadResourceSlice(text, *slice).ok()) inventory.PutSlice(std::move(slice));
      }
    }
  }
  AllocationOutcome Try(const cluster::Node& on, const PreparedClaims& prepared) const {
    AllocationOptions options;
    if (ranked) options.ranking = &ranking;
    return Allocate(inventory, prepared, on, options);
  }
  // False: it does not fit.
  bool Place(const cluster::Node& on, const PreparedClaims& prepared, const std::string& uid) {
    const AllocationOutcome outcome = Try(on, prepared);
    if (outcome.kind != AllocationOutcome::Kind::kAllocated) return false;
    inventory.Allocate(uid, outcome.allocations.at(0));
    return true;
  }
  // One claim for one slice each, until no further one fits.
  int Fill(const cluster::Node& on) {
    for (int i = 0;; ++i) {
      const std::string uid = on.meta.name + "/" + std::to_string(i);
      if (!Place(on, Prepared(Mig("1g.10gb"), 1, inventory.features(), uid), uid)) return i;
    }
  }

  CelExpressions expressions;
  Inventory inventory;
  LeastLoss ranking;
  bool ranked = false;  // by what GPUs can still serve, else in kube-scheduler's order
  std::vector<cluster::Node> nodes;
};

// One claim for one slice, allocated and released, with `fill` such claims before. The second
// argument of a benchmark: devices are ranked.
void AllocateOne(benchmark::State& state) {
  Cluster cluster(1);
  cluster.ranked = state.range(1) != 0;
  const PreparedClaims prepared = Prepared(Mig("1g.10gb"), 1, cluster.inventory.features());
  for (int i = 0; i < state.range(0); ++i) {
    const AllocationOutcome outcome = cluster.Try(cluster.nodes[0], prepared);
    cluster.inventory.Allocate("fill-" + std::to_string(i), outcome.allocations.at(0));
  }
  for (auto _ : state) {
    const AllocationOutcome outcome = cluster.Try(cluster.nodes[0], prepared);
    cluster.inventory.Allocate("c", outcome.allocations.at(0));
    cluster.inventory.Release("c");
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(AllocateOne)->ArgsProduct({{0, 40}, {0, 1}});

// The first claim of its kind, tried on each of 1,000 nodes, and one of another profile after it:
// the nodes' devices are put together, and CEL is evaluated for each kind of device.
void FirstLook(benchmark::State& state) {
  constexpr int kNodes = 1000;
  for (auto _ : state) {
    state.PauseTiming();
    const Cluster cluster(kNodes);
    const PreparedClaims one = Prepared(Mig("1g.10gb"), 1, cluster.inventory.features());
    const PreparedClaims other = Prepared(Mig("2g.20gb"), 1, cluster.inventory.features());
    if (state.range(0) != 0) {
      for (const cluster::Node& node : cluster.nodes) cluster.Try(node, other);
    }
    state.ResumeTiming();
    for (const cluster::Node& node : cluster.nodes) cluster.Try(node, one);
  }
  state.SetItemsProcessed(state.iterations() * kNodes);
}
BENCHMARK(FirstLook)->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);

// The same, but no device is free.
void FailOne(benchmark::State& state) {
  Cluster cluster(1);
  const PreparedClaims whole = Prepared(Mig("7g.80gb"), bench::kGpus, cluster.inventory.features());
  cluster.inventory.Allocate(
      "all", Allocate(cluster.inventory, whole, cluster.nodes[0]).allocations.at(0));
  const PreparedClaims prepared = Prepared(Mig("1g.10gb"), 1, cluster.inventory.features());
  for (auto _ : state) {
    benchmark::DoNotOptimize(Allocate(cluster.inventory, prepared, cluster.nodes[0]).kind);
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(FailOne);

// 32 devices on the two GPUs that are free, of which each holds seven at most: the search has to
// prove it.
void FailMany(benchmark::State& state) {
  Cluster cluster(1);
  const PreparedClaims prepared = Prepared("true", 32, cluster.inventory.features());
  const PreparedClaims whole = Prepared(Mig("7g.80gb"), 6, cluster.inventory.features());
  cluster.inventory.Allocate(
      "most", Allocate(cluster.inventory, whole, cluster.nodes[0]).allocations.at(0));
  cluster.ranked = state.range(0) != 0;
  AllocationOutcome outcome;
  for (auto _ : state) outcome = cluster.Try(cluster.nodes[0], prepared);
  state.counters["steps"] = static_cast<double>(outcome.steps);
  state.counters["ended"] = outcome.kind == AllocationOutcome::Kind::kDoesNotFit ? 1 : 0;
}
BENCHMARK(FailMany)->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);

// A node filled with claims for one slice each.
void FillNode(benchmark::State& state) {
  Cluster cluster(1);
  cluster.ranked = state.range(0) != 0;
  int64_t allocated = 0;
  for (auto _ : state) {
    const int count = cluster.Fill(cluster.nodes[0]);
    allocated += count;
    for (int i = 0; i < count; ++i) cluster.inventory.Release("node-0/" + std::to_string(i));
  }
  state.SetItemsProcessed(allocated);
}
BENCHMARK(FillNode)->Arg(0)->Arg(1)->Unit(benchmark::kMicrosecond);

// Many nodes, one claim each: nothing is known about a node before.
void FirstOnEachNode(benchmark::State& state) {
  Cluster cluster(static_cast<int>(state.range(0)));
  cluster.ranked = state.range(1) != 0;
  const PreparedClaims prepared = Prepared(Mig("1g.10gb"), 1, cluster.inventory.features());
  int64_t allocated = 0;
  for (auto _ : state) {
    for (const cluster::Node& node : cluster.nodes) {
      allocated += cluster.Place(node, prepared, node.meta.name) ? 1 : 0;
    }
  }
  state.SetItemsProcessed(allocated);
}
BENCHMARK(FirstOnEachNode)
    ->ArgsProduct({{1000}, {0, 1}})
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);

// One claim after each change of a slice of the node, of which nothing is known then.
void AfterChange(benchmark::State& state) {
  CelExpressions::Limits limits;
  limits.contents = 1;
  Cluster cluster(1, limits);
  const PreparedClaims prepared = Prepared(Mig("1g.10gb"), 1, cluster.inventory.features());
  auto slice = std::make_shared<ResourceSlice>();
  if (!ReadResourceSlice(SlicesOf("node-0").front(), *slice).ok()) state.SkipWithError("slice");
  for (auto _ : state) {
    cluster.inventory.PutSlice(slice);
    cluster.Place(cluster.nodes[0], prepared, "c");
    cluster.inventory.Release("c");
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(AfterChange)->Unit(benchmark::kMicrosecond);

// All of them filled, one after the other.
void FillNodes(benchmark::State& state) {
  Cluster cluster(static_cast<int>(state.range(0)));
  cluster.ranked = state.range(1) != 0;
  int64_t allocated = 0;
  for (auto _ : state) {
    for (const cluster::Node& node : cluster.nodes) allocated += cluster.Fill(node);
  }
  state.SetItemsProcessed(allocated);
}
BENCHMARK(FillNodes)->ArgsProduct({{1000}, {0, 1}})->Iterations(1)->Unit(benchmark::kMillisecond);

double ResidentBytes() {
  malloc_trim(0);
  int64_t total = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  return static_cast<double>(resident * sysconf(_SC_PAGESIZE));
}

// Bytes a node: of its slices, and with all that an allocation for each of four profiles leaves.
void Memory(benchmark::State& state) {
  const auto nodes = static_cast<int>(state.range(0));
  for (auto _ : state) {
    const double before = ResidentBytes();
    Cluster cluster(nodes);
    const double slices = ResidentBytes();
    for (const char* profile : {"1g.10gb", "2g.20gb", "3g.40gb", "7g.80gb"}) {
      const PreparedClaims prepared = Prepared(Mig(profile), 1, cluster.inventory.features());
      for (const cluster::Node& node : cluster.nodes) {
        cluster.Place(node, prepared, node.meta.name + profile);
      }
    }
    state.counters["slices"] = (slices - before) / nodes;
    state.counters["all"] = (ResidentBytes() - before) / nodes;
  }
}
BENCHMARK(Memory)->Arg(1000)->Iterations(1)->Unit(benchmark::kMillisecond);

void ReadNode(benchmark::State& state) {
  const std::vector<std::string> texts = SlicesOf("node-0");
  int64_t bytes = 0;
  for (auto _ : state) {
    for (const std::string& text : texts) {
      ResourceSlice slice;
      if (!ReadResourceSlice(text, slice).ok()) state.SkipWithError("slice is invalid");
      bytes += static_cast<int64_t>(text.size());
    }
  }
  state.SetBytesProcessed(bytes);
}
BENCHMARK(ReadNode)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace nos::dra
