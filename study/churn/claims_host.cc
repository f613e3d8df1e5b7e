#include "study/churn/claims_host.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "dra/cel_expressions.h"
#include "dra/least_loss.h"

namespace nos::study {
namespace {

using Kind = dra::AllocationOutcome::Kind;
using gpu::LayoutId;
using gpu::LayoutTable;

constexpr const char* kDriver = "gpu.nvidia.com";

std::string NodeName(size_t node) { return fmt::format("node-{:05}", node); }
std::string GpuName(int gpu) { return fmt::format("gpu-{}", gpu); }
std::string DeviceName(int gpu, const gpu::Profile& profile, int start) {
  std::string label = profile.name;
  std::erase(label, '.');
  std::replace(label.begin(), label.end(), '+', '-');
  return fmt::format("{}-mig-{}-{}-{}", GpuName(gpu), label, std::max(profile.nvml_id, 0), start);
}

JsonObject Counter(int value) { return {{"value", std::to_string(value)}}; }

JsonObject SlotCounters(int start, int slots) {
  JsonObject counters;
  for (int slot = start; slot < start + slots; ++slot) {
    counters[fmt::format("memory-slice-{}", slot)] = Counter(1);
  }
  return counters;
}

// All that limits instances beside slots: engines, and how many a profile may have.
JsonObject GpuCounters(const gpu::Model& model) {
  JsonObject counters = SlotCounters(0, model.slots());
  const gpu::ModelShape& shape = model.shape();
  for (size_t i = 0; i < shape.engines.size(); ++i) {
    counters[fmt::format("engines-{}", i)] = Counter(shape.engines[i]);
  }
  for (size_t p = 0; p < shape.profiles.size(); ++p) {
    counters[fmt::format("instances-{}", p)] = Counter(shape.profiles[p].max_count);
  }
  return counters;
}

JsonObject CountersOf(const gpu::Model& model, gpu::Placement placement) {
  const gpu::ProfileShape& profile = model.shape().profiles[placement.profile];
  JsonObject counters = SlotCounters(placement.start, profile.size);
  for (size_t i = 0; i < profile.engines.size(); ++i) {
    counters[fmt::format("engines-{}", i)] = Counter(profile.engines[i]);
  }
  counters[fmt::format("instances-{}", placement.profile)] = Counter(1);
  return counters;
}

Json DeviceJson(const std::string& node, int gpu, const gpu::Model& model,
                const std::optional<gpu::Placement>& placement) {
  JsonObject attributes;
  const auto text = [&](const char* key, const std::string& value) {
    attributes[key] = {{"string", value}};
  };
  const gpu::Profile* profile = placement ? &model.profile(placement->profile) : nullptr;
  text("type", placement ? "mig" : "gpu");
  text(placement ? "parentUUID" : "uuid", fmt::format("GPU-{}-{}", node, gpu));
  text("productName", model.name());
  if (placement) text("profile", profile->name);
  const JsonObject counters =
      placement ? CountersOf(model, *placement) : SlotCounters(0, model.slots());
  return {{"name", placement ? DeviceName(gpu, *profile, placement->start) : GpuName(gpu)},
          {"attributes", attributes},
          {"consumesCounters", JsonArray{{{"counterSet", GpuName(gpu)}, {"counters", counters}}}}};
}

// Devices are sorted by name, as the driver does.
std::vector<Json> SlicesOf(const std::string& node, int gpus, const gpu::Model& model) {
  std::vector<Json> slices;
  const auto add = [&](const std::string& name, const char* key, JsonArray content) {
    JsonObject spec = {{"driver", kDriver}, {"nodeName", node}};
    spec["pool"] = {{"name", node}, {"generation", 1}, {"resourceSliceCount", gpus + 1}};
    spec[key] = std::move(content);
    slices.push_back({{"metadata", {{"name", name}}}, {"spec", std::move(spec)}});
  };
  JsonArray sets;
  for (int gpu = 0; gpu < gpus; ++gpu) {
    std::map<std::string, Json> devices;
    devices[GpuName(gpu)] = DeviceJson(node, gpu, model, {});
    for (const gpu::Placement& placement : model.layouts().placements()) {
      const Json device = DeviceJson(node, gpu, model, placement);
      devices[DeviceName(gpu, model.profile(placement.profile), placement.start)] = device;
    }
    JsonArray content;
    for (auto& [name, device] : devices) content.push_back(std::move(device));
    add(fmt::format("{}-{:03}", node, gpu), "devices", std::move(content));
    sets.push_back({{"name", GpuName(gpu)}, {"counters", GpuCounters(model)}});
  }
  add(node + "-counters", "sharedCounters", std::move(sets));
  return slices;
}

class ClaimsHost : public Host {
 public:
  ClaimsHost(const ChurnOptions& options, const Mix& mix)
      : model_(*options.model),
        ranks_(options.policy == ChurnPolicy::kNos),
        inventory_(dra::Features::Of(37), expressions_) {
    for (int left = options.gpus; left > 0; left -= options.node_gpus) {
      Node& node = nodes_.emplace_back();
      node.object.meta.name = NodeName(nodes_.size() - 1);
      node.layouts.resize(static_cast<size_t>(std::min(left, options.node_gpus)));
      node.best.resize(model_.profiles().size());
      AddSlices(node);
    }
    for (const MixEntry& entry : mix) claims_.emplace(entry.profile, Prepared(entry.profile));
  }

