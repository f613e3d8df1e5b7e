#include "planning/explanation/wording.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
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
  int64_t most_gpus = 0;
  for (const ProblemNode& node : t.problem.nodes) {
    most_gpus = std::max<int64_t>(most_gpus, node.gpu_count);
  }
  return {std::move(slices), *t.catalogue, t.problem.models, most_gpus, std::move(spend)};
}

std::string HolderOf(const Translation& t, const StagedResult& result, const SlotInTheWay& slot) {
  const Draft& draft = result.draft;
  const cluster::Gpu& info = GpuInfo(t, slot.gpu);
  const gpu::Model& model = *t.problem.models[slot.model];
  const bool counted = model.counted();
  int before = slot.nth;                     // number of preceding equal shares
  const bool is_now = info.model == &model;  // otherwise the plan switches the GPU first
  for (const cluster::Instance& instance : info.instances) {
    if (is_now && counted && instance.used && instance.placement.profile == slot.placement &&
        before-- == 0) {
      return instance.pod;
    }
  }
  for (const uint32_t index : draft.PodsOn(t.problem.gpus[slot.gpu].node)) {
    const PlacedPod& pod = draft.pods()[index];
    if (!pod.alive) continue;
    for (const Device& d : draft.DevicesOf(pod)) {
      if (d.gpu != slot.gpu || d.placement != slot.placement) continue;
      if (counted && before-- > 0) continue;
      return t.pending[t.members[pod.cls][result.members[index]]]->Key();
    }
  }
  if (counted || !is_now) return "";
  const gpu::Placement placement = model.layouts().placements()[slot.placement];
  for (const cluster::Instance& instance : info.instances) {
    if (instance.placement == placement) return instance.pod;
  }
  return "";
}

bool LacksBeyondHolders(const Translation& t, const StagedResult& result, int cls,
                        const FuturePlace& place) {
  if (!place.short_of_resources) return false;
  std::set<std::string> holders;
  for (const SlotInTheWay& slot : place.in_the_way) holders.insert(HolderOf(t, result, slot));
  const int64_t* now = result.draft.FreeOf(place.node);
  std::vector<int64_t> free(now, now + t.problem.dimensions);
  for (const auto& pod : t.nodes[place.node]->pods) {
    if (!holders.contains(pod->Key())) continue;
    const cluster::ResourceVector held = cluster::RequestsOf(*pod);
    for (size_t r = 0; r < free.size(); ++r) free[r] += held.Get(t.dimensions[r]);
  }
  for (const uint32_t index : result.draft.PodsOn(place.node)) {
    const PlacedPod& pod = result.draft.pods()[index];
    const bool holds =
        pod.alive && holders.contains(t.pending[t.members[pod.cls][result.members[index]]]->Key());
    if (!holds) continue;
    const std::vector<int64_t>& held = t.problem.classes[pod.cls].requests;
    for (size_t r = 0; r < free.size(); ++r) free[r] += held[r];
  }
  const std::vector<int64_t>& asked = t.problem.classes[cls].requests;
  for (size_t r = 0; r < free.size(); ++r) {
    if (asked[r] > 0 && asked[r] > free[r]) return true;
  }
  return false;
}

std::string InTheWayText(const Translation& translation, const StagedResult& result, int cls,
                         const FuturePlace& place) {
  std::vector<std::string> parts;
  for (const SlotInTheWay& slot : place.in_the_way) {
    if (parts.size() == kMaxNamed) {
      parts.push_back(fmt::format("{} more", place.in_the_way.size() - kMaxNamed));
      break;
    }
    const std::string holder = HolderOf(translation, result, slot);
    parts.push_back(fmt::format("{} ({})",
                                holder.empty() ? "its unknown user" : scheduling::PodText(holder),
                                SlotText(translation, slot)));
  }
  if (LacksBeyondHolders(translation, result, cls, place)) parts.emplace_back("other pods");
  return parts.empty() ? "nothing" : Join(parts, ", ");
}

}  // namespace nos::planning
