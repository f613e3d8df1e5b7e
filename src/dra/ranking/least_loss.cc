#include "dra/least_loss.h"

#include <algorithm>
#include <bit>

#include "dra/placement/gpus.h"
#include "dra/pools/node_view.h"

namespace nos::dra {
namespace {

using gpu::LayoutId;
using gpu::LayoutTable;

constexpr uint64_t kOneGpu = uint64_t{1} << 20;  // resolution of losses in keys

// The instances of a GPU that are in use.
struct GpuState {
  LayoutId layout = LayoutTable::kEmpty;
  bool whole = false;
  bool unknown = false;  // an instance that the catalogue does not know, or contradicting ones
  bool empty() const { return layout == LayoutTable::kEmpty && !whole && !unknown; }
};

void Take(GpuState& state, gpu::PlacementId placement, const GpuRule& rule) {
  if (placement == GpuPlace::kWhole) {
    state.whole = true;
  } else if (placement == GpuPlace::kUnknown || state.unknown) {
    state.unknown = true;
  } else if (((rule.fragmentation.layouts().Members(state.layout) >> placement) & 1U) == 0) {
    const LayoutId next = rule.fragmentation.layouts().Add(state.layout, placement);
    state.unknown = next == LayoutTable::kIllegal;
    if (!state.unknown) state.layout = next;
  }
}

int InstancesOf(const LayoutTable& table, LayoutId layout) {
  return std::popcount(table.Members(layout));
}

int SlotsOf(const LayoutTable& table, LayoutId layout) {
  return std::popcount(table.Slots(layout));
}

// The GPUs of one node with their use.
class NodeGpus {
 public:
  NodeGpus(const NodeView& view, const std::shared_ptr<GpuReader>& reader) : view_(view) {
    for (const PoolView& pool : view.pools) {
      first_.push_back(states_.size());
      tables_.push_back(pool.usable() ? &pool.generation->GpusBy(reader) : nullptr);
      if (tables_.back() == nullptr) continue;
      states_.resize(states_.size() + tables_.back()->rules().size());
      if (tables_.back()->rules().empty()) continue;
      const std::vector<PoolDevice>& devices = pool.generation->devices();
      for (size_t i = 0; i < devices.size(); ++i) {
        if (devices[i].use == nullptr || tables_.back()->at(i).gpu == GpuPlace::kNoGpu) continue;
        const GpuPlace& place = tables_.back()->at(i);
        Take(states_[first_.back() + place.gpu], place.placement,
             *tables_.back()->rules()[place.gpu]);
      }
    }
  }

  // A device's part of a GPU. `rule` is null if it is none.
  struct Part {
    const GpuRule* rule = nullptr;
    size_t gpu = 0;
    gpu::PlacementId placement = 0;
  };
  Part PartOf(uint32_t device) const {
    const ViewDevice& at = view_.devices[device];
    const GpuPlace& place = tables_[at.pool]->at(at.index);
    if (place.gpu == GpuPlace::kNoGpu) return {};
    return {tables_[at.pool]->rules()[place.gpu], first_[at.pool] + place.gpu, place.placement};
  }
  std::vector<GpuState>& states() { return states_; }

  // The rule of each GPU.
  std::vector<const GpuRule*> Rules() const {
    std::vector<const GpuRule*> rules;
    for (const GpuTable* table : tables_) {
      if (table != nullptr) rules.insert(rules.end(), table->rules().begin(), table->rules().end());
    }
    return rules;
  }

