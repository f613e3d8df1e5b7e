// Cost of a lookup in the layout tables, and of building them.
#include <benchmark/benchmark.h>

#include <bit>

#include "base/random.h"
#include "gpu/catalogue.h"
#include "gpu/fragmentation.h"

namespace nos::gpu {
namespace {

const Model& A100() { return *Catalogue::Builtin().FindByName("A100-40GB"); }

// Layouts in an order that defeats branch prediction.
std::vector<LayoutId> RandomLayouts() {
  Random random(1);
  std::vector<LayoutId> layouts(4096);
  for (LayoutId& s : layouts) s = static_cast<LayoutId>(random.Below(A100().layouts().size()));
  return layouts;
}

void BM_LayoutAddRemove(benchmark::State& state) {
  const LayoutTable& table = A100().layouts();
  const auto layouts = RandomLayouts();
  size_t i = 0;
  for ([[maybe_unused]] auto _ : state) {
    const LayoutId s = layouts[i++ % layouts.size()];
    const uint64_t addable = table.Addable(s);
    if (addable == 0) continue;
    const auto placement = static_cast<PlacementId>(std::countr_zero(addable));
    benchmark::DoNotOptimize(table.Remove(table.Add(s, placement), placement));
  }
}
BENCHMARK(BM_LayoutAddRemove);

void BM_LayoutCopies(benchmark::State& state) {
  const LayoutTable& table = A100().layouts();
  const auto layouts = RandomLayouts();
  size_t i = 0;
  for ([[maybe_unused]] auto _ : state)
    benchmark::DoNotOptimize(table.Copies(layouts[i++ % layouts.size()], 4));
}
BENCHMARK(BM_LayoutCopies);

void BM_LayoutFromMembers(benchmark::State& state) {
  const LayoutTable& table = A100().layouts();
  const auto layouts = RandomLayouts();
  size_t i = 0;
  for ([[maybe_unused]] auto _ : state) {
    benchmark::DoNotOptimize(table.FromMembers(table.Members(layouts[i++ % layouts.size()])));
  }
}
BENCHMARK(BM_LayoutFromMembers);

void BM_BestPlacement(benchmark::State& state) {
  const Fragmentation rule(A100());
  const auto layouts = RandomLayouts();
  size_t i = 0;
  for ([[maybe_unused]] auto _ : state)
    benchmark::DoNotOptimize(rule.Best(layouts[i++ % layouts.size()], 0));
}
BENCHMARK(BM_BestPlacement);

void BM_FindByProduct(benchmark::State& state) {
  const Catalogue& catalogue = Catalogue::Builtin();
  for ([[maybe_unused]] auto _ : state) {
    benchmark::DoNotOptimize(catalogue.FindByProduct("NVIDIA-A100-SXM4-40GB-MIG-1g.5gb"));
  }
}
BENCHMARK(BM_FindByProduct);

void BM_LoadCatalogue(benchmark::State& state) {
  for ([[maybe_unused]] auto _ : state) benchmark::DoNotOptimize(Catalogue::Load("").ok());
}
BENCHMARK(BM_LoadCatalogue)->Unit(benchmark::kMillisecond);

void BM_BuildFragmentation(benchmark::State& state) {
  for ([[maybe_unused]] auto _ : state)
    benchmark::DoNotOptimize(Fragmentation(A100()).Potential(0));
}
BENCHMARK(BM_BuildFragmentation)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace nos::gpu
