#include "quota/amounts.h"

#include <algorithm>
#include <limits>

namespace nos::quota {

using cluster::ResourceId;

Amounts Amounts::From(const cluster::ResourceList& list) {
  Amounts amounts;
  for (const auto& [name, quantity] : list) {
    const ResourceId id = cluster::InternResource(name);
    amounts.Set(id,
                amounts.Get(id) + (id == cluster::kCpu ? quantity.MilliValue() : quantity.Value()));
  }
  return amounts;
}

std::optional<Amount> Amounts::Named(ResourceId id) const {
  const auto found = std::ranges::lower_bound(entries_, id, {}, &Entry::first);
  if (found == entries_.end() || found->first != id) return std::nullopt;
  return found->second;
}

void Amounts::Set(ResourceId id, Amount amount) {
  const auto found = std::ranges::lower_bound(entries_, id, {}, &Entry::first);
  if (found != entries_.end() && found->first == id) {
    found->second = amount;
  } else {
    entries_.insert(found, {id, amount});
  }
}

void Amounts::Add(const Amounts& others, int sign) {
  for (const auto& [id, amount] : others.entries_) {
    const auto found = std::ranges::lower_bound(entries_, id, {}, &Entry::first);
    const bool here = found != entries_.end() && found->first == id;
    const Amount sum = (here ? found->second : 0) + sign * amount;
    if (!here && sum != 0) {
      entries_.insert(found, {id, sum});
    } else if (here && sum != 0) {
      found->second = sum;
    } else if (here) {
      entries_.erase(found);
    }
  }
}

Quantity QuantityOf(ResourceId id, Amount amount) {
  using Limits = std::numeric_limits<int64_t>;
  const auto clamped =
      static_cast<int64_t>(std::clamp<Amount>(amount, Limits::min(), Limits::max()));
  return id == cluster::kCpu ? Quantity::FromMilli(clamped) : Quantity::FromValue(clamped);
}

cluster::ResourceList ListOf(const Amounts& amounts) {
  cluster::ResourceList list;
  for (const auto& [id, amount] : amounts.entries()) {
    list[cluster::ResourceName(id)] = QuantityOf(id, amount);
  }
  return list;
}

std::string TextOf(ResourceId id, Amount amount) {
  const Quantity quantity = QuantityOf(id, amount);
  return id == cluster::kMemory || id == cluster::kEphemeralStorage ? quantity.ToBinaryString()
                                                                    : quantity.ToString();
}

}  // namespace nos::quota
