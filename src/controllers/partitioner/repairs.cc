#include "controllers/partitioner/repairs.h"

#include <algorithm>
#include <set>
#include <utility>

namespace nos::controllers {

std::vector<Repairs::Found> Repairs::Update(const std::vector<Node>& nodes, size_t limit,
                                            Time now) {
  std::vector<Found> found;
  std::set<std::string_view> present;
  for (const Node& node : nodes) {
    present.insert(node->meta.name);
    State& state = states_[node->meta.name];
    if (found.size() >= limit || state.whole == node) continue;
    auto repair = Look(node, state, now);
    if (repair) found.push_back({node, std::move(*repair)});
  }
  std::erase_if(states_, [&](const auto& state) { return !present.contains(state.first); });
  return found;
}

std::optional<cluster::SpecRepair> Repairs::Look(const Node& node, State& state, Time now) const {
  state.waiting = state.until > now;
  if (state.waiting) return std::nullopt;
  cluster::SpecRepair repair = cluster::RepairSpec(*node, cluster::ReadNodeGpus(*node, catalogue_));
  if (repair.patch.empty()) {
    state.whole = node;
    return std::nullopt;
  }
  if (now - state.until >= pauses_.limit) state.repairs = 0;
  state.until = now + pauses_.After(++state.repairs);
  return repair;
}

std::optional<Time> Repairs::NextChange(Time now) const {
  std::optional<Time> next;
  for (const auto& [name, state] : states_) {
    if (state.waiting && state.until > now)
      next = std::min(next.value_or(state.until), state.until);
  }
  return next;
}

}  // namespace nos::controllers
