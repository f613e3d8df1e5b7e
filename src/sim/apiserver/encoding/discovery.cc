#include "sim/apiserver/encoding/discovery.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "sim/apiserver/encoding/openapi.h"

namespace nos::sim {
namespace {

JsonArray Texts(const std::vector<std::string>& strings) {
  JsonArray array;
  for (const std::string& text : strings) array.emplace_back(boost::json::string(text));
  return array;
}

Json Version() {
  return {{"major", "1"},        {"minor", "32"},           {"gitVersion", "v1.32.4+nos-sandbox"},
          {"gitCommit", ""},     {"gitTreeState", "clean"}, {"buildDate", "2025-01-01T00:00:00Z"},
          {"goVersion", "none"}, {"compiler", "none"},      {"platform", "linux/amd64"}};
}

JsonObject ResourceEntry(const ResourceType& type) {
  JsonObject entry{
      {"name", type.plural},
      {"singularName", type.singular},
      {"namespaced", type.namespaced},
      {"kind", type.kind},
      {"verbs",
       {"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}}};
  if (!type.short_names.empty()) entry["shortNames"] = Texts(type.short_names);
  if (!type.categories.empty()) entry["categories"] = Texts(type.categories);
  return entry;
}

JsonObject Subresource(const ResourceType& type, std::string_view name, std::string_view kind,
                       JsonArray verbs) {
  return {{"name", fmt::format("{}/{}", type.plural, name)},
          {"singularName", ""},
          {"namespaced", type.namespaced},
          {"kind", kind},
          {"verbs", std::move(verbs)}};
}

void AddResources(const ResourceType& type, JsonArray& resources) {
  resources.push_back(ResourceEntry(type));
  if (type.has_status) {
    resources.push_back(Subresource(type, "status", type.kind, {"get", "patch", "update"}));
  }
  if (type.HasScale()) {
    JsonObject scale = Subresource(type, "scale", "Scale", {"get", "patch", "update"});
    scale["group"] = "autoscaling";
    scale["version"] = "v1";
    resources.push_back(std::move(scale));
  }
  if (!type.IsCore("pods")) return;
  resources.push_back(Subresource(type, "binding", "Binding", {"create"}));
  resources.push_back(Subresource(type, "log", "Pod", {"get"}));
  JsonObject eviction = Subresource(type, "eviction", "Eviction", {"create"});
  eviction["group"] = "policy";
  eviction["version"] = "v1";
  resources.push_back(std::move(eviction));
}

std::optional<Json> Resources(const TypeRegistry& types, std::string_view group,
                              std::string_view version) {
  JsonArray resources;
  std::string name;
  for (const TypeRef& type : types.All()) {
    if (type->group != group || type->version != version) continue;
    name = type->ApiVersion();
    AddResources(*type, resources);
  }
  if (name.empty()) return std::nullopt;
  return Json{{"kind", "APIResourceList"},
              {"apiVersion", "v1"},
              {"groupVersion", name},
              {"resources", std::move(resources)}};
}

Json Group(const TypeRegistry& types, const std::string& group) {
  JsonArray versions;
  for (const std::string& version : types.VersionsOf(group)) {
    versions.push_back(
        {{"groupVersion", fmt::format("{}/{}", group, version)}, {"version", version}});
  }
  JsonObject entry{{"name", group}, {"versions", versions}};
  entry["preferredVersion"] = versions.at(0);
  return entry;
}

Json GroupList(const TypeRegistry& types) {
  JsonArray groups;
  for (const std::string& group : types.Groups()) groups.push_back(Group(types, group));
  return {{"kind", "APIGroupList"}, {"apiVersion", "v1"}, {"groups", std::move(groups)}};
}

std::optional<Json> ApisPath(const TypeRegistry& types, std::string_view rest) {
  const auto parts = Split(rest, '/');
  if (parts.size() == 2) return Resources(types, parts[0], parts[1]);
  const auto groups = types.Groups();
  const auto found = std::find(groups.begin(), groups.end(), parts[0]);
  if (parts.size() != 1 || found == groups.end()) return std::nullopt;
  Json group = Group(types, *found);
  group.get_object()["kind"] = "APIGroup";
  group.get_object()["apiVersion"] = "v1";
  return group;
}

}  // namespace

std::optional<Json> Discover(const TypeRegistry& types, std::string_view path) {
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  static const std::set<std::string_view> kHealth{"/healthz", "/livez", "/readyz"};
  if (kHealth.contains(path)) return Json("ok");
  if (path == "/version") return Version();
  if (path == "/api") {
    return Json{
        {"kind", "APIVersions"}, {"versions", {"v1"}}, {"serverAddressByClientCIDRs", JsonArray()}};
  }
  if (path == "/api/v1") return Resources(types, "", "v1");
  if (path == "/apis") return GroupList(types);
  if (path.starts_with("/apis/")) return ApisPath(types, path.substr(6));
  if (path == "/openapi/v2") return Json(boost::json::string(OpenApiV2(types)));
  if (path == "/openapi/v3") return OpenApiIndex(types);
  if (path.starts_with("/openapi/v3/")) return OpenApiOf(types, path.substr(12));
  if (path == "/") return Json{{"paths", {"/api", "/apis", "/healthz", "/readyz", "/version"}}};
  return std::nullopt;
}

}  // namespace nos::sim
