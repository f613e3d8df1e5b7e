#include "telemetryserver/state/shares.h"

#include <algorithm>
#include <map>
#include <set>

#include "telemetryserver/state/free_slots.h"

namespace nos::telemetryserver {
namespace {

constexpr double kIdleBelow = 0.05;

class Count {
 public:
  Count(const State& state, const gpu::Catalogue& catalogue, telemetry::Millis stale,
        Shares& shares)
      : state_(state), stale_(stale), shares_(shares), free_(state, catalogue) {
    for (const auto& [uid, pod] : state.pods()) {
      if (!pod.WantsGpu()) continue;
      if (pod.state == "running" || pod.state == "starting") ++shares.pods_running;
      if (pod.state == "pending") ++shares.pods_pending;
    }
  }

  void Add(const Node& node, const telemetry::Gpu& gpu) {
    const gpu::Model* model = free_.ModelOf(gpu.product);
    const int64_t slots = SlotsOf(gpu, model);
    ++shares_.gpus;
    shares_.slots += slots;
    auto& [gpus, all, held, memory] = models_[gpu.product];
    ++gpus;
    all += slots;
    memory = gpu.memory;
    const double before = shares_.allocated;
    if (IsEmpty(gpu) && !free_.AreStranded(node, gpu)) {
      AddEmpty(node, static_cast<double>(slots));
    }
    gpu.slots > 0 ? AddSliced(node, gpu, static_cast<double>(slots)) : AddWhole(node, gpu, slots);
    held += shares_.allocated - before;
  }

  void Finish() {
    const double all = shares_.slots > 0 ? static_cast<double>(shares_.slots) : 1;
    for (double* share : {&shares_.allocated, &shares_.idle, &shares_.free, &shares_.fragmented,
                          &shares_.stranded, &shares_.measured, &shares_.empty}) {
      *share /= all;
    }
    if (shares_.measured > 0) shares_.used = used_ / all;
    shares_.empty_nodes = std::ssize(empty_nodes_);
    for (const auto& [product, sums] : models_) {
      const auto& [gpus, slots, held, memory] = sums;
      shares_.models.push_back({product, gpus, held / static_cast<double>(slots), memory});
    }
  }

 private:
  void AddWhole(const Node& node, const telemetry::Gpu& gpu, int64_t slots) {
    const auto size = static_cast<double>(slots);
    if (!gpu.holders.empty()) return AddHeld("gpu", gpu.uuid, size);
    AddLeft(node, gpu, size, true);
  }

  void AddEmpty(const Node& node, double slots) {
    shares_.empty += slots;
    ++shares_.empty_gpus;
    if (std::ranges::all_of(node.layout.gpus, [&](const telemetry::Gpu& gpu) {
          return IsEmpty(gpu) && gpu.health.empty();
        })) {
      empty_nodes_.insert(&node);
    }
  }

  // A single MPS share or time slice is not measured: it counts with the utilization of its GPU.
  void AddSliced(const Node& node, const telemetry::Gpu& gpu, double slots) {
    const bool shared = gpu.SharedByMps(), together = shared || gpu.InTurns();
    const double each = slots / static_cast<double>(gpu.slots);
    int64_t rest = gpu.slots;
    for (const telemetry::Instance& instance : gpu.instances) {
      if (instance.holders.empty()) continue;
      rest -= instance.size;
      AddHeld(together ? "gpu" : "instance", together ? gpu.uuid : instance.uuid,
              each * static_cast<double>(instance.size));
    }
    if (rest <= 0) return;
    const int64_t usable = std::min(rest, free_.UsableOf(gpu));
    AddLeft(node, gpu, each * static_cast<double>(usable), true);
    AddLeft(node, gpu, each * static_cast<double>(rest - usable), false);
  }

  void AddHeld(std::string_view kind, const std::string& uuid, double size) {
    shares_.allocated += size;
    const Latest* latest = state_.LatestOf(kind, uuid);
    if (latest == nullptr || state_.now() - latest->at > stale_) return;
    for (const auto& [name, value] : latest->readings.metrics) {
      if (name != "utilization") continue;
      shares_.measured += size;
      used_ += size * std::clamp(value, 0.0, 1.0);
      if (value < kIdleBelow) shares_.idle += size;
    }
  }

  void AddLeft(const Node& node, const telemetry::Gpu& gpu, double size, bool wanted) {
    double& sum = free_.AreStranded(node, gpu) ? shares_.stranded
                  : wanted                     ? shares_.free
                                               : shares_.fragmented;
    sum += size;
  }

  const State& state_;
  const telemetry::Millis stale_;
  Shares& shares_;
  FreeSlots free_;
  double used_ = 0;
  std::set<const Node*> empty_nodes_;
  // GPUs, slots, held, MiB of one GPU
  std::map<std::string, std::tuple<int64_t, int64_t, double, int64_t>> models_;
};

}  // namespace

int64_t SlotsOf(const telemetry::Gpu& gpu, const gpu::Model* model) {
  if (gpu.slots > 0 && !gpu.SharedByMps()) return gpu.slots;
  return model == nullptr || model->slots() == 0 ? 1 : model->slots();
}

Shares SharesOf(const State& state, const gpu::Catalogue& catalogue, telemetry::Millis stale) {
  Shares shares;
  Count count(state, catalogue, stale, shares);
  for (const auto& [name, node] : state.nodes()) {
    for (const telemetry::Gpu& gpu : node.layout.gpus) count.Add(node, gpu);
  }
  count.Finish();
  std::vector<telemetry::Millis> waits =
      state.durations().WaitsSince(state.now() - Durations::kWaitsKept);
  if (!waits.empty()) {
    const auto middle = waits.begin() + static_cast<std::ptrdiff_t>(waits.size() / 2);
    std::ranges::nth_element(waits, middle);
    shares.seconds_to_slice = static_cast<double>(*middle) / 1000;
  }
  return shares;
}

std::vector<std::pair<std::string, double>> MetricsOf(const Shares& shares) {
  std::vector<std::pair<std::string, double>> metrics = {
      {"allocated", shares.allocated},
      {"idle", shares.idle},
      {"free", shares.free},
      {"fragmented", shares.fragmented},
      {"stranded", shares.stranded},
      {"pods_pending", static_cast<double>(shares.pods_pending)},
      {"pods_running", static_cast<double>(shares.pods_running)}};
  if (shares.used) metrics.emplace_back("used", *shares.used);
  if (shares.seconds_to_slice) metrics.emplace_back("seconds_to_slice", *shares.seconds_to_slice);
  return metrics;
}

}  // namespace nos::telemetryserver
