#include "dra/expressions/reading.h"

#include <algorithm>
#include <functional>

namespace nos::dra {
namespace {

// The values of both names follow each other, so that one never passes for the other.
const Attributes::Entry* Find(const Attributes& attributes, const Name& name) {
  if (name.empty()) return nullptr;
  const auto& entries = attributes.entries();
  const auto found = std::find_if(entries.begin(), entries.end(),
                                  [&](const auto& entry) { return entry->first == name; });
  return found == entries.end() ? nullptr : &*found;
}

std::optional<Quantity> Find(const Capacities& capacities, const Name& name) {
  if (name.empty()) return std::nullopt;
  const auto found = std::find_if(capacities.begin(), capacities.end(),
                                  [&](const auto& entry) { return entry.first == name; });
  if (found == capacities.end()) return std::nullopt;
  return found->second.value;
}

}  // namespace

size_t ReadHash::operator()(const Read& read) const {
  const std::hash<const void*> hash;
  size_t seed = std::hash<uint64_t>()(read.program);
  AddHash(seed, hash(read.driver.id()));
  AddHash(seed, read.allow_multiple ? 1 : 0);
  for (const Attributes::Entry& entry : read.attributes) AddHash(seed, hash(entry.id()));
  for (const auto& value : read.capacity) {
    AddHash(seed, value ? static_cast<size_t>(value->MilliValue()) : 1);
  }
  return seed;
}

Read Reading::Of(const ResourceSlice& slice, const Device& device) {
  if (names_.empty() || driver_ != slice.driver) ResolveFor(slice.driver);
  Read read{program_, slice.driver, device.allow_multiple, {}, {}};
  read.attributes.reserve(names_.size());
  for (const Names& names : names_) {
    for (const Name* name : {&names.full, &names.identifier}) {
      if (names.capacity) {
        read.capacity.push_back(Find(*device.capacity, *name));
      } else {
        const Attributes::Entry* found = Find(*device.attributes, *name);
        read.attributes.push_back(found == nullptr ? Attributes::Entry() : *found);
      }
    }
  }
  return read;
}

void Reading::ResolveFor(const Name& driver) {
  driver_ = driver;
  names_.clear();
  for (const cel::Reads::Path& path : reads_.paths) {
    const std::string& domain = path.domain.empty() ? driver.str() : path.domain;
    Names& names = names_.emplace_back();
    names.capacity = path.capacity;
    names.full = Name(domain + "/" + path.id);
    if (domain == driver.str()) names.identifier = Name(path.id);
  }
}

bool Validity::Of(const Attributes& attributes) {
  return std::all_of(attributes.begin(), attributes.end(), [&](const NamedAttribute& attribute) {
    const Attribute& value = attribute.second;
    if (!value.list) return IsValid(value);
    return std::all_of(value.elements.begin(), value.elements.end(),
                       [&](const Attribute& element) { return IsValid(element); });
  });
}

bool Validity::IsValid(const Attribute& value) {
  if (value.type != Attribute::Type::kVersion) return value.type != Attribute::Type::kUnknown;
  return versions_.Get(value.text,
                       [&] { return std::pair(cel::IsVersion(value.text.str()), size_t{1}); });
}

}  // namespace nos::dra
