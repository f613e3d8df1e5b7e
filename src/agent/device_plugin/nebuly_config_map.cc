#include "agent/device_plugin/nebuly_config_map.h"

#include <fmt/core.h>

#include "cluster/annotations.h"
#include "cluster/objects.h"

namespace nos::agent {
namespace {

constexpr int kTries = 4;

// The merge patch does not depend on the object's current state, so it can be repeated after a
// conflict.
Status PatchAgain(kube::Client& client, const kube::Resource& resource, std::string_view ns,
                  std::string_view name, const Json& patch) {
  Status patched;
  for (int i = 0; i < kTries; ++i) {
    patched = client.Patch(resource, ns, name, kube::PatchType::kMerge, patch).status();
    if (patched.code() != Code::kConflict) return patched;
  }
  return {Code::kUnavailable, patched.message()};
}

}  // namespace

Status NebulyConfigMap::Explained(const Status& error) const {
  if (error.code() != Code::kNotFound) return error.Within("ConfigMap " + Name());
  return NotFound(
      fmt::format("there is no ConfigMap {}: is Nebuly's device plugin installed, and are "
                  "mps.nebuly.configMapName and mps.nebuly.configMapNamespace right?",
                  Name()));
}

Result<std::map<std::string, std::string>> NebulyConfigMap::Read() {
  const Result<Json> map = client_.Get(kube::kConfigMaps, options_.ns, options_.name);
  if (!map.ok()) return Explained(map.status());
  std::map<std::string, std::string> texts;
  const Json* data = Find(*map, "data");
  if (data == nullptr || !data->is_object()) return texts;
  for (const auto& [key, text] : data->get_object()) {
    if (text.is_string()) texts[std::string(key)] = std::string(View(text.get_string()));
  }
  return texts;
}

Status NebulyConfigMap::PatchData(const Json& data) {
  const Status patched = PatchAgain(client_, kube::kConfigMaps, options_.ns, options_.name,
                                    JsonObject{{"data", data}});
  return patched.ok() ? patched : Explained(patched);
}

Status NebulyConfigMap::Put(const std::string& key, const std::string& text) {
  JsonObject data;
  data[key] = text;
  return PatchData(std::move(data));
}

Status NebulyConfigMap::Remove(const std::set<std::string>& keys) {
  if (keys.empty()) return Status::Ok();
  JsonObject data;
  for (const std::string& key : keys) data[key] = nullptr;
  return PatchData(std::move(data));
}

Result<NebulyConfigMap::NodeLabels> NebulyConfigMap::Labels() {
  NOS_ASSIGN(const Json object, client_.Get(kube::kNodes, "", options_.node));
  NOS_ASSIGN(const cluster::Node node, cluster::DecodeNode(object));
  NodeLabels labels;
  const auto config = node.meta.labels.find(std::string(kNebulyLabel));
  if (config != node.meta.labels.end()) labels.config = config->second;
  labels.partitioning = cluster::RequestedSharingMode(node);
  return labels;
}

Status NebulyConfigMap::SetLabel(const std::optional<std::string>& key) {
  Json patch = JsonObject();
  MakeObject(patch, "metadata", "labels")[kNebulyLabel] = key ? Json(*key) : Json(nullptr);
  return PatchAgain(client_, kube::kNodes, "", options_.node, patch)
      .Within("label node " + options_.node);
}

}  // namespace nos::agent
