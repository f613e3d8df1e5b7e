#include "dra/counters/sets.h"

namespace nos::dra {

bool CounterSets::Add(const Name& scope, const CounterSet& set) {
  const auto index = static_cast<uint32_t>(states_.size());
  if (!index_.try_emplace({scope.id(), set.name.id()}, index).second) return false;
  CounterState& state = states_.emplace_back();
  state.scope = scope;
  state.set = &set;
  for (const auto& counter : set.counters) state.left.push_back(counter.second);
  return true;
}

std::optional<uint32_t> CounterSets::Find(const Name& scope, const Name& set) const {
  const auto found = index_.find({scope.id(), set.id()});
  if (found == index_.end()) return std::nullopt;
  return found->second;
}

const Name* CounterSets::FirstUnknown(const CounterSet& set, const Amounts& needs) {
  size_t known = 0;
  ForEachNeed(set, needs, [&](size_t, Quantity) { ++known; });
  return known < needs.size() ? &needs[known].first : nullptr;
}

void CounterSets::Consume(uint32_t index, const Amounts& needs, bool take) {
  CounterState& state = states_[index];
  ForEachNeed(*state.set, needs, [&](size_t counter, Quantity amount) {
    Quantity& left = state.left[counter];
    left = take ? left - amount : left + amount;
  });
}

}  // namespace nos::dra
