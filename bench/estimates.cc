// Measures the error of estimated start times of pending pods: a virtual cluster with more demand
// than capacity, observed through the records of its collector and agents.
//
//   nos-estimates [NODES] [GPUS] [MINUTES] [SEED] [SPREAD]
//
// Default: 3 nodes of 4 GPUs, 240 minutes, seed 1. Pods come in families with the same requests and
// similar run times; SPREAD (0.5) is the standard deviation of the logarithm of the run time. For
// each pending pod, the first estimate after its arrival is evaluated, and every later one.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <numbers>
#include <vector>

#include "base/millis.h"
#include "base/random.h"
#include "controllers/collector.h"
#include "reconcile/runner.h"
#include "sim/world.h"
#include "telemetryreporter/node_sample.h"
#include "telemetryreporter/sampler.h"
#include "telemetryserver/estimate.h"

namespace nos {
namespace {

using std::chrono::seconds;

struct Options {
  int nodes = 3, gpus = 4, minutes = 240;
  uint64_t seed = 1;
  double spread = 0.5;
};

// The request and run time of similar pods.
struct Family {
  const char* profile;
  double run;  // seconds, the median
  double weight;
};
constexpr Family kFamilies[] = {{"1g.5gb", 120, 8},
                                {"1g.5gb", 600, 4},
                                {"2g.10gb", 300, 4},
                                {"3g.20gb", 900, 3},
                                {"7g.40gb", 1200, 1}};
constexpr double kLoad = 1.1;  // relative to the capacity

double Normal(Random& random) {
  const double u = 1 - random.Uniform(), v = random.Uniform();
  return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
}

double SlotsOf(const Family& family) {
  return family.profile[0] == '7' ? 8 : family.profile[0] - '0';
}

void SubmitPods(sim::World& world, const Options& options, Random& random) {
  double weights = 0, slot_seconds = 0;
  for (const Family& family : kFamilies) {
    weights += family.weight;
    slot_seconds += family.weight * SlotsOf(family) * family.run;
  }
  const double slots = 8.0 * options.nodes * options.gpus;
  const double every = slot_seconds / weights / (slots * kLoad);  // seconds between pods
  int number = 0;
  double at = 1;
  while (at < options.minutes * 60.0) {
    double drawn = random.Uniform() * weights;
    size_t which = 0;
    while (which + 1 < std::size(kFamilies) && drawn >= kFamilies[which].weight) {
      drawn -= kFamilies[which++].weight;
    }
    const Family& family = kFamilies[which];
    sim::PodSpec pod;
    pod.name = fmt::format("family{}-{}", which, ++number);
    pod.containers = {{{family.profile, 1}}};
    pod.run = FromSeconds(family.run * std::exp(options.spread * Normal(random)));
    world.Submit(pod, world.Now() + FromSeconds(at));
    at -= every * std::log(1 - random.Uniform());
  }
}

// An estimate for a pod, and its actual start; milliseconds.
struct Said {
  int64_t when = 0;
  telemetryserver::Estimate estimate;
};

class Observer {
 public:
  explicit Observer(sim::World& world)
      : world_(world), collector_(world.catalogue(), [this](const std::vector<Json>& records) {
          for (const Json& record : records) Apply(record, "cluster");
        }) {
    collector_.Lead(true);
    reconcile::RunnerOptions options;
    options.watch_context = true;
    options.context_kinds = controllers::CollectorKinds();
    runner_ = std::make_unique<reconcile::Runner>(collector_, world.api(), options);
  }

  void Look() {
    for (int i = 0; i < 100 && runner_->Step(world_.clock()); ++i) {
    }
    for (const auto& [name, machine] : world_.machines()) {
      const auto sample = telemetry::TakeSample(name, *machine->gpus(), machine->kubelet(),
                                                world_.catalogue(), nullptr);
      if (!sample.ok()) continue;
      auto& sampler = samplers_.try_emplace(name).first->second;
      for (const std::string& text : sampler.Records(*sample, {}, world_.Now())) {
        if (auto json = ParseJson(text); json.ok()) Apply(*json, "node/" + name);
      }
    }
    for (const auto& [uid, estimate] :
         telemetryserver::EstimateStarts(state_, world_.catalogue())) {
      said_[uid].push_back({ToMillis(world_.Now()), estimate});
    }
  }
  void Report() const;

