#include "dra/objects.h"

namespace nos::dra {
namespace {

size_t HashOf(const Name& name) { return std::hash<Name>()(name); }

// Equal quantities have equal hashes; fractions of a thousandth do not matter here.
size_t HashOf(const Quantity& quantity) { return std::hash<int64_t>()(quantity.MilliValue()); }

size_t HashOf(const Amounts& amounts) {
  size_t seed = amounts.size();
  for (const auto& [name, amount] : amounts) {
    AddHash(seed, HashOf(name));
    AddHash(seed, HashOf(amount));
  }
  return seed;
}

size_t HashOf(const Attribute& attribute) {
  size_t seed = static_cast<size_t>(attribute.type);
  AddHash(seed, std::hash<int64_t>()(attribute.number));
  AddHash(seed, HashOf(attribute.text));
  for (const Attribute& element : attribute.elements) AddHash(seed, HashOf(element));
  return seed;
}

}  // namespace

size_t NamedAttributeHash::operator()(const NamedAttribute& attribute) const {
  size_t seed = HashOf(attribute.first);
  AddHash(seed, HashOf(attribute.second));
  return seed;
}

size_t AttributesHash::operator()(const Attributes& attributes) const {
  size_t seed = attributes.size();
  for (const Attributes::Entry& entry : attributes.entries()) {
    AddHash(seed, std::hash<const void*>()(entry.id()));
  }
  return seed;
}

size_t CapacitiesHash::operator()(const Capacities& capacities) const {
  size_t seed = capacities.size();
  for (const auto& [name, capacity] : capacities) {
    AddHash(seed, HashOf(name));
    AddHash(seed, HashOf(capacity.value));
  }
  return seed;
}

size_t ConsumptionsHash::operator()(const Consumptions& consumptions) const {
  size_t seed = consumptions.size();
  for (const Consumption& consumption : consumptions) {
    AddHash(seed, HashOf(consumption.counter_set));
    AddHash(seed, HashOf(consumption.counters));
  }
  return seed;
}

bool Tolerates(const DeviceToleration& toleration, const DeviceTaint& taint) {
  if (!toleration.effect.empty() && toleration.effect != taint.effect) return false;
  if (!toleration.key.empty() && toleration.key != taint.key) return false;
  if (toleration.op == "Exists") return true;
  return (toleration.op.empty() || toleration.op == "Equal") && toleration.value == taint.value;
}

bool Selects(const DeviceTaintRule& rule, const Name& driver, const Name& pool,
             const Name& device) {
  if (!rule.selector) return false;
  const auto matches = [](const std::optional<std::string>& wanted, const Name& name) {
    return !wanted || *wanted == name.str();
  };
  return matches(rule.selector->driver, driver) && matches(rule.selector->pool, pool) &&
         matches(rule.selector->device, device);
}

}  // namespace nos::dra
