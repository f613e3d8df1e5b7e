// Measures of a JSON tree, and the limits that keep one hostile object from hurting others.
#pragma once

#include <cstddef>

#include "sim/apiserver/objects/reply.h"

namespace nos::sim {

// As deep as text is parsed; in-process callers and patches are held to the same.
inline constexpr size_t kMaxDepth = 100;
// etcd's limit of a request, which is what bounds objects in a real cluster.
inline constexpr size_t kMaxObjectBytes = size_t{1536} * 1024;

// 0 for a scalar. Never looks deeper than kMaxDepth + 1.
size_t DepthOf(const Json& value);
// About the length of the compact text.
size_t BytesOf(const Json& value);
// About what the tree takes in memory, which is many times the text for small values.
size_t MemoryOf(const Json& value);
// Refusal: 413 for an object beyond the limits.
Check CheckSize(const Json& object);

}  // namespace nos::sim
