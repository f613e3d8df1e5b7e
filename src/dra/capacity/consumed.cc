#include "dra/capacity/consumed.h"

#include <algorithm>
#include <limits>

namespace nos::dra {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

const Quantity* FindAmount(const Amounts& amounts, const Name& name) {
  const auto found = std::find_if(amounts.begin(), amounts.end(),
                                  [&](const auto& entry) { return entry.first == name; });
  return found == amounts.end() ? nullptr : &found->second;
}

bool IsMilli(Quantity quantity) { return Quantity::FromMilli(quantity.MilliValue()) == quantity; }

// Integer arithmetic on a range, in whole units or in thousandths.
class RangeUnits {
 public:
  RangeUnits(const RequestPolicy::Range& range, Quantity step, bool fractional)
      : milli_(fractional && AllMilli(range, step)),
        min_(In(range.min.value_or(Quantity()))),
        step_(In(step)) {}

  // `request`, raised to the next step above the minimum; nothing if that cannot be expressed.
  std::optional<Quantity> RoundUp(Quantity request) const {
    if (milli_ ? !IsMilli(request) : request >= Quantity::FromValue(kMax)) return std::nullopt;
    if (step_ <= 0) return std::nullopt;
    const __int128 above = __int128{In(request)} - min_;
    const __int128 steps = above / step_ + (above % step_ != 0 ? 1 : 0);
    const __int128 rounded = min_ + steps * step_;
    if (rounded > kMax || rounded < -kMax) return std::nullopt;
    const auto value = static_cast<int64_t>(rounded);
    return milli_ ? Quantity::FromMilli(value) : Quantity::FromValue(value);
  }

  bool OnStep(Quantity amount) const {
    if (step_ <= 0 || (milli_ && !IsMilli(amount))) return false;
    return (__int128{In(amount)} - min_) % step_ == 0;
  }

 private:
  static bool AllMilli(const RequestPolicy::Range& range, Quantity step) {
    return IsMilli(range.min.value_or(Quantity())) && IsMilli(range.max.value_or(Quantity())) &&
           IsMilli(step) && step.MilliValue() >= 1;
  }
  int64_t In(Quantity quantity) const { return milli_ ? quantity.MilliValue() : quantity.Value(); }

  bool milli_;
  int64_t min_, step_;
};

std::optional<Quantity> RoundedUp(Quantity request, const RequestPolicy& policy, bool fractional) {
  if (policy.valid_range && policy.valid_range->min) {
    const RequestPolicy::Range& range = *policy.valid_range;
    if (request < *range.min) return range.min;
    return range.step ? RangeUnits(range, *range.step, fractional).RoundUp(request) : request;
  }
  for (const Quantity valid : policy.valid_values) {
    if (request <= valid) return valid;
  }
  return request;
}

bool Allows(const RequestPolicy& policy, Quantity amount, bool fractional) {
  if (policy.default_amount == amount) return true;
  if (policy.valid_range) {
    const RequestPolicy::Range& range = *policy.valid_range;
    if (range.max && amount > *range.max) return false;
    return !range.step || RangeUnits(range, *range.step, fractional).OnStep(amount);
  }
  return policy.valid_values.empty() ||
         std::find(policy.valid_values.begin(), policy.valid_values.end(), amount) !=
             policy.valid_values.end();
}

std::optional<Quantity> AmountOf(const Quantity* request, const Capacity& capacity,
                                 bool fractional) {
  if (request == nullptr) {
    return capacity.policy ? capacity.policy->default_amount.value_or(capacity.value)
                           : capacity.value;
  }
  return capacity.policy ? RoundedUp(*request, *capacity.policy, fractional) : *request;
}

}  // namespace

Consumed ConsumedBy(const std::optional<Amounts>& request, const Capacities& capacities,
                    bool fractional) {
  Consumed result;
  const auto known = [&](const auto& wanted) {
    return std::any_of(capacities.begin(), capacities.end(),
                       [&](const auto& entry) { return entry.first == wanted.first; });
  };
  if (request && !std::all_of(request->begin(), request->end(), known)) {
    result.kind = Consumed::Kind::kNo;
    return result;
  }
  // Faults first: the verdict must not depend on the order of the capacities.
  for (const auto& [name, capacity] : capacities) {
    const Quantity* wanted = request ? FindAmount(*request, name) : nullptr;
    const std::optional<Quantity> amount = AmountOf(wanted, capacity, fractional);
    if (!amount || *amount < Quantity()) {
      result.kind = amount ? Consumed::Kind::kNegative : Consumed::Kind::kNotRepresentable;
      result.faulty = name;
      return result;
    }
    result.amounts.emplace_back(name, *amount);
  }
  for (size_t i = 0; i < capacities.size(); ++i) {
    const auto& policy = capacities[i].second.policy;
    if (policy && !Allows(*policy, result.amounts[i].second, fractional)) {
      result.kind = Consumed::Kind::kNo;
    }
  }
  result.fits_unused = Fits(result.amounts, {}, capacities);
  return result;
}

bool Fits(const Amounts& amounts, const Amounts& used, const Capacities& capacities) {
  return std::all_of(capacities.begin(), capacities.end(), [&](const auto& entry) {
    const Quantity* amount = FindAmount(amounts, entry.first);
    const Quantity* taken = FindAmount(used, entry.first);
    return (amount ? *amount : Quantity()) + (taken ? *taken : Quantity()) <= entry.second.value;
  });
}

void AddAmounts(Amounts& total, const Amounts& amounts, bool add) {
  for (const auto& [name, amount] : amounts) {
    auto found = std::find_if(total.begin(), total.end(),
                              [&](const auto& entry) { return entry.first == name; });
    if (found == total.end()) found = total.insert(total.end(), {name, Quantity()});
    found->second = add ? found->second + amount : found->second - amount;
  }
}

}  // namespace nos::dra
