// Fields of the built-in kinds and their types: the parsed table of wire_schema.cc. Read by number
// (protobuf.h) and by name (shape.h, openapi.h). Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include "sim/apiserver/schemas/types.h"

namespace nos::sim {

struct Message;

struct FieldRule {
  enum class Shape { kOne, kList, kMap, kInline };
  std::string_view name;  // in JSON
  std::string_view type;  // a letter of wire_schema.cc, or a message name
  Shape shape = Shape::kOne;
  const Message* message = nullptr;  // null for scalars
  bool always = false;               // never absent in an answer (canonical.h)
};

struct Message {
  std::string_view name;
  std::map<uint64_t, FieldRule> by_number;
  // Like the JSON object, includes the fields of inline messages.
  std::map<std::string_view, const FieldRule*> by_name;
  std::vector<const FieldRule*> always;  // of by_name, those that are never absent
};

// Null if there is no message of this name.
const Message* FindMessage(std::string_view name);
// The message of whole objects of a type; null for custom ones.
const Message* MessageOf(const ResourceType& type);

// See wire_schema.cc.
extern const std::string_view kWireSchema;

}  // namespace nos::sim
