#include "sim/apiserver/objects/tree.h"

#include <fmt/core.h>

#include <algorithm>

namespace nos::sim {
namespace {

size_t DepthWithin(const Json& value, size_t budget) {
  if (budget == 0) return 0;
  size_t deepest = 0;
  if (value.is_object()) {
    for (const auto& [key, member] : value.get_object()) {
      deepest = std::max(deepest, 1 + DepthWithin(member, budget - 1));
    }
  } else if (value.is_array()) {
    for (const Json& element : value.get_array()) {
      deepest = std::max(deepest, 1 + DepthWithin(element, budget - 1));
    }
  }
  return deepest;
}

Refusal TooLarge(std::string message) {
  return MakeRefusal(413, "RequestEntityTooLarge", std::move(message));
}

}  // namespace

size_t DepthOf(const Json& value) { return DepthWithin(value, kMaxDepth + 1); }

size_t BytesOf(const Json& value) {
  size_t bytes = 2;
  if (value.is_object()) {
    for (const auto& [key, member] : value.get_object()) bytes += key.size() + 4 + BytesOf(member);
  } else if (value.is_array()) {
    for (const Json& element : value.get_array()) bytes += 1 + BytesOf(element);
  } else if (value.is_string()) {
    bytes += value.get_string().size();
  } else {
    bytes += 4;
  }
  return bytes;
}

size_t MemoryOf(const Json& value) {
  size_t bytes = sizeof(Json);
  if (value.is_object()) {
    // The table entry, its share of the hash index, and the key.
    constexpr size_t kPerMember = sizeof(JsonObject::value_type) - sizeof(Json) + 8;
    for (const auto& [key, member] : value.get_object()) {
      bytes += kPerMember + key.size() + MemoryOf(member);
    }
  } else if (value.is_array()) {
    for (const Json& element : value.get_array()) bytes += MemoryOf(element);
  } else if (value.is_string()) {
    bytes += value.get_string().size();
  }
  return bytes;
}

Check CheckSize(const Json& object) {
  if (DepthOf(object) > kMaxDepth) {
    return TooLarge(fmt::format("the object is nested deeper than {} levels", kMaxDepth));
  }
  if (const size_t bytes = BytesOf(object); bytes > kMaxObjectBytes) {
    return TooLarge(
        fmt::format("the object has about {} bytes; the limit is {}", bytes, kMaxObjectBytes));
  }
  return std::nullopt;
}

}  // namespace nos::sim
