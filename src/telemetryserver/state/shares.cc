#include "telemetryserver/state/shares.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
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
  bool any = false;                // any pod is pending that may be scheduled

  bool Names(std::string profile) const {
    std::ranges::replace(profile, '+', '.');  // as resource names have it
    return profiles.contains(profile);
  }
  bool Wants(const std::string& profile) const { return !any || Names(profile); }
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
    if (pod.state != "pending" || pod.IsGated()) continue;
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

// Number of slots that requested profiles can take beside the instances with holders, the largest
// profile first. A model that offers no requested profile can give its slots to any other one.
int64_t UsableSlots(const telemetry::Gpu& gpu, const gpu::Model& model, const Demand& demand) {
  gpu::Occupancy on(model);
  int64_t rest = model.slots();
  for (const telemetry::Instance& instance : gpu.instances) {
    if (instance.holders.empty()) continue;
    rest -= instance.size;
    const auto profile = model.FindProfile(instance.profile);
    // The catalogue may not contain a profile that the node uses.
    if (!profile || !on.Add({*profile, static_cast<uint8_t>(instance.start)})) return model.slots();
  }
  std::vector<gpu::ProfileId> wanted;
  for (size_t p = 0; p < model.profiles().size(); ++p) {
    const auto id = static_cast<gpu::ProfileId>(p);
    if (demand.Wants(model.profile(id).name)) wanted.push_back(id);
  }
  if (wanted.empty()) return demand.whole ? 0 : rest;
  std::ranges::sort(wanted, std::greater(),
                    [&](gpu::ProfileId id) { return model.profile(id).slots; });
  int64_t usable = 0;
  for (const gpu::ProfileId id : wanted) {
    for (auto place = on.FirstPlace(id); place && on.Add(*place); place = on.FirstPlace(id)) {
      usable += model.profile(id).slots;
    }
  }
  return usable;
}

// True if no pod holds a part of it.
bool IsEmpty(const telemetry::Gpu& gpu) {
  return gpu.holders.empty() && std::ranges::all_of(gpu.instances, [](const auto& instance) {
           return instance.holders.empty();
         });
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
    auto& [gpus, all, held, memory] = models_[gpu.product];
    ++gpus;
    all += slots;
    memory = gpu.memory;
    const double before = shares_.allocated;
    if (IsEmpty(gpu) && !IsStranded(node, gpu, demand_)) {
      AddEmpty(node, static_cast<double>(slots));
    }
    gpu.slots > 0 ? AddSliced(node, gpu, static_cast<double>(slots), model)
                  : AddWhole(node, gpu, slots);
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
  const gpu::Model* ModelOf(const std::string& product) {
    const auto [known, added] = catalogued_.try_emplace(product, nullptr);
    if (added) known->second = catalogue_.FindByProduct(product);
    return known->second;
  }

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
  void AddSliced(const Node& node, const telemetry::Gpu& gpu, double slots,
                 const gpu::Model* model) {
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
    const int64_t usable = std::min(rest, UsableOf(gpu, model));
    AddLeft(node, gpu, each * static_cast<double>(usable), true);
    AddLeft(node, gpu, each * static_cast<double>(rest - usable), false);
  }

  // Free instances give way to requested ones, and a GPU without holders to any layout and sharing
  // mode. Equally partitioned GPUs are evaluated once.
  int64_t UsableOf(const telemetry::Gpu& gpu, const gpu::Model* model) {
    if (IsEmpty(gpu)) return gpu.slots;
    if (gpu.InTurns()) return demand_.Wants("shared") ? gpu.slots : 0;
    if (gpu.SharedByMps()) model = &gpu::SharesOf(static_cast<int>(gpu.slots));
    if (model == nullptr) return gpu.slots;
    std::string layout = model->name();
    for (const telemetry::Instance& instance : gpu.instances) {
      if (instance.holders.empty()) continue;
      layout.append("/")
          .append(instance.profile)
          .append("@")
          .append(std::to_string(instance.start));
    }
    const auto [known, added] = usable_.try_emplace(std::move(layout), 0);
    if (added) known->second = UsableSlots(gpu, *model, demand_);
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
  std::unordered_map<std::string, const gpu::Model*> catalogued_;  // by product
  std::unordered_map<std::string, int64_t> usable_;  // slots, by model and held instances
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
