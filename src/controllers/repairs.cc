#include "controllers/repairs.h"

#include <algorithm>
#include <set>

namespace nos::controllers {

size_t Repairs::Update(const std::vector<Node>& nodes, size_t limit, Time now, const Write& write) {
  size_t repaired = 0;
  std::set<std::string_view> present;
  for (const Node& node : nodes) {
    present.insert(node->meta.name);
    State& state = states_[node->meta.name];
    if (repaired >= limit || state.whole == node) continue;
    if (Repair(node, state, now, write)) ++repaired;
  }
  std::erase_if(states_, [&](const auto& state) { return !present.contains(state.first); });
  return repaired;
}

bool Repairs::Repair(const Node& node, State& state, Time now, const Write& write) const {
  state.waiting = state.until > now;
  if (state.waiting) return false;
  const cluster::SpecRepair repair =
      cluster::RepairSpec(*node, cluster::ReadNodeGpus(*node, catalogue_));
  if (repair.patch.empty()) {
    state.whole = node;
    return false;
  }
  if (now - state.until >= pauses_.limit) state.repairs = 0;
  state.until = now + pauses_.After(++state.repairs);
  write(node, repair);
  return true;
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
