// Packs GPU fractions by the published openb protocol: allocation rate and run time.
//
//   NOS_OPENB=DIR build/release/bench/nos_bench_openb
//
// DIR contains openb_node_list_gpu_node.csv and openb_pod_list_*.csv of the Alibaba trace
// cluster-trace-gpu-v2023 (github.com/alibaba/clusterdata). One iteration is one run of one seed
// (42, 43, ...51) from the files' text to the report. Counters, over those ten seeds:
//   alloc130  mean allocated GPU in per cent at 130 per cent arrived, as published
//   sd, min   of the same
//   alloc100  mean at 100 per cent arrived
//   max_ms    the longest run
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include "study/openb/replay.h"

namespace nos::study {
namespace {

constexpr int kSeeds = 10;
constexpr uint64_t kFirstSeed = 42;

std::string ReadTraceFile(const std::string& name) {
  const char* folder = std::getenv("NOS_OPENB");  // NOLINT(concurrency-mt-unsafe): one thread
  std::ifstream file(std::string(folder == nullptr ? "test/data/openb" : folder) + "/" + name);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

double AllocatedPercent(const OpenbReport& report, int arrived_percent) {
  for (const OpenbReport::Point& point : report.curve) {
    if (point.arrived_percent == arrived_percent) return 100 * point.allocated_share;
  }
  return 0;
}

double Mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double Deviation(const std::vector<double>& values) {
  const double mean = Mean(values);
  double sum = 0;
  for (const double value : values) sum += (value - mean) * (value - mean);
  return std::sqrt(sum / static_cast<double>(values.size() - 1));
}

void RunSeeds(benchmark::State& state, OpenbPolicy policy, const std::string& trace) {
  const std::string nodes = ReadTraceFile("openb_node_list_gpu_node.csv");
  const std::string pods = ReadTraceFile("openb_pod_list_" + trace + ".csv");
  OpenbOptions options;
  options.nodes_text = nodes;
  options.pods_text = pods;
  options.seed = kFirstSeed;
  options.policy = policy;
  std::vector<double> at_130, at_100, millis;
  for ([[maybe_unused]] auto _ : state) {
    const auto start = std::chrono::steady_clock::now();
    const Result<OpenbReport> report = RunOpenb(options);
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    if (!report.ok()) return state.SkipWithError(report.status().message().c_str());
    at_130.push_back(AllocatedPercent(*report, 130));
    at_100.push_back(AllocatedPercent(*report, 100));
    millis.push_back(took.count());
    ++options.seed;
  }
  state.counters["alloc130"] = Mean(at_130);
  state.counters["sd"] = Deviation(at_130);
  state.counters["min"] = *std::min_element(at_130.begin(), at_130.end());
  state.counters["alloc100"] = Mean(at_100);
  state.counters["max_ms"] = *std::max_element(millis.begin(), millis.end());
}

const int registered = [] {
  for (const OpenbPolicy policy : {OpenbPolicy::kNos, OpenbPolicy::kNosScheduler, OpenbPolicy::kFgd,
                                   OpenbPolicy::kBestFit, OpenbPolicy::kRandom}) {
    for (const std::string trace :
         {"default", "cpu100", "gpushare40", "gpushare100", "multigpu20", "gpuspec10"}) {
      const std::string name = "Openb/" + std::string(OpenbPolicyName(policy)) + "/" + trace;
      benchmark::RegisterBenchmark(name.c_str(),
                                   [=](benchmark::State& state) { RunSeeds(state, policy, trace); })
          ->Iterations(kSeeds)
          ->Unit(benchmark::kMillisecond);
    }
  }
  return 0;
}();

}  // namespace
}  // namespace nos::study
