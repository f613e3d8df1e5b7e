#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "cluster/objects.h"
#include "cluster/objects/check.h"
#include "codec/duplicate_keys.h"
#include "codec/utf8.h"
#include "codec/yaml.h"

namespace nos::cluster {
namespace {

constexpr int kMaxListDepth = 4;

// Other kinds of apiVersion v1, also as <kind>List. They are listed here because a misspelt Pod or
// Node would otherwise pass as one of them. Source: k8s.io/api core/v1 register.go.
constexpr std::array<std::string_view, 15> kOtherCoreKinds = {"Binding",
                                                              "ComponentStatus",
                                                              "ConfigMap",
                                                              "Endpoints",
                                                              "Event",
                                                              "LimitRange",
                                                              "Namespace",
                                                              "PersistentVolume",
                                                              "PersistentVolumeClaim",
                                                              "PodTemplate",
                                                              "ReplicationController",
                                                              "ResourceQuota",
                                                              "Secret",
                                                              "Service",
                                                              "ServiceAccount"};

// apiVersion and kind of an object.
struct Type {
  std::string_view version, kind;
};

// The JSON parser is faster. YAML in flow style begins like JSON; it is rare, but still parsed as
// YAML.
Result<std::vector<Json>> ParseDocuments(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  const bool like_json =
      first != std::string_view::npos && (text[first] == '{' || text[first] == '[');
  if (!like_json) return ParseYaml(text);
  Result<Json> json = ParseJson(text);
  if (!json.ok()) {
    Result<std::vector<Json>> yaml = ParseYaml(text);
    if (yaml.ok() || !IsUtf8(text)) return yaml;
    return json.status();
  }
  // With duplicate keys the intended value is unknown.
  const std::vector<std::string> twice = FindDuplicateKeys(text, 1);
  if (!twice.empty()) return Invalid(fmt::format("JSON: {}: is given twice", twice[0]));
  return std::vector<Json>{std::move(json).value()};
}

// The object for an error message: "(Pod a/b)".
std::string Describe(const Json& object, std::string_view kind) {
  const std::string_view name = FindString(object, "metadata", "name");
  const std::string_view ns = FindString(object, "metadata", "namespace");
  if (name.empty()) return fmt::format("({} without a name)", kind);
  return fmt::format("({} {}{}{})", kind, ns, ns.empty() ? "" : "/", name);
}

bool IsRead(std::string_view kind) { return kind == "Pod" || kind == "Node"; }

bool IsReadList(std::string_view kind) {
  return kind == "List" || kind == "PodList" || kind == "NodeList";
}

bool IsOtherCoreKind(std::string_view kind) {
  if (kind.ends_with("List")) kind.remove_suffix(4);
  return std::find(kOtherCoreKinds.begin(), kOtherCoreKinds.end(), kind) != kOtherCoreKinds.end();
}

// True if nos reads this type; an error if no API server has it. Types of a group ("apps/v1") are
// not checked one by one: add-ons define more.
Result<bool> IsRead(const Type& type) {
  const bool ours = IsRead(type.kind);
  const size_t slash = type.version.find('/');
  if (slash == std::string_view::npos) {
    if (type.version != "v1") {
      return Invalid(
          fmt::format("apiVersion: '{}' does not exist; Pods and Nodes are in v1", type.version));
    }
    if (ours || IsOtherCoreKind(type.kind)) return ours;
    return Invalid(fmt::format(
        "kind: '{}' does not exist in v1; write Pod, Node or List, in this spelling", type.kind));
  }
  const std::string_view group = type.version.substr(0, slash);
  const std::string_view version = type.version.substr(slash + 1);
  if (group.empty() || version.empty() || version.find('/') != std::string_view::npos) {
    return Invalid(fmt::format("apiVersion: '{}' is not group/version", type.version));
  }
  // Kubernetes' own groups (without a domain) have no Pod or Node; an add-on's group may
  // ("longhorn.io" Node).
  if (ours && group.find('.') == std::string_view::npos) {
    return Invalid(fmt::format("apiVersion: '{}' has no {}; it is in v1", type.version, type.kind));
  }
  return false;
}

Result<Type> TypeOf(const Json& object, const Type& fallback) {
  if (!object.is_object()) {
    return Invalid(
        "this is not a Kubernetes object but a list or a bare value; several objects go under "
        "items: of a List");
  }
  Type type{FindString(object, "apiVersion"), FindString(object, "kind")};
  if (type.kind.empty()) type.kind = fallback.kind;
  if (type.version.empty()) type.version = fallback.version;
  if (type.kind.empty()) return Invalid("kind: is missing, so this is not a Kubernetes object");
  if (!type.version.empty()) return type;
  if (!IsRead(type.kind) && !IsReadList(type.kind)) {
    return Invalid(fmt::format(
        "apiVersion: is missing, and kind: '{}' is none of Pod, Node and List", type.kind));
  }
  type.version = "v1";
  return type;
}

Status ReadPod(const Json& object, Objects& objects) {
  NOS_ASSIGN(Pod pod, DecodePod(object));
  NOS_RETURN_IF_ERROR(CheckPod(pod));
  objects.pods.push_back(std::move(pod));
  return Status::Ok();
}

Status ReadNode(const Json& object, Objects& objects) {
  NOS_ASSIGN(Node node, DecodeNode(object));
  NOS_RETURN_IF_ERROR(CheckNode(node));
  objects.nodes.push_back(std::move(node));
  return Status::Ok();
}

// The objects read from a text so far.
struct Reading {
  Objects objects;
  const TakeOther& take_other;
};

Status ReadObject(const Json& object, const Type& type, Reading& reading) {
  const std::string within = " " + Describe(object, type.kind);
  const Result<bool> read = IsRead(type);
  if (!read.ok()) return read.status().Within(within);
  Objects& objects = reading.objects;
  if (!*read) {
    Result<bool> taken = false;
    if (reading.take_other) taken = reading.take_other(type.version, type.kind, object);
    if (!taken.ok()) return taken.status().Within(within);
    objects.ignored += *taken ? 0 : 1;
    return Status::Ok();
  }
  return (type.kind == "Pod" ? ReadPod(object, objects) : ReadNode(object, objects)).Within(within);
}

Status ReadAny(const Json& object, const Type& fallback, int depth, Reading& reading);

Status ReadList(const Json& list, std::string_view kind, int depth, Reading& reading) {
  if (depth > kMaxListDepth) return Invalid(": Lists are nested too deeply");
  const Json* items = Find(list, "items");
  if (items == nullptr || items->is_null()) return Status::Ok();
  if (!items->is_array()) return Invalid(": items: must be a list");
  // The items of a PodList may omit their kind.
  const Type fallback = kind == "List" ? Type{} : Type{"v1", kind.substr(0, kind.size() - 4)};
  for (size_t i = 0; i < items->get_array().size(); ++i) {
    const Status status = ReadAny(items->get_array()[i], fallback, depth, reading);
    if (!status.ok()) return {status.code(), fmt::format(", item {}{}", i + 1, status.message())};
  }
  return Status::Ok();
}

// Errors begin with the part after "document 1": the item, the object's name, or a colon.
Status ReadAny(const Json& object, const Type& fallback, int depth, Reading& reading) {
  const Result<Type> type = TypeOf(object, fallback);
  if (!type.ok()) return type.status().Within("");
  if (IsReadList(type->kind) && type->version == "v1")
    return ReadList(object, type->kind, depth + 1, reading);
  return ReadObject(object, *type, reading);
}

}  // namespace

Result<Objects> ReadObjects(std::string_view text, std::string_view source,
                            const TakeOther& take_other) {
  Result<std::vector<Json>> documents = ParseDocuments(text);
  if (!documents.ok()) return documents.status().Within(source);
  Reading reading{{}, take_other};
  for (size_t i = 0; i < documents->size(); ++i) {
    const Status status = ReadAny((*documents)[i], {}, 0, reading);
    if (!status.ok()) {
      return Status(status.code(),
                    fmt::format("{}: document {}{}", source, i + 1, status.message()));
    }
  }
  return std::move(reading.objects);
}

}  // namespace nos::cluster
