#include "planning/explanation/wording.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/text.h"
#include "scheduling/pod_names.h"

namespace nos::planning {
namespace {

constexpr size_t kMaxNamed = 3;

const cluster::Gpu& GpuInfo(const Translation& t, int gpu) {
  const int node = t.problem.gpus[gpu].node;
  return t.nodes[node]->gpus.gpus[gpu - t.problem.nodes[node].first_gpu];
}

std::string SlotText(const Translation& t, const SlotInTheWay& slot) {
  const gpu::Model& model = *t.problem.models[slot.model];
  const std::string name = model.counted()
                               ? model.profile(slot.placement).name
                               : model.PlacementName(model.layouts().placements()[slot.placement]);
  return fmt::format("{} of GPU {}", name, GpuInfo(t, slot.gpu).index);
}

}  // namespace

scheduling::SliceDemand DemandOf(const Translation& t, const PodClass& cls,
                                 std::function<void(int64_t)> spend) {
  scheduling::SliceDemand::Slices slices;
  for (const SliceCount& s : cls.slices) {
    slices.emplace_back(t.slice_names[s.slice], s.count + s.beyond);
  }
  int64_t max_gpus = 0;
  for (const ProblemNode& node : t.problem.nodes) {
    max_gpus = std::max<int64_t>(max_gpus, node.gpu_count);
  }
  return {std::move(slices), *t.catalogue, t.problem.models, max_gpus, std::move(spend)};
}

namespace {

// The pod that holds an instance, in the snapshot or in the plan under construction.
struct Holder {
  const std::string* key = nullptr;  // of a pod of the snapshot; null: none, or unknown
  int planned = -1;                  // index into the pods of the draft; -1: none

  bool known() const { return key != nullptr || planned >= 0; }
};

Holder HolderInSnapshot(const cluster::Instance& instance) {
  return {instance.pod.empty() ? nullptr : &instance.pod};
}

Holder HolderOf(const Translation& t, const StagedResult& result, const SlotInTheWay& slot) {
  const Draft& draft = result.draft;
  const cluster::Gpu& info = GpuInfo(t, slot.gpu);
  const gpu::Model& model = *t.problem.models[slot.model];
  const bool counted = model.counted();
  int before = slot.nth;                     // number of preceding equal shares
  const bool is_now = info.model == &model;  // otherwise the plan switches the GPU first
  for (const cluster::Instance& instance : info.instances) {
    if (is_now && counted && instance.used && instance.placement.profile == slot.placement &&
        before-- == 0) {
      return HolderInSnapshot(instance);
    }
  }
  for (const uint32_t index : draft.PodsOn(t.problem.gpus[slot.gpu].node)) {
    const PlacedPod& pod = draft.pods()[index];
    if (!pod.alive) continue;
    for (const Device& d : draft.DevicesOf(pod)) {
      if (d.gpu != slot.gpu || d.placement != slot.placement) continue;
      if (counted && before-- > 0) continue;
      return {nullptr, static_cast<int>(index)};
    }
  }
  if (counted || !is_now) return {};
  const gpu::Placement placement = model.layouts().placements()[slot.placement];
  for (const cluster::Instance& instance : info.instances) {
    if (instance.placement == placement) return HolderInSnapshot(instance);
  }
  return {};
}

bool IsSame(const Holder& a, const Holder& b) {
  if (!a.known() || !b.known() || a.planned != b.planned) return false;
  return a.planned >= 0 || *a.key == *b.key;
}

// "a/b", or "" if unknown.
std::string KeyOf(const Translation& t, const StagedResult& result, const Holder& holder) {
  if (holder.planned < 0) return holder.key == nullptr ? "" : *holder.key;
  const PlacedPod& pod = result.draft.pods()[holder.planned];
  return t.pending[t.members[pod.cls][result.members[holder.planned]]]->Key();
}

// Different holders of the instances in the way; each unknown one counts.
std::vector<Holder> HoldersOf(const Translation& t, const StagedResult& result,
                              const FuturePlace& place) {
  std::vector<Holder> holders;
  for (const SlotInTheWay& slot : place.in_the_way) {
    const Holder holder = HolderOf(t, result, slot);
    const bool repeated =
        std::ranges::any_of(holders, [&](const Holder& other) { return IsSame(holder, other); });
    if (!repeated) holders.push_back(holder);
  }
  return holders;
}

// True if a pod of the class lacks other resources there even after `holders`, the pods that hold
// the instances in the way, have ended.
bool LacksBeyondHolders(const Translation& t, const StagedResult& result, int cls,
                        const FuturePlace& place, const std::vector<Holder>& holders) {
  if (!place.short_of_resources) return false;
  const std::vector<int64_t>& asked = t.problem.classes[cls].requests;
  const int64_t* now = result.draft.FreeOf(place.node);
  std::vector<int64_t> lacking(asked.size());
  for (size_t r = 0; r < asked.size(); ++r) lacking[r] = asked[r] > 0 ? asked[r] - now[r] : 0;
  const bool any_in_snapshot =
      std::ranges::any_of(holders, [](auto& h) { return h.key != nullptr; });
  for (const Holder& holder : holders) {
    if (holder.planned < 0) continue;
    const auto& held = t.problem.classes[result.draft.pods()[holder.planned].cls].requests;
    for (size_t r = 0; r < asked.size(); ++r) lacking[r] -= held[r];
  }
  for (const auto& pod : t.nodes[place.node]->pods) {
    if (!any_in_snapshot) break;
    const std::string key = pod->Key();
    const auto holds = [&](const Holder& h) { return h.key != nullptr && *h.key == key; };
    if (!std::ranges::any_of(holders, holds)) continue;
    const cluster::ResourceVector held = cluster::RequestsOf(*pod);
    for (size_t r = 0; r < asked.size(); ++r) lacking[r] -= held.Get(t.dimensions[r]);
  }
  return std::ranges::any_of(lacking, [](int64_t amount) { return amount > 0; });
}

}  // namespace

std::string InTheWayText(const Translation& translation, const StagedResult& result, int cls,
                         const FuturePlace& place) {
  std::vector<std::string> parts;
  for (const SlotInTheWay& slot : place.in_the_way) {
    if (parts.size() == kMaxNamed) {
      parts.push_back(fmt::format("{} more", place.in_the_way.size() - kMaxNamed));
      break;
    }
    const std::string holder = KeyOf(translation, result, HolderOf(translation, result, slot));
    parts.push_back(fmt::format("{} ({})",
                                holder.empty() ? "its unknown user" : scheduling::PodText(holder),
                                SlotText(translation, slot)));
  }
  const std::vector<Holder> holders = HoldersOf(translation, result, place);
  if (LacksBeyondHolders(translation, result, cls, place, holders))
    parts.emplace_back("other pods");
  return parts.empty() ? "nothing" : Join(parts, ", ");
}

}  // namespace nos::planning
