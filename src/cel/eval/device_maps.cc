#include "cel/eval/device_maps.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cel/values/amount.h"
#include "cel/values/cancelled.h"
#include "cel/values/list.h"
#include "cel/values/semver.h"

namespace nos::cel {
namespace {

const DomainMap kEmpty{""};

constexpr std::string_view kFields[] = {"driver", "allowMultipleAllocations", "attributes",
                                        "capacity"};

// "domain/identifier".
std::pair<std::string_view, std::string_view> Split(std::string_view name,
                                                    std::string_view domain) {
  const size_t slash = name.find('/');
  if (slash == std::string_view::npos) return {domain, name};
  return {name.substr(0, slash), name.substr(slash + 1)};
}

struct NotAVersion {};

}  // namespace

std::optional<Value> DomainMap::Find(const Value& key) const {
  if (!key.is(Kind::kString)) return std::nullopt;
  for (const MapEntry& entry : entries_) {
    if (entry.key.text() == key.text()) return entry.value;
  }
  return std::nullopt;
}

const DomainMap* DomainsMap::FindDomain(const Value& key) const {
  if (!key.is(Kind::kString)) return nullptr;
  for (const DomainMap& domain : domains_) {
    if (domain.domain() == key.text()) return &domain;
  }
  return nullptr;
}

std::optional<Value> DomainsMap::Find(const Value& key) const {
  const DomainMap* const found = FindDomain(key);
  return Value::Of(static_cast<const MapValue*>(found == nullptr ? &kEmpty : found));
}

MapEntry DomainsMap::At(uint64_t index) const {
  const DomainMap& domain = domains_[index];
  return {Value::String(domain.domain()), Value::Of(static_cast<const MapValue*>(&domain))};
}

void DomainsMap::Add(std::string_view domain, MapEntry entry) {
  for (DomainMap& known : domains_) {
    if (known.domain() == domain) return known.Add(entry);
  }
  domains_.emplace_back(domain);
  domains_.back().Add(entry);
}

DeviceMaps::DeviceMaps(const DeviceSpec& spec, std::string& error)
    : driver_(arena_.Copy(spec.driver)),
      allow_multiple_allocations_(spec.allow_multiple_allocations) {
  for (const auto& [name, attribute] : spec.attributes) {
    const auto [domain, id] = Split(arena_.Copy(name), driver_);
    try {
      attributes_.Add(domain, {Value::String(id), Prepare(attribute)});
    } catch (const NotAVersion&) {
      error = fmt::format("attribute {}: not a semantic version", name);
    }
  }
  for (const auto& [name, text] : spec.capacity) {
    const auto [domain, id] = Split(arena_.Copy(name), driver_);
    const Amount* amount = nullptr;
    try {
      amount = Amount::Parse(arena_, text);
    } catch (const Cancelled&) {
      amount = nullptr;  // an exponent of millions
    }
    if (amount == nullptr) {
      error = fmt::format("capacity {}: '{}' is not a quantity", name, text);
      continue;
    }
    capacity_.Add(domain, {Value::String(id), Value::Of(amount)});
  }
}

Value DeviceMaps::PrepareVersion(const Version& version) {
  const Semver* const semver = Semver::Parse(arena_, version.text);
  if (semver == nullptr) throw NotAVersion();
  return Value::Of(semver);
}

template <typename T>
Value DeviceMaps::PrepareList(const std::vector<T>& elements) {
  const std::span<Value> values = arena_.NewArray<Value>(elements.size());
  for (size_t i = 0; i < elements.size(); ++i) values[i] = Prepare(AttributeValue(T(elements[i])));
  return Value::Of(ListValue::Of(arena_, values));
}

Value DeviceMaps::Prepare(const AttributeValue& attribute) {
  if (const auto* integer = std::get_if<int64_t>(&attribute)) return Value::Int(*integer);
  if (const auto* boolean = std::get_if<bool>(&attribute)) return Value::Bool(*boolean);
  if (const auto* text = std::get_if<std::string>(&attribute)) {
    return Value::String(arena_.Copy(*text));
  }
  if (const auto* version = std::get_if<Version>(&attribute)) return PrepareVersion(*version);
  if (const auto* list = std::get_if<std::vector<int64_t>>(&attribute)) return PrepareList(*list);
  if (const auto* list = std::get_if<std::vector<bool>>(&attribute)) return PrepareList(*list);
  if (const auto* list = std::get_if<std::vector<std::string>>(&attribute)) {
    return PrepareList(*list);
  }
  return PrepareList(std::get<std::vector<Version>>(attribute));
}

std::optional<Value> DeviceMaps::Find(const Value& key) const {
  if (!key.is(Kind::kString)) return std::nullopt;
  for (uint64_t i = 0; i < size(); ++i) {
    if (key.text() == kFields[i]) return At(i).value;
  }
  return std::nullopt;
}

MapEntry DeviceMaps::At(uint64_t index) const {
  const Value key = Value::String(kFields[index]);
  switch (index) {
    case 0:
      return {key, Value::String(driver_)};
    case 1:
      return {key, Value::Bool(allow_multiple_allocations_)};
    case 2:
      return {key, Value::Of(static_cast<const MapValue*>(&attributes_))};
    default:
      return {key, Value::Of(static_cast<const MapValue*>(&capacity_))};
  }
}

}  // namespace nos::cel