  Result<bool> Admit(JobId job, gpu::ProfileId profile) override {
    Node* node = ranks_ ? BestNode(profile) : FirstNode(profile);
    if (node == nullptr) return false;
    const auto& best = node->best[profile];
    if (!best) return Internal("churn: no devices were chosen");
    const dra::Allocation allocation = best->allocations.at(0);
    const auto place = places_.find(allocation.devices.at(0).device);
    if (place == places_.end()) return Internal("churn: allocated an unknown device");
    LayoutId& layout = node->layouts[place->second.first];
    layout = model_.layouts().Add(layout, place->second.second);
    if (layout == LayoutTable::kIllegal) return Internal("churn: two instances overlap");
    inventory_.Allocate(std::to_string(job), allocation);
    Changed(*node);
    if (jobs_.size() <= job) jobs_.resize(job + size_t{1});
    jobs_[job] = {node, place->second};
    return true;
  }

  void Release(JobId job) override {
    const auto& [node, place] = jobs_[job];
    LayoutId& layout = node->layouts[place.first];
    layout = model_.layouts().Remove(layout, place.second);
    inventory_.Release(std::to_string(job));
    Changed(*node);
  }

 private:
  using Place = std::pair<size_t, gpu::PlacementId>;  // GPU of the node
  struct Node {
    cluster::Node object;
    std::vector<LayoutId> layouts;  // by GPU
    // By profile: what a claim would get; absent: not computed since the node changed.
    std::vector<std::optional<dra::AllocationOutcome>> best;
  };

  void AddSlices(const Node& node) {
    const auto gpus = static_cast<int>(node.layouts.size());
    for (const Json& json : SlicesOf(node.object.meta.name, gpus, model_)) {
      auto slice = std::make_shared<dra::ResourceSlice>();
      if (dra::ReadResourceSlice(json, *slice).ok()) inventory_.PutSlice(std::move(slice));
    }
    for (int gpu = 0; gpu < gpus; ++gpu) {
      for (const gpu::Placement& placement : model_.layouts().placements()) {
        const std::string name =
            DeviceName(gpu, model_.profile(placement.profile), placement.start);
        const auto id = model_.layouts().Find(placement);
        if (id) places_[dra::Name(name)] = {static_cast<size_t>(gpu), *id};
      }
    }
  }

  dra::PreparedClaims Prepared(gpu::ProfileId profile) const {
    auto device_class = std::make_shared<dra::DeviceClass>();
    device_class->name = "mig";
    device_class->selectors = {
        fmt::format("device.driver == '{0}' && device.attributes['{0}'].type == 'mig' && "
                    "device.attributes['{0}'].profile == '{1}'",
                    kDriver, model_.profile(profile).name)};
    auto claim = std::make_shared<dra::ResourceClaim>();
    dra::DeviceRequest& request = claim->requests.emplace_back();
    request.name = "r";
    request.exactly.emplace();
    request.exactly->device_class = device_class->name;
    request.exactly->mode = "ExactCount";
    request.exactly->count = 1;
    return dra::PreparedClaims(
        {claim}, [device_class](const std::string&) { return device_class; },
        inventory_.features());
  }

  const dra::AllocationOutcome& On(Node& node, gpu::ProfileId profile) {
    std::optional<dra::AllocationOutcome>& best = node.best[profile];
    if (best) return *best;
    dra::AllocationOptions options;
    if (ranks_) options.ranking = &ranking_;
    best = dra::Allocate(inventory_, claims_.at(profile), node.object, options);
    return *best;
  }

  Node* FirstNode(gpu::ProfileId profile) {
    const auto found = std::ranges::find_if(
        nodes_, [&](Node& node) { return On(node, profile).kind == Kind::kAllocated; });
    return found == nodes_.end() ? nullptr : &*found;
  }

  // The scheduler's scores have a resolution of a hundredth of a GPU.
  Node* BestNode(gpu::ProfileId profile) {
    Node* best = nullptr;
    std::tuple<long long, int, uint32_t> least;
    for (Node& node : nodes_) {
      const dra::AllocationOutcome& outcome = On(node, profile);
      if (outcome.kind != Kind::kAllocated) continue;
      const std::tuple loss(std::llround(outcome.loss.gpus * 100), outcome.loss.free_slots,
                            outcome.loss.tie);
      if (best != nullptr && loss >= least) continue;
      best = &node;
      least = loss;
    }
    return best;
  }

  static void Changed(Node& node) { std::ranges::fill(node.best, std::nullopt); }

  const gpu::Model& model_;
  const bool ranks_;
  dra::CelExpressions expressions_;
  dra::Inventory inventory_;
  dra::LeastLoss ranking_;
  std::vector<Node> nodes_;
  std::map<gpu::ProfileId, dra::PreparedClaims> claims_;
  std::unordered_map<dra::Name, Place> places_;  // by device; the same on each node
  std::vector<std::pair<Node*, Place>> jobs_;
};

}  // namespace

std::unique_ptr<Host> MakeClaimsHost(const ChurnOptions& options, const Mix& mix) {
  return std::make_unique<ClaimsHost>(options, mix);
}

}  // namespace nos::study
