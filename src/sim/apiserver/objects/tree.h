// Sizes of JSON trees, and limits on them: one hostile object must not harm other clients.
#pragma once

#include <cstddef>

#include "sim/apiserver/objects/reply.h"

namespace nos::sim {

// The depth limit of the parser; also applied to in-process callers and patches.
inline constexpr size_t kMaxDepth = 100;
// etcd's limit on a request, which bounds objects in a real cluster.
inline constexpr size_t kMaxObjectBytes = size_t{1536} * 1024;

// Depth of nesting; 0 for a scalar. Never looks deeper than kMaxDepth + 1.
size_t DepthOf(const Json& value);
// Approximate length of the compact text.
size_t BytesOf(const Json& value);
// Approximate memory of the tree, which is many times the text for small values.
size_t MemoryOf(const Json& value);
// Refusal: 413 if the object exceeds the limits.
Check CheckSize(const Json& object);

}  // namespace nos::sim
