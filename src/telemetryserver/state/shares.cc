#include "telemetryserver/state/shares.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "gpu/modes.h"
#include "gpu/occupancy.h"
#include "gpu/shares.h"

namespace nos::telemetryserver {
namespace {

constexpr double kIdleBelow = 0.05;
constexpr std::string_view kMigPrefix = "nvidia.com/mig-", kSharePrefix = "nvidia.com/gpu-";

struct Need {
  double cpu = 0, memory = 0;
};

// Requests of pending pods, and typical requests of running pods.
struct Demand {
  std::vector<Need> waiting;       // each not covered by a smaller one
  std::optional<Need> typical;     // medians of pods that hold slices
  std::set<std::string> profiles;  // "1g.5gb", "10gb", requested by pending pods
  bool whole = false;              // a pending pod requests GPUs in another form
  bool any = false;                // any pod is pending

  bool Wants(const std::string& profile) const {
    std::string dotted = profile;  // resource names contain '.' in place of '+'
    std::ranges::replace(dotted, '+', '.');
    return !any || profiles.contains(dotted);
  }
};

Need Medians(std::vector<Need> needs) {
  const auto middle = [&](double Need::* field) {
    const auto at = needs.begin() + static_cast<std::ptrdiff_t>(needs.size() / 2);
    std::ranges::nth_element(needs, at, {}, field);
    return (*at).*field;
  };
  return {middle(&Need::cpu), middle(&Need::memory)};
}

void AddWaiting(const Need& need, std::vector<Need>& waiting) {
  const auto covers = [](const Need& a, const Need& b) {
    return a.cpu <= b.cpu && a.memory <= b.memory;
  };
  if (std::ranges::any_of(waiting, [&](const Need& other) { return covers(other, need); })) return;
  std::erase_if(waiting, [&](const Need& other) { return covers(need, other); });
  waiting.push_back(need);
}

Demand DemandOf(const State& state, Shares& shares) {
  Demand demand;
  std::vector<Need> running;
  for (const auto& [uid, pod] : state.pods()) {
    if (!pod.WantsGpu()) continue;
    if (pod.state == "running" || pod.state == "starting") ++shares.pods_running;
    if (pod.state == "pending") ++shares.pods_pending;
    const Need need{pod.Request("cpu"), pod.Request("memory")};
    if (pod.state == "running") running.push_back(need);
    if (pod.state != "pending") continue;
    demand.any = true;
    AddWaiting(need, demand.waiting);
    for (const auto& [resource, amount] : pod.requests) {
      if (resource == "cpu" || resource == "memory" || amount <= 0) continue;
      if (resource.starts_with(kMigPrefix)) {
        demand.profiles.insert(resource.substr(kMigPrefix.size()));
      } else if (gpu::IsShareResource(resource)) {
        demand.profiles.insert(resource.substr(kSharePrefix.size()));
      } else {
        demand.whole = true;
        if (resource == gpu::kTimeSlice) demand.profiles.insert("shared");
      }
    }
  }
  if (!running.empty()) demand.typical = Medians(std::move(running));
  return demand;
}

bool IsStranded(const Node& node, const telemetry::Gpu& gpu, const Demand& demand) {
  if (!gpu.health.empty() || !node.ready || !node.schedulable) return true;
  if (node.record_at < 0) return false;  // its CPU is not known
  const auto fits = [&](const Need& need) {
    return need.cpu <= node.free_cpu && need.memory <= node.free_memory;
  };
  if (std::ranges::any_of(demand.waiting, fits)) return false;
  if (demand.typical) return !fits(*demand.typical);
  return !demand.waiting.empty();
}

// True if a requested profile fits beside the GPU's instances.
bool FitsSomething(const telemetry::Gpu& gpu, const gpu::Model* model, const Demand& demand) {
  if (model == nullptr) return true;
  gpu::Occupancy on(*model);
  for (const telemetry::Instance& instance : gpu.instances) {
    const auto profile = model->FindProfile(instance.profile);
    // The catalogue may not contain a profile that the node uses.
    if (!profile || !on.Add({*profile, static_cast<uint8_t>(instance.start)})) return true;
  }
  for (size_t p = 0; p < model->profiles().size(); ++p) {
    const auto id = static_cast<gpu::ProfileId>(p);
    if (on.Copies(id) > 0 && demand.Wants(model->profile(id).name)) return true;
  }
  return false;
}

class Count {
 public:
  Count(const State& state, const gpu::Catalogue& catalogue, telemetry::Millis stale,
        Shares& shares)
      : state_(state), catalogue_(catalogue), stale_(stale), shares_(shares) {
    demand_ = DemandOf(state, shares);
  }