 private:
  const NodeView& view_;
  std::vector<const GpuTable*> tables_;  // by pool; null: no device may be used
  std::vector<size_t> first_;            // by pool: its first GPU
  std::vector<GpuState> states_;
};

// Memory that is left of a device that claims share; 0: no claim has a share of it.
int64_t MemoryLeft(const NodeView& view, uint32_t device) {
  static const Name kMemory("memory");
  const ViewDevice& at = view.devices[device];
  const PoolDevice& known = view.pools[at.pool].generation->devices()[at.index];
  if (known.use == nullptr || known.use->shares == 0) return 0;
  const auto total =
      std::ranges::find(*known.device->capacity, kMemory, &Capacities::value_type::first);
  const auto used = std::ranges::find(known.use->consumed, kMemory, &Amounts::value_type::first);
  if (total == known.device->capacity->end() || used == known.use->consumed.end()) return 0;
  return std::max<int64_t>(total->second.value.Value() - used->second.Value(), 0);
}

// Lower is better; nullopt: the device is not ranked.
std::optional<uint64_t> KeyOf(const NodeGpus::Part& part, const GpuState& state) {
  if (part.rule == nullptr || part.placement == GpuPlace::kUnknown || state.unknown) return {};
  const LayoutTable& table = part.rule->fragmentation.layouts();
  const auto empty =
      static_cast<uint64_t>(std::max(part.rule->fragmentation.Potential(LayoutTable::kEmpty), 1));
  const auto members = static_cast<uint64_t>(InstancesOf(table, state.layout));
  const auto slots = static_cast<uint64_t>(SlotsOf(table, state.layout));
  uint64_t loss = 0, start = 0;
  if (part.placement == GpuPlace::kWhole) {
    // Others share a GPU that is in use already. An empty one is next.
    if (!state.whole) loss = kOneGpu + (state.empty() ? 0 : 1);
  } else {
    start = table.placements()[part.placement].start;
    const LayoutId after = table.Add(state.layout, part.placement);
    const bool shared = ((table.Members(state.layout) >> part.placement) & 1U) != 0;
    if (state.whole || (after == LayoutTable::kIllegal && !shared)) return {};
    if (!shared) {
      const int lost = part.rule->fragmentation.Potential(state.layout) -
                       part.rule->fragmentation.Potential(after);
      loss = static_cast<uint64_t>(std::max(lost, 0)) * kOneGpu / empty;
    }
  }
  // Bits from the highest: loss, free slots, missing instances, layout, start from the end.
  return loss << 35 | (32 - slots) << 29 | (64 - members) << 22 | uint64_t{state.layout} << 5 |
         (31 - start);
}

}  // namespace

LeastLoss::LeastLoss(const gpu::Catalogue& catalogue)
    : reader_(std::make_shared<GpuReader>(catalogue)) {}

void LeastLoss::Rank(const NodeView& view, std::span<const DeviceChoice> chosen,
                     std::vector<DeviceChoice>& devices) const {
  if (devices.size() < 2) return;
  NodeGpus gpus(view, reader_);
  if (gpus.states().empty()) return;
  for (const DeviceChoice& choice : chosen) {
    const NodeGpus::Part part = gpus.PartOf(choice.index);
    if (part.rule != nullptr) Take(gpus.states()[part.gpu], part.placement, *part.rule);
  }
  struct Ranked {
    uint64_t key;
    int64_t left;  // of shared memory: the fullest device first
    uint32_t device;
    auto operator<=>(const Ranked&) const = default;
  };
  std::vector<Ranked> ranked;
  std::vector<uint32_t> places;
  ranked.reserve(devices.size());
  places.reserve(devices.size());
  for (uint32_t i = 0; i < devices.size(); ++i) {
    const NodeGpus::Part part = gpus.PartOf(devices[i].index);
    const auto key = part.rule == nullptr ? std::nullopt : KeyOf(part, gpus.states()[part.gpu]);
    if (!key) continue;
    ranked.push_back({*key, MemoryLeft(view, devices[i].index), devices[i].index});
    places.push_back(i);
  }
  std::sort(ranked.begin(), ranked.end());
  for (size_t i = 0; i < ranked.size(); ++i) devices[places[i]].index = ranked[i].device;
}

bool LeastLoss::Ranks(const NodeView& view) const {
  return std::ranges::any_of(view.pools, [&](const PoolView& pool) {
    return pool.usable() && !pool.generation->GpusBy(reader_).rules().empty();
  });
}

DeviceLoss LeastLoss::LossOf(const NodeView& view, std::span<const DeviceChoice> chosen) const {
  NodeGpus gpus(view, reader_);
  const std::vector<const GpuRule*> rules = gpus.Rules();
  const std::vector<GpuState> before = gpus.states();
  std::vector<bool> touched(before.size());
  bool whole = false;
  for (const DeviceChoice& choice : chosen) {
    const NodeGpus::Part part = gpus.PartOf(choice.index);
    if (part.rule == nullptr) continue;
    Take(gpus.states()[part.gpu], part.placement, *part.rule);
    touched[part.gpu] = true;
    whole = whole || part.placement == GpuPlace::kWhole;
  }
  DeviceLoss loss;
  for (size_t i = 0; i < before.size(); ++i) {
    const GpuState& after = gpus.states()[i];
    const LayoutTable& table = rules[i]->fragmentation.layouts();
    const int all = rules[i]->fragmentation.Potential(LayoutTable::kEmpty);
    const auto left = [&](const GpuState& state) {
      return state.whole ? 0 : rules[i]->fragmentation.Potential(state.layout);
    };
    if (touched[i] && all > 0) {
      loss.gpus += static_cast<double>(left(before[i]) - left(after)) / all;
    }
    if (touched[i] && !after.whole) {
      const LayoutId layout = before[i].layout;
      loss.tie += static_cast<uint32_t>(64 - InstancesOf(table, layout)) << 16 | layout;
    }
    if ((touched[i] && !after.whole) || (whole && after.empty())) {
      loss.free_slots += rules[i]->model.slots() - SlotsOf(table, after.layout);
    }
  }
  return loss;
}

}  // namespace nos::dra