 private:
  void Apply(const Json& json, const std::string& source) {
    const auto record = telemetry::ReadRecord(json);
    if (!record.ok()) return;
    state_.Apply(*record, source);
    if (record->kind != "pod") return;
    const int64_t scheduled = telemetry::IntegerOr(json, "scheduled", 0);
    if (scheduled > 0) started_.try_emplace(std::string(FindString(json, "uid")), scheduled);
  }

  sim::World& world_;
  telemetryserver::State state_;
  controllers::Collector collector_;
  std::unique_ptr<reconcile::Runner> runner_;
  std::map<std::string, telemetry::Sampler> samplers_;
  std::map<std::string, std::vector<Said>> said_;  // by uid
  std::map<std::string, int64_t> started_;
};

double Quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  return values[static_cast<size_t>(q * static_cast<double>(values.size() - 1))];
}

void Show(const std::string& what, const std::vector<double>& errors,
          const std::vector<double>& left) {
  fmt::print("{:<18} {:>6} {:>12.1f} {:>12.1f} {:>12.1f} {:>12.1f}\n", what, errors.size(),
             Quantile(left, 0.5), Quantile(errors, 0.5), Quantile(errors, 0.9), [&] {
               double sum = 0;
               for (size_t i = 0; i < errors.size(); ++i) sum += errors[i] > left[i];
               return errors.empty() ? 0 : 100 * sum / static_cast<double>(errors.size());
             }());
}

void Observer::Report() const {
  std::map<std::string, std::pair<std::vector<double>, std::vector<double>>> rows;
  size_t unknown = 0, known = 0;
  for (const auto& [uid, said] : said_) {
    const auto started = started_.find(uid);
    if (started == started_.end()) continue;
    bool first = true;
    for (const Said& each : said) {
      const auto left = static_cast<double>(started->second - each.when) / 1000;
      if (left < 0) continue;
      ++(each.estimate.at > 0 ? known : unknown);
      if (each.estimate.at <= 0) continue;
      const double error = std::abs(static_cast<double>(each.estimate.at - started->second)) / 1000;
      const auto add = [&](const std::string& row) {
        rows[row].first.push_back(error);
        rows[row].second.push_back(left);
      };
      add("every");
      add("by " + std::string(each.estimate.by));
      if (std::exchange(first, false)) add("first of a pod");
    }
  }
  fmt::print("{} pods waited and started; {:.0f} % of looks at them had an estimate\n\n",
             said_.size(),
             100.0 * static_cast<double>(known) / static_cast<double>(known + unknown));
  fmt::print("{:<18} {:>6} {:>12} {:>12} {:>12} {:>12}\n", "estimates", "", "left, s", "off, s",
             "off p90, s", "off > left, %");
  for (const auto& [row, values] : rows) Show(row, values.first, values.second);
}

int Run(const Options& options) {
  sim::WorldOptions world_options;
  world_options.seed = options.seed;
  world_options.keep_finished = std::chrono::minutes(2);
  world_options.check_invariants = false;
  sim::World world(world_options, gpu::Catalogue::Builtin());
  for (int n = 0; n < options.nodes; ++n) {
    sim::NodeSpec node{.name = fmt::format("node-{}", n)};
    node.gpus.assign(static_cast<size_t>(options.gpus), {"A100-40GB"});
    if (!world.AddNode(node).ok()) return 1;
  }
  if (!world.Boot().ok()) return 1;
  Random random(options.seed);
  SubmitPods(world, options, random);
  world.StartControllers();
  Observer observer(world);
  const Time end = world.Now() + std::chrono::minutes(options.minutes);
  while (world.Now() < end) {
    world.RunUntil(world.Now() + seconds(10));
    observer.Look();
  }
  observer.Report();
  return 0;
}

}  // namespace
}  // namespace nos

int main(int argc, char** argv) {
  nos::Options options;
  const auto argument = [&](int i, int fallback) {
    return argc > i ? std::max(1, std::atoi(argv[i])) : fallback;
  };
  options.nodes = argument(1, options.nodes);
  options.gpus = argument(2, options.gpus);
  options.minutes = argument(3, options.minutes);
  options.seed = static_cast<uint64_t>(argument(4, 1));
  if (argc > 5) options.spread = std::atof(argv[5]);
  return nos::Run(options);
}
