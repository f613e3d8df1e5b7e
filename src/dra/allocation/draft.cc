#include "dra/allocation/draft.h"

#include <fmt/format.h>

#include <algorithm>

namespace nos::dra {

Draft::Draft(Screen& screen, const std::vector<PreparedClaim>& claims)
    : screen_(screen),
      claims_(claims),
      counts_(claims.size()),
      holders_(screen.view().devices.size()),
      shares_(screen.view().devices.size()),
      pools_(screen.view().pools.size()) {
  for (const PreparedClaim& claim : claims) {
    std::vector<AttributeConstraint>& constraints = constraints_.emplace_back();
    for (const PreparedConstraint& constraint : claim.constraints) {
      constraints.emplace_back(constraint.distinct, screen.features().list_attributes);
    }
  }
}

bool Draft::Holds(size_t claim, uint32_t device) const {
  return std::any_of(picks_.begin(), picks_.end(), [&](const Pick& pick) {
    return pick.claim == claim && pick.device == device && pick.share == nullptr;
  });
}

bool Draft::IsOfRequest(const PreparedRequest& request, uint32_t device) const {
  return IsTouched(device) && std::any_of(picks_.begin(), picks_.end(), [&](const Pick& pick) {
           return pick.request == &request && pick.device == device;
         });
}

bool Draft::CountersTaken(uint32_t device) const {
  const DeviceUse* use = Find(device).use;
  if (use != nullptr && use->shares > 0) return true;
  return shares_[device] > 0 && std::any_of(picks_.begin(), picks_.end(), [&](const Pick& pick) {
           return pick.device == device && pick.counted;
         });
}

bool Draft::IsInUse(size_t claim, const PreparedRequest& request, uint32_t device) const {
  const PoolDevice& found = Find(device);
  const bool sharable = screen_.Sharable(*found.device);
  if (request.admin) return !sharable && holders_[device] > 0 && Holds(claim, device);
  if (holders_[device] > 0) return true;
  return found.use != nullptr && (found.use->exclusive > 0 || (found.use->shares > 0 && !sharable));
}

bool Draft::IsFree(size_t claim, const PreparedRequest& request, uint32_t device) const {
  if (IsInUse(claim, request, device)) return false;
  if (request.admin) return true;
  return (screen_.Sharable(*Find(device).device) && CountersTaken(device)) || CountersFit(device);
}

Draft::Answer Draft::Take(size_t claim, const PreparedRequest& request, uint32_t device) {
  if (!IsFree(claim, request, device)) return Answer::kNo;
  const PoolDevice& found = Find(device);
  const bool sharable = screen_.Sharable(*found.device);
  const Amounts* amounts = nullptr;
  if (screen_.features().consumable_capacity) {
    const Consumed& consumed = screen_.ConsumedOf(request, *found.device);
    if (consumed.kind != Consumed::Kind::kOk || !ShareFits(device, consumed.amounts)) {
      return Answer::kNo;
    }
    if (sharable) amounts = &consumed.amounts;
  }
  const Answer allowed = AddConstraints(claim, request, device);
  if (allowed != Answer::kYes) return allowed;
  Pick pick{&request, claim, device, amounts, false};
  pick.counted = !request.admin && !(sharable && CountersTaken(device));
  if (pick.counted) Consume(device, true);
  ++(amounts == nullptr ? holders_ : shares_)[device];
  ++counts_[claim];
  picks_.push_back(pick);
  if (pick.counted && screen_.features().compatibility_groups) {
    RebuildCompatibility(screen_.view().devices[device].pool);
  }
  return Answer::kYes;
}

void Draft::Undo() {
  const Pick pick = picks_.back();
  picks_.pop_back();
  --counts_[pick.claim];
  --(pick.share == nullptr ? holders_ : shares_)[pick.device];
  if (pick.counted) {
    Consume(pick.device, false);
    if (screen_.features().compatibility_groups) {
      RebuildCompatibility(screen_.view().devices[pick.device].pool);
    }
  }
  RemoveConstraints(pick.claim, *pick.request, pick.request->constraints.size());
}

bool Draft::ShareFits(uint32_t device, const Amounts& amounts) const {
  const PoolDevice& found = Find(device);
  if (shares_[device] == 0 && (found.use == nullptr || found.use->consumed.empty())) {
    static const Amounts none;
    return Fits(amounts, none, *found.device->capacity);
  }
  Amounts used = found.use == nullptr ? Amounts() : found.use->consumed;
  for (const Pick& pick : picks_) {
    if (pick.device == device && pick.share != nullptr) AddAmounts(used, *pick.share, true);
  }
  return Fits(amounts, used, *found.device->capacity);
}

bool Draft::CountersFit(uint32_t device) const {
  const PoolDevice& found = Find(device);
  const Consumptions& consumes = *found.device->consumes;
  if (consumes.empty()) return true;
  const uint32_t pool = screen_.view().devices[device].pool;
  const Generation& generation = *screen_.view().pools[pool].generation;
  const PoolDraft& draft = pools_[pool];
  for (size_t i = 0; i < consumes.size(); ++i) {
    const uint32_t set = generation.SetOf(found, i);
    const CounterState& state = generation.counters().at(set);
    if (screen_.features().compatibility_groups) {
      const Compatibility& compatibility =
          draft.compatibility.empty() ? state.compatibility : draft.compatibility[set];
      if (!compatibility.Admits(consumes[i].groups)) return false;
    }
    const std::vector<Quantity>* used =
        draft.used.empty() || draft.used[set].empty() ? nullptr : &draft.used[set];
    bool enough = true;
    ForEachNeed(*state.set, consumes[i].counters, [&](size_t counter, Quantity amount) {
      const Quantity before = used == nullptr ? Quantity() : (*used)[counter];
      enough = enough && before + amount <= state.left[counter];
    });
    if (!enough) return false;
  }
  return true;
}

void Draft::Consume(uint32_t device, bool take) {
  const PoolDevice& found = Find(device);
  const Consumptions& consumes = *found.device->consumes;
  if (consumes.empty()) return;
  const uint32_t pool = screen_.view().devices[device].pool;
  const Generation& generation = *screen_.view().pools[pool].generation;
  PoolDraft& draft = pools_[pool];
  draft.used.resize(generation.counters().size());
  for (size_t i = 0; i < consumes.size(); ++i) {
    const uint32_t set = generation.SetOf(found, i);
    const CounterState& state = generation.counters().at(set);
    std::vector<Quantity>& used = draft.used[set];
    used.resize(state.left.size());
    ForEachNeed(*state.set, consumes[i].counters, [&](size_t counter, Quantity amount) {
      used[counter] = take ? used[counter] + amount : used[counter] - amount;
    });
  }
}

void Draft::RebuildCompatibility(uint32_t pool) {
  const Generation& generation = *screen_.view().pools[pool].generation;
  std::vector<Compatibility>& states = pools_[pool].compatibility;
  states.clear();
  for (uint32_t set = 0; set < generation.counters().size(); ++set) {
    states.push_back(generation.counters().at(set).compatibility);
  }
  for (const Pick& pick : picks_) {
    if (!pick.counted || screen_.view().devices[pick.device].pool != pool) continue;
    const PoolDevice& device = Find(pick.device);
    const Consumptions& consumes = *device.device->consumes;
    for (size_t i = 0; i < consumes.size(); ++i) {
      states[generation.SetOf(device, i)].Add(consumes[i].groups);
    }
  }
}

const Attribute* Draft::Lookup(size_t claim, size_t constraint, const PreparedRequest& request,
                               uint32_t device) {
  const PreparedConstraint& wanted = claims_[claim].constraints[constraint];
  const PoolDevice& found = Find(device);
  const std::string* expression = FindDerived(request, wanted.attribute);
  if (expression != nullptr) {
    const auto [derived, added] = derived_.try_emplace(
        {expression, found.device->attributes.id(), found.device->capacity.id(),
         found.device->allow_multiple, found.slice->driver.id()});
    if (added) {
      Result<Attribute> value =
          screen_.expressions().Derive(*expression, *found.slice, *found.device);
      if (value.ok()) derived->second = std::move(*value);
    }
    const std::optional<Attribute>& value = derived->second;
    return value ? &*value : nullptr;
  }
  const auto [short_name, added] =
      short_names_.try_emplace({wanted.name.id(), found.slice->driver.id()});
  if (added) short_name->second = ShortName(wanted.attribute, found.slice->driver);
  return FindAttribute(*found.device, wanted.name, short_name->second);
}

Draft::Answer Draft::AddConstraints(size_t claim, const PreparedRequest& request, uint32_t device) {
  for (size_t i = 0; i < request.constraints.size(); ++i) {
    const size_t constraint = request.constraints[i];
    const Attribute* value = Lookup(claim, constraint, request, device);
    const std::string* expression =
        FindDerived(request, claims_[claim].constraints[constraint].attribute);
    Answer answer = Answer::kYes;
    if (value == nullptr && expression != nullptr) {
      const PoolDevice& found = Find(device);
      fault_ = {Fault::kExpressionFailed,
                fmt::format("request {}: derived attribute '{}' fails for device {}: {}",
                            request.name, *expression, found.device->name.str(),
                            screen_.expressions()
                                .Derive(*expression, *found.slice, *found.device)
                                .status()
                                .message()),
                false};
      answer = Answer::kFault;
    } else if (!constraints_[claim][constraint].Add(value)) {
      answer = Answer::kConstraint;
    }
    if (answer == Answer::kYes) continue;
    RemoveConstraints(claim, request, i);
    return answer;
  }
  return Answer::kYes;
}

void Draft::RemoveConstraints(size_t claim, const PreparedRequest& request, size_t count) {
  for (size_t i = count; i > 0; --i) constraints_[claim][request.constraints[i - 1]].Remove();
}

}  // namespace nos::dra
