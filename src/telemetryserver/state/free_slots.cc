#include "telemetryserver/state/free_slots.h"

#include <functional>
#include <utility>

#include "gpu/modes.h"
#include "gpu/occupancy.h"
#include "gpu/shares.h"

namespace nos::telemetryserver {
namespace {

constexpr std::string_view kMigPrefix = "nvidia.com/mig-", kSharePrefix = "nvidia.com/gpu-";

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

Demand DemandOf(const State& state) {
  Demand demand;
  std::vector<Need> running;
  for (const auto& [uid, pod] : state.pods()) {
    if (!pod.WantsGpu()) continue;
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

}  // namespace

bool IsEmpty(const telemetry::Gpu& gpu) {
  return gpu.holders.empty() && std::ranges::all_of(gpu.instances, [](const auto& instance) {
           return instance.holders.empty();
         });
}

FreeSlots::FreeSlots(const State& state, const gpu::Catalogue& catalogue)
    : catalogue_(catalogue), demand_(DemandOf(state)) {}

const gpu::Model* FreeSlots::ModelOf(const std::string& product) {
  const auto [known, added] = models_.try_emplace(product, nullptr);
  if (added) known->second = catalogue_.FindByProduct(product);
  return known->second;
}

bool FreeSlots::AreStranded(const Node& node, const telemetry::Gpu& gpu) const {
  return IsStranded(node, gpu, demand_);
}

// Free instances give way to requested ones, and a GPU without holders to any layout and sharing
// mode. Equally partitioned GPUs are evaluated once.
int64_t FreeSlots::UsableOf(const telemetry::Gpu& gpu) {
  const gpu::Model* model = ModelOf(gpu.product);
  if (IsEmpty(gpu)) return gpu.slots;
  if (gpu.InTurns()) return demand_.Wants("shared") ? gpu.slots : 0;
  if (gpu.SharedByMps()) model = &gpu::SharesOf(static_cast<int>(gpu.slots));
  if (model == nullptr) return gpu.slots;
  std::string layout = model->name();
  for (const telemetry::Instance& instance : gpu.instances) {
    if (instance.holders.empty()) continue;
    layout.append("/").append(instance.profile).append("@").append(std::to_string(instance.start));
  }
  const auto [known, added] = usable_.try_emplace(std::move(layout), 0);
  if (added) known->second = UsableSlots(gpu, *model, demand_);
  return known->second;
}

}  // namespace nos::telemetryserver
