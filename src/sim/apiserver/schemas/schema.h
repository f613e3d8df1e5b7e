// What fields the built-in kinds have, of which types: the table of wire_schema.cc, parsed. It is
// read by number (protobuf.h) and by name (shape.h, openapi.h). Safe for any thread.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>

#include "sim/apiserver/schemas/types.h"

namespace nos::sim {

struct Message;

struct FieldRule {
  enum class Shape { kOne, kList, kMap, kInline };
  std::string_view name;  // in JSON
  std::string_view type;  // a letter of wire_schema.cc, or the message's name
  Shape shape = Shape::kOne;
  const Message* message = nullptr;  // null for scalars
};

struct Message {
  std::string_view name;
  std::map<uint64_t, FieldRule> by_number;
  // As in JSON: those of inline messages stand among them.
  std::map<std::string_view, const FieldRule*> by_name;
};

// Null when there is none of this name.
const Message* FindMessage(std::string_view name);
// Of the whole objects of a type; null for custom ones.
const Message* MessageOf(const ResourceType& type);

// See wire_schema.cc.
extern const std::string_view kWireSchema;

}  // namespace nos::sim
