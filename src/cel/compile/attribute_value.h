// Results of expressions as values of attributes.
#pragma once

#include "base/status.h"
#include "cel/device.h"
#include "cel/types/static_type.h"
#include "cel/values/dynamic.h"

namespace nos::cel {

// True if the result of an expression of this type may be an attribute.
bool IsAttributeType(const Type& type);
// Error: kInvalid: a value of another type, or a list of several types. Throws Cancelled if a list
// is too long.
Status ToAttribute(const Value& value, AttributeValue& to);

}  // namespace nos::cel
