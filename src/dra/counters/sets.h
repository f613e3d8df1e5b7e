// The counters that the devices of a pool share, and how much of each is left.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "dra/counters/compatibility.h"
#include "dra/objects.h"

namespace nos::dra {

// The counters of one set, in the order of the set's names. Needs are sorted by name too.
struct CounterState {
  Name scope;  // the slice's name if the set serves only devices of its slice
  const CounterSet* set = nullptr;
  std::vector<Quantity> left;   // negative: overdrawn
  Compatibility compatibility;  // of the allocated devices
};

class CounterSets {
 public:
  // Refers to `set`. False if the scope has a set of this name already.
  bool Add(const Name& scope, const CounterSet& set);
  std::optional<uint32_t> Find(const Name& scope, const Name& set) const;
  // The first counter of `needs` that the set lacks; null: it has all.
  static const Name* FirstUnknown(const CounterSet& set, const Amounts& needs);

  size_t size() const { return states_.size(); }
  const CounterState& at(uint32_t index) const { return states_[index]; }
  // Takes the amounts from what is left of the set, or returns them.
  void Consume(uint32_t index, const Amounts& needs, bool take);
  void SetCompatibility(uint32_t index, Compatibility compatibility) {
    states_[index].compatibility = std::move(compatibility);
  }

 private:
  std::vector<CounterState> states_;
  std::map<std::pair<const void*, const void*>, uint32_t> index_;  // by identity of scope and name
};

// Calls visit(position of the counter in the set, amount) for each need that the set has.
template <typename Visit>
void ForEachNeed(const CounterSet& set, const Amounts& needs, Visit visit) {
  size_t at = 0;
  for (const auto& [name, amount] : needs) {
    while (at < set.counters.size() && set.counters[at].first != name) ++at;
    if (at == set.counters.size()) return;
    visit(at, amount);
  }
}

}  // namespace nos::dra