  void Add(const Node& node, const telemetry::Gpu& gpu) {
    const gpu::Model* model = ModelOf(gpu.product);
    const int64_t slots = SlotsOf(gpu, model);
    ++shares_.gpus;
    shares_.slots += slots;
    auto& [gpus, all, held] = models_[gpu.product];
    ++gpus;
    all += slots;
    const double before = shares_.allocated;
    gpu.slots > 0 ? AddSliced(node, gpu, static_cast<double>(slots), model)
                  : AddWhole(node, gpu, slots);
    held += shares_.allocated - before;
  }

  void Finish() {
    const double all = shares_.slots > 0 ? static_cast<double>(shares_.slots) : 1;
    for (double* share : {&shares_.allocated, &shares_.idle, &shares_.free, &shares_.fragmented,
                          &shares_.stranded, &shares_.measured}) {
      *share /= all;
    }
    if (shares_.measured > 0) shares_.used = used_ / all;
    for (const auto& [product, sums] : models_) {
      const auto& [gpus, slots, held] = sums;
      shares_.models.push_back({product, gpus, held / static_cast<double>(slots)});
    }
  }

 private:
  const gpu::Model* ModelOf(const std::string& product) {
    const auto [known, added] = catalogued_.try_emplace(product, nullptr);
    if (added) known->second = catalogue_.FindByProduct(product);
    return known->second;
  }

  void AddWhole(const Node& node, const telemetry::Gpu& gpu, int64_t slots) {
    const auto size = static_cast<double>(slots);
    if (!gpu.holders.empty()) return AddHeld("gpu", gpu.uuid, size);
    const bool partitioned_later =
        (node.layout.mode == "mig" && slots > 1) || !gpu.switches.empty();
    AddLeft(node, gpu, size, !demand_.any || demand_.whole || partitioned_later);
  }

  // A single MPS share or time slice is not measured: it counts with the utilization of its GPU.
  void AddSliced(const Node& node, const telemetry::Gpu& gpu, double slots,
                 const gpu::Model* model) {
    const bool shared = gpu.SharedByMps(), together = shared || gpu.InTurns();
    bool held = false;
    const double each = slots / static_cast<double>(gpu.slots);
    int64_t rest = gpu.slots;
    for (const telemetry::Instance& instance : gpu.instances) {
      rest -= instance.size;
      const double size = each * static_cast<double>(instance.size);
      if (!instance.holders.empty()) {
        held = true;
        AddHeld(together ? "gpu" : "instance", together ? gpu.uuid : instance.uuid, size);
      } else {
        AddLeft(node, gpu, size, demand_.Wants(instance.profile));
      }
    }
    if (rest <= 0) return;
    const gpu::Model* divided = shared ? &gpu::SharesOf(static_cast<int>(gpu.slots)) : model;
    // A GPU without holders may change its sharing mode.
    const bool wanted = RestIsWanted(gpu, divided) || (!held && !gpu.switches.empty());
    AddLeft(node, gpu, each * static_cast<double>(rest), wanted);
  }

  // Equally partitioned GPUs are evaluated once.
  bool RestIsWanted(const telemetry::Gpu& gpu, const gpu::Model* model) {
    std::string layout = model == nullptr ? gpu.product : model->name();
    for (const telemetry::Instance& instance : gpu.instances) {
      layout.append("/").append(instance.profile).append("@");
      layout += static_cast<char>('0' + instance.start);
    }
    const auto [known, added] = wanted_.try_emplace(std::move(layout), false);
    if (added) known->second = FitsSomething(gpu, model, demand_);
    return known->second;
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
    double& sum = IsStranded(node, gpu, demand_) ? shares_.stranded
                  : wanted                       ? shares_.free
                                                 : shares_.fragmented;
    sum += size;
  }

  const State& state_;
  const gpu::Catalogue& catalogue_;
  const telemetry::Millis stale_;
  Shares& shares_;
  Demand demand_;
  double used_ = 0;
  std::unordered_map<std::string, const gpu::Model*> catalogued_;       // by product
  std::unordered_map<std::string, bool> wanted_;                        // by model and layout
  std::map<std::string, std::tuple<int64_t, int64_t, double>> models_;  // GPUs, slots, held
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
