// Placeholders: pods of nos that hold the places of pods to be moved (controllers/relocations.h).
#pragma once

#include <string_view>

#include "cluster/objects.h"

namespace nos::cluster {

// Label by which placeholders are found. Any user may set it on their own pods.
inline constexpr std::string_view kPlaceholder = "nos.nebuly.com/placeholder";

inline bool IsPlaceholder(const Pod& pod) { return pod.meta.labels.contains(kPlaceholder); }

}  // namespace nos::cluster
