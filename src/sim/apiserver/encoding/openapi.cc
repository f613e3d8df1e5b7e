#include "sim/apiserver/encoding/openapi.h"

#include <fmt/core.h>

#include "sim/apiserver/encoding/openapi_schema.h"

namespace nos::sim {
namespace {

std::string OpenApiKey(const ResourceType& type) {
  return type.group.empty() ? "api/" + type.version
                            : fmt::format("apis/{}/{}", type.group, type.version);
}

std::string PathOf(const ResourceType& type) {
  return fmt::format("/{}/{}{}/{{name}}", OpenApiKey(type),
                     type.namespaced ? "namespaces/{namespace}/" : "", type.plural);
}

Json KindOf(const ResourceType& type) {
  return {{"group", type.group}, {"kind", type.kind}, {"version", type.version}};
}

// A length-delimited protobuf field.
std::string Field(int number, std::string_view bytes) {
  std::string field(1, static_cast<char>(number << 3 | 2));
  size_t size = bytes.size();
  for (; size >= 0x80; size >>= 7) field += static_cast<char>((size & 0x7f) | 0x80);
  field += static_cast<char>(size);
  return field.append(bytes);
}

// A PATCH of the kind with the query parameter "dryRun": kubectl looks for it to learn that the
// server supports dry runs.
std::string PatchOperation(const ResourceType& type) {
  const std::string query = Field(2, "query") + Field(4, "dryRun") + Field(6, "string");
  const std::string parameter = Field(1, Field(2, Field(3, query)));
  const std::string kind = Field(2, WriteJson(KindOf(type)));
  return Field(8, parameter) +
         Field(13, Field(1, "x-kubernetes-group-version-kind") + Field(2, kind));
}

}  // namespace

Json OpenApiIndex(const TypeRegistry& types) {
  JsonObject paths;
  for (const TypeRef& type : types.All()) {
    const std::string key = OpenApiKey(*type);
    paths[key] = {{"serverRelativeURL", "/openapi/v3/" + key}};
  }
  return {{"paths", std::move(paths)}};
}

// kubectl looks here to find out whether the server accepts the fieldValidation parameter for a
// kind, and for the text of `kubectl explain`. The document does not list strategic merge patches
// for PATCH: otherwise kubectl would merge by these schemas, which do not specify how lists merge,
// instead of by its built-in types.
std::optional<Json> OpenApiOf(const TypeRegistry& types, std::string_view key) {
  JsonObject paths, schemas;
  for (const TypeRef& type : types.All()) {
    if (OpenApiKey(*type) != key) continue;
    AddOpenApiSchema(*type, schemas);
    const Json parameter = {{"name", "fieldValidation"},
                            {"in", "query"},
                            {"schema", {{"type", "string"}, {"uniqueItems", true}}}};
    paths[PathOf(*type)] = {{"patch",
                             {{"parameters", JsonArray{parameter}},
                              {"x-kubernetes-action", "patch"},
                              {"x-kubernetes-group-version-kind", KindOf(*type)},
                              {"responses", {{"200", {{"description", "OK"}}}}}}}};
  }
  if (paths.empty()) return std::nullopt;
  return Json{{"openapi", "3.0.0"},
              {"info", {{"title", "Kubernetes"}, {"version", "v1.32.4"}}},
              {"paths", std::move(paths)},
              {"components", {{"schemas", std::move(schemas)}}}};
}

std::string OpenApiV2(const TypeRegistry& types) {
  std::string paths;
  for (const TypeRef& type : types.All()) {
    paths += Field(2, Field(1, PathOf(*type)) + Field(2, Field(8, PatchOperation(*type))));
  }
  const std::string info = Field(1, "Kubernetes") + Field(2, "v1.32.4");
  return Field(1, "2.0") + Field(2, info) + Field(8, paths) + Field(9, "");
}

}  // namespace nos::sim
