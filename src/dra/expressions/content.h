// The content of a device that expressions see, in the form of src/cel.
#pragma once

#include "base/status.h"
#include "cel/device.h"
#include "dra/objects.h"

namespace nos::dra {

// Equal for devices that no expression distinguishes. Holds what it identifies.
struct ContentKey {
  Name driver;
  Interned<Attributes, AttributesHash> attributes;
  Interned<Capacities, CapacitiesHash> capacity;
  bool allow_multiple = false;
  ContentKey(const ResourceSlice& slice, const Device& device)
      : driver(slice.driver),
        attributes(device.attributes),
        capacity(device.capacity),
        allow_multiple(device.allow_multiple) {}
  friend bool operator==(const ContentKey&, const ContentKey&) = default;
};

struct ContentKeyHash {
  size_t operator()(const ContentKey& key) const;
};

// Error: kInvalid: an attribute has a type that only newer servers know, a version is none.
Result<cel::Device> PrepareContent(const ContentKey& key);

// A list without elements has no type.
Attribute ToAttribute(const cel::AttributeValue& value);

}  // namespace nos::dra
