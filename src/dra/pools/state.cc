#include "dra/pools/state.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "cluster/selectors.h"
#include "dra/capacity/consumed.h"

namespace nos::dra {
bool Includes(const NodeSelection& selection, const cluster::Node& node) {
  if (!selection.node_name.empty()) return selection.node_name == node.meta.name;
  if (selection.all_nodes) return true;
  return selection.selector && cluster::MatchesAny(*selection.selector, node);
}

void Pool::Put(SlicePointer slice) {
  slices_[slice->name] = std::move(slice);
  generations_.clear();
}

void Pool::Remove(const std::string& slice) {
  slices_.erase(slice);
  generations_.clear();
}

void Pool::Take(const AllocatedDevice& device) { Change(device, true); }

void Pool::Give(const AllocatedDevice& device) { Change(device, false); }

void Pool::Change(const AllocatedDevice& device, bool take) {
  DeviceUse& use = use_[device.device];
  const bool was_used = !use.empty();
  uint32_t& count = device.share_id.empty() ? use.exclusive : use.shares;
  count = take ? count + 1 : count - std::min<uint32_t>(count, 1);
  if (!device.share_id.empty()) AddAmounts(use.consumed, device.consumed_capacity, take);
  for (const auto& [number, generation] : generations_) {
    generation->Follow(device.device, use, was_used);
  }
  if (take && !use.seen) Remember(device.device, use);
  if (use.empty()) use_.erase(device.device);
}

void Pool::Remember(const Name& device, DeviceUse& use) const {
  for (const auto& [name, slice] : slices_) {
    for (const Device& candidate : slice->devices) {
      if (candidate.name != device) continue;
      use.consumes = candidate.consumes;
      use.seen = true;
    }
  }
}

bool Pool::IsRelevant(const ResourceSlice& slice, const cluster::Node& node) const {
  if (!features_.partitionable_devices &&
      (slice.nodes_per_device || !slice.shared_counters.empty())) {
    return false;
  }
  if (!slice.nodes.empty()) return Includes(slice.nodes, node);
  if (!slice.nodes_per_device.value_or(false)) return false;
  return std::any_of(slice.devices.begin(), slice.devices.end(), [&](const Device& device) {
    return device.nodes != nullptr && Includes(*device.nodes, node);
  });
}

std::vector<SlicePointer> Pool::Relevant(const cluster::Node& node) const {
  std::vector<SlicePointer> relevant;
  for (const auto& [name, slice] : slices_) {
    if (!relevant.empty() && slice->generation < relevant.front()->generation) continue;
    if (!features_.compatibility_groups && NamesGroups(*slice)) continue;
    if (!IsRelevant(*slice, node)) continue;
    if (!relevant.empty() && slice->generation > relevant.front()->generation) relevant.clear();
    relevant.push_back(slice);
  }
  return relevant;
}

const Generation& Pool::At(int64_t generation) {
  std::unique_ptr<Generation>& found = generations_[generation];
  if (found == nullptr) {
    std::vector<SlicePointer> slices;
    for (const auto& [name, slice] : slices_) {
      if (slice->generation != generation) continue;
      if (!features_.compatibility_groups && NamesGroups(*slice)) continue;
      slices.push_back(slice);
    }
    found = std::make_unique<Generation>(std::move(slices), features_, rules_, use_);
  }
  return *found;
}

std::optional<Pool::Part> Pool::For(const cluster::Node& node) {
  const std::vector<SlicePointer> relevant = Relevant(node);
  if (relevant.empty()) return std::nullopt;
  const int64_t number = relevant.front()->generation;
  const Generation& generation = At(number);
  // Slices that disagree about their number: the pool is being updated until the largest is there.
  int64_t expected = 0;
  for (const SlicePointer& slice : relevant) expected = std::max(expected, slice->slice_count);
  if (static_cast<int64_t>(relevant.size()) != expected) {
    const bool obsolete = std::any_of(slices_.begin(), slices_.end(), [&](const auto& entry) {
      return entry.second->generation > number;
    });
    if (obsolete) return std::nullopt;
  }
  Part part;
  part.view.id = id_;
  if (static_cast<int64_t>(relevant.size()) != expected &&
      static_cast<int64_t>(generation.slices().size()) != expected) {
    part.view.incomplete = true;
    return part;
  }
  part.view.generation = &generation;
  part.view.problem = generation.problem();
  CollectDevices(generation, relevant, node, part);
  if (!part.view.problem.empty()) {
    part.devices.clear();
    part.binding_conditions = false;
  }
  return part;
}

void Pool::CollectDevices(const Generation& generation, const std::vector<SlicePointer>& relevant,
                          const cluster::Node& node, Part& part) const {
  std::unordered_set<Name> names;
  size_t next = 0;
  for (size_t i = 0; i < generation.slices().size() && next < relevant.size(); ++i) {
    const ResourceSlice& slice = *generation.slices()[i];
    if (&slice != relevant[next].get()) continue;
    ++next;
    const auto [first, last] = generation.DevicesOf(i);
    for (uint32_t index = first; index < last; ++index) {
      const Device& device = *generation.devices()[index].device;
      if (!names.insert(device.name).second && part.view.problem.empty()) {
        part.view.problem = fmt::format("device {} occurs twice", device.name.str());
      }
      part.binding_conditions = part.binding_conditions || !device.binding_conditions.empty();
      const bool usable = !slice.nodes_per_device.value_or(false) ||
                          (device.nodes != nullptr && Includes(*device.nodes, node));
      if (usable) part.devices.push_back(index);
    }
  }
}

}  // namespace nos::dra
