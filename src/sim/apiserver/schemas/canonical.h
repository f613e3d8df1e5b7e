// The form in which the real server answers: it decodes every object into Go values and encodes
// those, so that clients of typed languages can rely on it.
//
// - Quantities are strings in canonical form: 1 becomes "1", "0.5" becomes "500m", "1024Mi" becomes
//   "1Gi" (k8s.io/apimachinery/pkg/api/resource, Quantity.CanonicalizeBytes).
// - Times are in UTC, in seconds or microseconds.
// - Fields that k8s.io/api declares without omitempty, and messages that it does not refer to by
//   pointer, are never absent: "", 0, false, {}.
// - A null is an absent field.
//
// Custom resources are stored as they are sent.
#pragma once

#include <string>
#include <string_view>

#include "sim/apiserver/schemas/types.h"

namespace nos::sim {

// REQUIRES: CheckShape has passed, and defaults are set.
void Canonicalise(const ResourceType& type, Json& object);

// The canonical form of a quantity; the text itself if it is none.
std::string CanonicalQuantity(std::string_view text);

}  // namespace nos::sim
