// Equality and order of values.
#pragma once

#include "cel/values/dynamic.h"

namespace nos::cel {

// True or false; an error where upstream has no such overload: a quantity, version, address or URL
// beside a value of another type. Throws Cancelled if lists and maps have too many elements.
Value Equals(const Value& left, const Value& right);

// -1, 0 or 1 as kInt; an error if the types have no order between them, or for NaN.
Value Compare(const Value& left, const Value& right);
// The type has an order.
bool Comparable(const Value& value);

// Keys of maps, as a hash table of Go sees them: 1 and 1u are two keys.
bool SameKey(const Value& left, const Value& right);
uint64_t HashKey(const Value& key);
// Throws Cancelled for keys that upstream cannot hash: there the evaluation panics.
void CheckHashable(const Value& key);

// The number of characters, bytes, elements; of an IP address the bytes of it.
bool HasSize(const Value& value);
uint64_t SizeOf(const Value& value);

}  // namespace nos::cel
