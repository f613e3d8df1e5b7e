// Cost of one placement decision at several cluster sizes, and the gain of the policy.
#include <benchmark/benchmark.h>

#include <array>
#include <memory>
#include <queue>
#include <string>

#include "base/random.h"
#include "study/churn/simulation.h"
#include "study/placement/fleet.h"
#include "study/placement/relocation.h"

namespace nos::study {
namespace {

const gpu::Model& A100() { return *gpu::Catalogue::Builtin().FindByName("A100-40GB"); }

// A cluster after churn that is uniform over the plain profiles.
class Busy {
 public:
  Busy(size_t gpus, double load, uint64_t seed)
      : rule_(A100()), fleet_(rule_, gpus), random_(seed) {
    const double mean_gap = 3.8 / (load * 8 * static_cast<double>(gpus));
    double now = 0;
    while (now < 8) {
      Arrive(now);
      now += random_.Exponential(mean_gap);
    }
  }
  const study::Fleet& fleet() const { return fleet_; }
  gpu::ProfileId Draw() { return plain_[random_.Below(plain_.size())]; }
  // The profiles that fit nowhere in this state.
  std::vector<gpu::ProfileId> Blocked() const {
    std::vector<gpu::ProfileId> blocked;
    for (const gpu::ProfileId p : plain_) {
      if (!fleet_.Choose(p)) blocked.push_back(p);
    }
    return blocked;
  }

 private:
  using End = std::pair<double, std::pair<uint32_t, gpu::PlacementId>>;

  void Arrive(double now) {
    const gpu::LayoutTable& table = A100().layouts();
    for (; !ends_.empty() && ends_.top().first <= now; ends_.pop()) {
      const auto [gpu, placement] = ends_.top().second;
      fleet_.Set(gpu, table.Remove(fleet_.layout(gpu), placement));
    }
    const auto spot = fleet_.Choose(Draw());
    if (!spot) return;
    fleet_.Set(spot->gpu, table.Add(fleet_.layout(spot->gpu), spot->placement));
    ends_.push({now + random_.Exponential(1), {spot->gpu, spot->placement}});
  }

  std::vector<gpu::ProfileId> plain_ = gpu::PlainProfiles(A100());
  gpu::Fragmentation rule_;
  study::Fleet fleet_;
  Random random_;
  std::priority_queue<End, std::vector<End>, std::greater<>> ends_;
};

void BM_Choose(benchmark::State& state) {
  Busy busy(static_cast<size_t>(state.range(0)), 0.95, 1);
  for ([[maybe_unused]] auto _ : state) benchmark::DoNotOptimize(busy.fleet().Choose(busy.Draw()));
}
BENCHMARK(BM_Choose)->Arg(100)->Arg(1000)->Arg(5000)->Arg(100'000);

// Overloaded, so that requests are blocked: every blocked profile of ten such clusters is tried in
// turn. The label has their number, and for how many of them a relocation plan exists.
void BM_FindRelocation(benchmark::State& state) {
  std::vector<std::unique_ptr<Busy>> clusters;
  std::vector<std::pair<const study::Fleet*, gpu::ProfileId>> blocked;
  size_t helped = 0;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    clusters.push_back(std::make_unique<Busy>(static_cast<size_t>(state.range(0)), 2.5, seed));
    const study::Fleet& fleet = clusters.back()->fleet();
    for (const gpu::ProfileId p : clusters.back()->Blocked()) {
      blocked.emplace_back(&fleet, p);
      helped += study::FindRelocation(fleet, p, 2) ? 1 : 0;
    }
  }
  if (blocked.empty()) return state.SkipWithError("nothing is blocked");
  size_t i = 0;
  for ([[maybe_unused]] auto _ : state) {
    const auto [fleet, profile] = blocked[i++ % blocked.size()];
    benchmark::DoNotOptimize(study::FindRelocation(*fleet, profile, 2));
  }
  state.SetLabel(std::to_string(blocked.size()) + " blocked, " + std::to_string(helped) +
                 " helped");
}
BENCHMARK(BM_FindRelocation)->Arg(100)->Arg(1000)->Arg(5000)->Unit(benchmark::kMicrosecond);

constexpr std::array kMixes = {"uniform", "skew-small", "skew-big", "bimodal", "inference"};

// 100 GPUs, load .95, 60,000 arrivals, seeds 1 to 12: compute-weighted percentage points above the
// policy largest-free-run, for repack as the upper limit (moves: -1) and for nos with this number
// of moves.
void BM_ChurnGain(benchmark::State& state) {
  ChurnOptions options;
  options.model = &A100();
  options.mix = kMixes[static_cast<size_t>(state.range(0))];
  const auto moves = static_cast<int>(state.range(1));
  double gain = 0;
  double per_accepted = 0;
  constexpr int kSeeds = 12;
  for ([[maybe_unused]] auto _ : state) {
    for (options.seed = 1; options.seed <= kSeeds; ++options.seed) {
      options.policy = ChurnPolicy::kLargestFreeRun;
      options.moves = 0;
      const double peer = RunChurn(options).value().compute.Share().value_or(0);
      options.policy = moves < 0 ? ChurnPolicy::kRepack : ChurnPolicy::kNos;
      options.moves = std::max(moves, 0);
      const ChurnReport report = RunChurn(options).value();
      gain += 100 * (report.compute.Share().value_or(0) - peer) / kSeeds;
      per_accepted += report.MovesPerAccepted() / kSeeds;
    }
  }
  state.SetLabel(options.mix);
  state.counters["points"] = gain;
  state.counters["moves_per_accepted"] = per_accepted;
}
BENCHMARK(BM_ChurnGain)
    ->ArgNames({"mix", "moves"})
    ->ArgsProduct({{0, 1, 2, 3, 4}, {0, 1, 2, -1}})
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace nos::study
