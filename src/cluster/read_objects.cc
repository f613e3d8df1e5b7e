#include <fmt/core.h>

#include "cluster/objects.h"
#include "codec/yaml.h"

namespace nos::cluster {
namespace {

// JSON has the faster parser; flow-style YAML that is not JSON is rare, but is YAML.
Result<std::vector<Json>> ParseDocuments(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  const bool like_json = first != std::string_view::npos && text[first] == '{';
  if (!like_json) return ParseYaml(text);
  Result<Json> json = ParseJson(text);
  if (json.ok()) return std::vector<Json>{std::move(json).value()};
  Result<std::vector<Json>> yaml = ParseYaml(text);
  if (!yaml.ok()) return json.status();
  return yaml;
}

// "item 7 (Pod a/b)": where an object stands, for the error message.
std::string Describe(const Json& object, std::string_view kind) {
  const std::string_view name = FindString(object, "metadata", "name");
  const std::string_view ns = FindString(object, "metadata", "namespace");
  if (name.empty()) return fmt::format("({} without a name)", kind);
  return fmt::format("({} {}{}{})", kind, ns, ns.empty() ? "" : "/", name);
}

Status ReadObject(const Json& object, std::string_view default_kind, Objects& objects) {
  if (!object.is_object()) return Invalid(": not a Kubernetes object");
  std::string_view kind = FindString(object, "kind");
  if (kind.empty()) kind = default_kind;
  if (kind.empty()) return Invalid(": kind: is missing, so this is not a Kubernetes object");
  const std::string_view version = FindString(object, "apiVersion");
  const bool core = version.empty() || version == "v1";
  const auto within = [&](const Status& status) {
    return status.Within(" " + Describe(object, kind));
  };
  if (core && kind == "Pod") {
    Result<Pod> pod = DecodePod(object);
    if (!pod.ok()) return within(pod.status());
    objects.pods.push_back(std::move(pod).value());
  } else if (core && kind == "Node") {
    Result<Node> node = DecodeNode(object);
    if (!node.ok()) return within(node.status());
    objects.nodes.push_back(std::move(node).value());
  } else {
    ++objects.ignored;
  }
  return Status::Ok();
}

Status ReadDocument(const Json& document, Objects& objects) {
  const std::string_view kind = FindString(document, "kind");
  const bool list = kind == "List" || kind == "PodList" || kind == "NodeList";
  if (!list) return ReadObject(document, {}, objects);
  const Json* items = Find(document, "items");
  if (items == nullptr || items->is_null()) return Status::Ok();
  if (!items->is_array()) return Invalid(": items: must be a list");
  const std::string_view item_kind = kind.substr(0, kind.size() - 4);
  for (size_t i = 0; i < items->get_array().size(); ++i) {
    const Status status = ReadObject(items->get_array()[i], item_kind, objects);
    if (!status.ok()) return {status.code(), fmt::format(", item {}{}", i + 1, status.message())};
  }
  return Status::Ok();
}

}  // namespace

Result<Objects> ReadObjects(std::string_view text, std::string_view source) {
  Result<std::vector<Json>> documents = ParseDocuments(text);
  if (!documents.ok()) return documents.status().Within(source);
  Objects objects;
  for (size_t i = 0; i < documents->size(); ++i) {
    const Status status = ReadDocument((*documents)[i], objects);
    if (!status.ok()) {
      return Status(status.code(),
                    fmt::format("{}: document {}{}", source, i + 1, status.message()));
    }
  }
  return objects;
}

}  // namespace nos::cluster
