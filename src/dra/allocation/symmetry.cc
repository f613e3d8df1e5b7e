#include "dra/allocation/symmetry.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace nos::dra {
namespace {

// Bounds memory; a search with more failed states continues without remembering further ones.
constexpr size_t kMaxFailures = 500'000;

template <typename T>
void AppendRaw(const T& value, std::string& text) {
  text.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

void AppendAmounts(const Amounts& amounts, std::string& text) {
  for (const auto& [name, amount] : amounts) {
    AppendRaw(name.id(), text);
    AppendRaw(amount, text);
  }
  text += ';';
}

class Numbers {
 public:
  uint32_t Of(std::string text) {
    return numbers_.try_emplace(std::move(text), static_cast<uint32_t>(numbers_.size()))
        .first->second;
  }

 private:
  std::map<std::string, uint32_t> numbers_;
};

}  // namespace

Symmetry::Symmetry(Screen& screen, Draft& draft, const std::vector<PreparedClaim>& claims)
    : screen_(screen), draft_(draft) {
  for (const PreparedClaim& claim : claims) constraint_counts_.push_back(claim.constraints.size());
  Classify(claims);
  MakeGroups();
}

void Symmetry::Classify(const std::vector<PreparedClaim>& claims) {
  const size_t count = screen_.view().devices.size();
  std::vector<std::string> texts(count);
  for (size_t c = 0; c < claims.size(); ++c) {
    for (const auto& alternatives : claims[c].requests) {
      for (const PreparedRequest& request : alternatives) {
        std::optional<AllocationFault> fault;
        const auto& candidates =
            request.all ? screen_.AllDevices(request, fault) : screen_.Candidates(request);
        size_t next = 0;
        for (uint32_t device = 0; device < count; ++device) {
          const bool listed = next < candidates.size() && candidates[next].device == device;
          texts[device] +=
              listed ? static_cast<char>('A' + static_cast<int>(candidates[next].fault)) : '-';
          if (!listed) continue;
          ++next;
          for (const size_t constraint : request.constraints) {
            const Attribute* value = draft_.Lookup(c, constraint, request, device);
            if (value != nullptr) AppendValue(*value, texts[device]);
            texts[device] += '.';
          }
        }
      }
    }
  }
  Numbers local, all;
  for (uint32_t i = 0; i < count; ++i) {
    const PoolDevice& device = screen_.view().Find(screen_.view().devices[i]);
    AppendRaw(device.device->capacity.id(), texts[i]);
    texts[i] += device.device->allow_multiple ? 's' : 'x';
    if (device.use != nullptr) {
      AppendRaw(device.use->exclusive, texts[i]);
      AppendRaw(device.use->shares, texts[i]);
      AppendAmounts(device.use->consumed, texts[i]);
    }
    local_classes_.push_back(local.Of(texts[i]));
    if (!device.device->consumes->empty()) {
      AppendRaw(device.device->consumes.id(), texts[i]);
      AppendRaw(screen_.view().devices[i].pool, texts[i]);
    }
    classes_.push_back(all.Of(std::move(texts[i])));
  }
}

void Symmetry::MakeGroups() {
  const NodeView& view = screen_.view();
  const auto count = static_cast<uint32_t>(view.devices.size());
  std::vector<uint32_t> parent(count);
  std::iota(parent.begin(), parent.end(), 0U);
  const auto root = [&](uint32_t device) {
    while (parent[device] != device) device = parent[device] = parent[parent[device]];
    return device;
  };
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> first_of_set;
  for (uint32_t i = 0; i < count; ++i) {
    const PoolDevice& device = view.Find(view.devices[i]);
    const uint32_t pool = view.devices[i].pool;
    for (size_t c = 0; c < device.device->consumes->size(); ++c) {
      const uint32_t set = view.pools[pool].generation->SetOf(device, c);
      const uint32_t first = first_of_set.try_emplace({pool, set}, i).first->second;
      const uint32_t a = root(i), b = root(first);
      parent[std::max(a, b)] = std::min(a, b);
    }
  }
  std::map<uint32_t, uint32_t> index_of;
  group_of_.resize(count);
  for (uint32_t i = 0; i < count; ++i) {
    const auto [found, added] =
        index_of.try_emplace(root(i), static_cast<uint32_t>(groups_.size()));
    if (added) groups_.emplace_back();
    group_of_[i] = found->second;
    groups_[found->second].devices.push_back(i);
  }
  Numbers kinds;
  for (Group& group : groups_) group.kind = kinds.Of(KindOf(group));
}

std::string Symmetry::KindOf(const Group& group) const {
  const NodeView& view = screen_.view();
  std::string text;
  std::map<uint32_t, size_t> local_sets;
  for (const uint32_t i : group.devices) {
    AppendRaw(local_classes_[i], text);
    const PoolDevice& device = view.Find(view.devices[i]);
    const Generation& generation = *view.pools[view.devices[i].pool].generation;
    const Consumptions& consumes = *device.device->consumes;
    for (size_t c = 0; c < consumes.size(); ++c) {
      const uint32_t set = generation.SetOf(device, c);
      const auto [local, added] = local_sets.try_emplace(set, local_sets.size());
      AppendRaw(local->second, text);
      AppendAmounts(consumes[c].counters, text);
      for (const Name& name : consumes[c].groups) AppendRaw(name.id(), text);
      if (!added) continue;
      const CounterState& state = generation.counters().at(set);
      for (size_t n = 0; n < state.left.size(); ++n) {
        AppendRaw(state.set->counters[n].first.id(), text);
        AppendRaw(state.left[n], text);
      }
      text += state.compatibility.occupied() ? '1' : '0';
      text += state.compatibility.contradictory() ? '1' : '0';
      for (const Name& name : state.compatibility.common()) AppendRaw(name.id(), text);
    }
  }
  return text;
}

std::string Symmetry::StateOf(size_t index, const Place& place,
                              const std::vector<std::vector<const Pick*>>& picks) const {
  const Group& group = groups_[index];
  const bool before = group.devices.back() < place.from;
  if (before && place.last) return {};
  std::string text(1, before ? 'n' : 'a');
  if (!before && group.devices.front() < place.from) {
    text = 'p';
    const auto from = std::lower_bound(group.devices.begin(), group.devices.end(), place.from);
    AppendRaw(from - group.devices.begin(), text);
  }
  std::vector<std::string> parts;
  for (const Pick* pick : picks[index]) {
    const auto local = std::lower_bound(group.devices.begin(), group.devices.end(), pick->device) -
                       group.devices.begin();
    std::string& part = parts.emplace_back();
    AppendRaw(local, part);
    part += pick->request == place.chosen ? 'r' : pick->claim == place.claim ? 'c' : 'o';
    part += pick->counted ? '1' : '0';
    if (pick->share != nullptr) AppendAmounts(*pick->share, part);
  }
  std::sort(parts.begin(), parts.end());
  for (const std::string& part : parts) text += part;
  return text;
}

Symmetry::Key Symmetry::KeyOf(const Place& place) const {
  std::vector<std::vector<const Pick*>> picks(groups_.size());
  for (const Pick& pick : draft_.picks()) picks[group_of_[pick.device]].push_back(&pick);
  std::map<std::pair<uint32_t, std::string>, size_t> states;
  for (size_t i = 0; i < groups_.size(); ++i) {
    std::string state = StateOf(i, place, picks);
    if (!state.empty()) ++states[{groups_[i].kind, std::move(state)}];
  }
  std::string text;
  for (const size_t part : {place.claim, place.request, place.alternative,
                            static_cast<size_t>(place.taken), draft_.PicksOf(place.claim)}) {
    AppendRaw(part, text);
  }
  for (size_t i = 0; i < constraint_counts_[place.claim]; ++i) {
    draft_.constraint(place.claim, i).AppendState(text);
  }
  for (const auto& [state, count] : states) {
    AppendRaw(state.first, text);
    text += state.second;
    AppendRaw(count, text);
    text += '/';
  }
  const size_t first = std::hash<std::string>()(text);
  text += '\1';
  return {first, std::hash<std::string>()(text)};
}

bool Symmetry::HasFailed(const Place& place) { return failed_.contains(KeyOf(place)); }

void Symmetry::AddFailure(const Place& place) {
  if (failed_.size() < kMaxFailures) failed_.insert(KeyOf(place));
}

}  // namespace nos::dra
