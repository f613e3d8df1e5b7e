#include "sim/apiserver/encoding/openapi_schema.h"

#include <fmt/core.h>

#include "sim/apiserver/schemas/fields.h"

namespace nos::sim {
namespace {

using Shape = FieldRule::Shape;

// kubectl prints the part after the last dot as the type.
std::string SchemaName(std::string_view message) { return fmt::format("io.k8s.{}", message); }

Json RefTo(std::string_view message) {
  return {{"$ref", "#/components/schemas/" + SchemaName(message)}};
}

Json ScalarSchema(char type) {
  switch (type) {
    case 's':
      return {{"type", "string"}};
    case 'y':
      return {{"type", "string"}, {"format", "byte"}};
    case 'i':
      return {{"type", "integer"}};
    case 'd':
      return {{"type", "number"}};
    case 'b':
      return {{"type", "boolean"}};
    case 'T':
    case 'U':
      return {{"type", "string"}, {"format", "date-time"}};
    case 'Q':
      return {{"description", "A number with a suffix: 500m, 2, 16Gi."},
              {"oneOf", JsonArray{{{"type", "string"}}, {{"type", "number"}}}}};
    case 'I':
      return {{"format", "int-or-string"},
              {"oneOf", JsonArray{{{"type", "integer"}}, {{"type", "string"}}}}};
    default:
      return {{"type", "object"}};
  }
}

void AddMessage(const Message& message, JsonObject& schemas);

// The schema of one value; a reference if the type has a name.
Json ValueSchema(const FieldRule& rule, JsonObject& schemas) {
  if (rule.message != nullptr) {
    AddMessage(*rule.message, schemas);
    return RefTo(rule.message->name);
  }
  Json scalar = ScalarSchema(rule.type.front());
  const std::string_view name = rule.type == "Q"   ? "Quantity"
                                : rule.type == "I" ? "IntOrString"
                                                   : "";
  if (name.empty()) return scalar;
  schemas[SchemaName(name)] = std::move(scalar);
  return RefTo(name);
}

Json FieldSchema(const FieldRule& rule, JsonObject& schemas) {
  Json one = ValueSchema(rule, schemas);
  if (rule.shape == Shape::kList) return {{"type", "array"}, {"items", std::move(one)}};
  if (rule.shape == Shape::kMap) {
    return {{"type", "object"}, {"additionalProperties", std::move(one)}};
  }
  return one;
}

// Adds the message, once, and every message that it refers to.
void AddMessage(const Message& message, JsonObject& schemas) {
  const std::string name = SchemaName(message.name);
  if (schemas.contains(name)) return;
  schemas[name] = nullptr;  // marks the message as started, because messages may be recursive
  JsonObject properties;
  for (const auto& [field, rule] : message.by_name) {
    properties[field] = FieldSchema(*rule, schemas);
  }
  schemas[name] = {{"type", "object"}, {"properties", std::move(properties)}};
}

// Adds the schema of the whole object and returns its name in `schemas`.
std::string AddRoot(const ResourceType& type, JsonObject& schemas) {
  if (const Message* message = MessageOf(type)) {
    AddMessage(*message, schemas);
    return SchemaName(message->name);
  }
  const std::string name = fmt::format("{}.{}.{}", type.group, type.version, type.kind);
  const Json& own = type.custom->schema;
  schemas[name] = own.is_object() ? own : Json{{"type", "object"}};
  AddMessage(*FindMessage("ObjectMeta"), schemas);
  MakeObject(schemas[name], "properties")["metadata"] = RefTo("ObjectMeta");
  return name;
}

}  // namespace

void AddOpenApiSchema(const ResourceType& type, JsonObject& schemas) {
  Json& root = schemas[AddRoot(type, schemas)];
  JsonObject& properties = MakeObject(root, "properties");
  for (const std::string_view field : {"apiVersion", "kind"}) properties[field] = ScalarSchema('s');
  root.get_object()["x-kubernetes-group-version-kind"] =
      JsonArray{{{"group", type.group}, {"kind", type.kind}, {"version", type.version}}};
}

}  // namespace nos::sim
