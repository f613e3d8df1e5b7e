#include "planning/scaling/bins.h"

#include <algorithm>

namespace nos::planning {

GrowthCost CostOf(const Bins& bins, std::span<const NodeType> types) {
  GrowthCost cost;
  for (const Bin& bin : bins) {
    if (!bin.paid || bin.assignments.empty()) continue;
    cost.price += types[bin.type].price;
    ++cost.nodes;
  }
  return cost;
}

std::vector<int> PlacedOf(const Bins& bins, size_t classes) {
  std::vector<int> placed(classes);
  for (const Bin& bin : bins) {
    for (const BinAssignment& assignment : bin.assignments) ++placed[assignment.cls];
  }
  return placed;
}

std::vector<int64_t> ScoreOf(const Problem& types, const std::vector<int>& placed) {
  std::vector<int64_t> score(types.levels);
  for (size_t c = 0; c < placed.size(); ++c) {
    const PodClass& cls = types.classes[c];
    score[cls.level] += placed[c] * (cls.value * kValueUnit + 1);
  }
  return score;
}

std::vector<int> TypesOf(const Bins& bins) {
  std::vector<int> types;
  types.reserve(bins.size());
  for (const Bin& bin : bins) types.push_back(bin.type);
  return types;
}

Draft Load(const Problem& problem, GpuStates& states, const Bins& bins) {
  Draft draft(problem, states, Draft::Free::kKeep);
  for (size_t n = 0; n < bins.size(); ++n) {
    for (const BinAssignment& assignment : bins[n].assignments) {
      std::vector<Device> devices = assignment.devices;
      for (Device& device : devices) device.gpu += problem.nodes[n].first_gpu;
      draft.Place(assignment.cls, static_cast<int>(n), devices);
    }
  }
  return draft;
}

void Unload(const Draft& draft, Bins& bins) {
  for (size_t n = 0; n < bins.size(); ++n) {
    bins[n].assignments.clear();
    for (const uint32_t index : draft.PodsOn(static_cast<int>(n))) {
      const PlacedPod& pod = draft.pods()[index];
      if (!pod.alive) continue;
      const std::span<const Device> devices = draft.DevicesOf(pod);
      BinAssignment& assignment = bins[n].assignments.emplace_back(
          BinAssignment{pod.cls, {devices.begin(), devices.end()}});
      for (Device& device : assignment.devices) device.gpu -= draft.problem().nodes[n].first_gpu;
    }
  }
}

bool TakeOutBrokenGangs(const Problem& types, Bins& bins) {
  if (types.gangs.empty()) return false;
  const std::vector<int> placed = PlacedOf(bins, types.classes.size());
  std::vector<int> needed(types.gangs.size());
  for (size_t c = 0; c < placed.size(); ++c) {
    const PodClass& cls = types.classes[c];
    if (cls.gang >= 0 && !cls.extra) needed[cls.gang] += placed[c];
  }
  bool any = false;
  for (Bin& bin : bins) {
    const size_t taken = std::erase_if(bin.assignments, [&](const BinAssignment& assignment) {
      const int gang = types.classes[assignment.cls].gang;
      return gang >= 0 && needed[gang] < types.gangs[gang].lacking;
    });
    any = any || taken > 0;
  }
  return any;
}

void DropEmpty(Bins& bins) {
  std::erase_if(bins, [](const Bin& bin) { return bin.paid && bin.assignments.empty(); });
}

}  // namespace nos::planning
