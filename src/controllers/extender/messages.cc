#include "controllers/extender/messages.h"

#include <fmt/core.h>

namespace nos::controllers {
namespace {

Result<Json> ReadArgs(std::string_view text) {
  NOS_ASSIGN(Json args, ParseJson(text));
  if (!args.is_object()) return Invalid("expected an object");
  return args;
}

Result<cluster::Pod> ReadPodOf(const Json& args) {
  const Json* pod = Find(args, "Pod");
  if (pod == nullptr || !pod->is_object()) return Invalid("Pod is missing");
  return cluster::DecodePod(JsonSource(*pod));
}

// Null also for a JSON null, which Go writes for unset fields.
const Json* Given(const Json& args, std::string_view key) {
  const Json* found = Find(args, key);
  return found == nullptr || found->is_null() ? nullptr : found;
}

Result<std::vector<std::string>> ReadNames(const Json& list) {
  if (!list.is_array()) return Invalid("NodeNames must be a list");
  std::vector<std::string> names;
  for (const Json& name : list.get_array()) {
    if (!name.is_string()) return Invalid("NodeNames must contain strings only");
    names.emplace_back(View(name.get_string()));
  }
  return names;
}

Status TakeNodes(const Json& list, ExtenderNodes& nodes) {
  const Json* items = Given(list, "items");
  nodes.whole = true;
  if (items == nullptr) return Status::Ok();
  if (!items->is_array()) return Invalid("Nodes.items must be a list");
  for (const Json& item : items->get_array()) {
    const std::string_view name = FindString(item, "metadata", "name");
    if (name.empty()) return Invalid("a node of Nodes.items has no name");
    nodes.names.emplace_back(name);
  }
  nodes.objects = items->get_array();
  return Status::Ok();
}

JsonObject MapOf(const std::map<std::string, std::string>& texts) {
  JsonObject object;
  for (const auto& [key, text] : texts) object[key] = text;
  return object;
}

Result<ExtenderVictims::Node> ReadVictims(const Json& victims) {
  ExtenderVictims::Node node;
  if (const Json* violations = Given(victims, "NumPDBViolations");
      violations != nullptr && violations->is_int64()) {
    node.violations = violations->get_int64();
  }
  const Json* pods = Given(victims, "Pods");
  if (pods == nullptr) return node;
  if (!pods->is_array()) return Invalid("Pods is no list");
  for (const Json& pod : pods->get_array()) {
    const std::string_view alone = FindString(pod, "UID");
    const std::string_view uid = alone.empty() ? FindString(pod, "metadata", "uid") : alone;
    if (uid.empty()) return Invalid("a victim has no UID");
    node.uids.emplace_back(uid);
  }
  return node;
}

}  // namespace

Result<ExtenderNodes> ReadExtenderNodes(std::string_view text) {
  NOS_ASSIGN(const Json args, ReadArgs(text));
  ExtenderNodes nodes;
  NOS_ASSIGN(nodes.pod, ReadPodOf(args));
  if (const Json* names = Given(args, "NodeNames"); names != nullptr) {
    NOS_ASSIGN(nodes.names, ReadNames(*names));
  } else if (const Json* list = Given(args, "Nodes"); list != nullptr) {
    NOS_RETURN_IF_ERROR(TakeNodes(*list, nodes));
  } else {
    return Invalid("neither NodeNames nor Nodes is there");
  }
  return nodes;
}

std::string FilterAnswer(ExtenderNodes nodes, const ExtenderRefusals& refusals) {
  JsonArray names, items;
  for (size_t i = 0; i < nodes.names.size(); ++i) {
    const std::string& name = nodes.names[i];
    if (refusals.failed.contains(name) || refusals.unresolvable.contains(name)) continue;
    if (nodes.whole) {
      items.push_back(std::move(nodes.objects[i]));
    } else {
      names.emplace_back(name);
    }
  }
  JsonObject answer{{"Nodes", nullptr},
                    {"NodeNames", nullptr},
                    {"FailedNodes", MapOf(refusals.failed)},
                    {"FailedAndUnresolvableNodes", MapOf(refusals.unresolvable)},
                    {"Error", ""}};
  if (nodes.whole) {
    answer["Nodes"] = JsonObject{{"metadata", JsonObject{}}, {"items", std::move(items)}};
  } else {
    answer["NodeNames"] = std::move(names);
  }
  return WriteJson(std::move(answer));
}

std::string FilterError(std::string_view error) { return WriteJson(JsonObject{{"Error", error}}); }

std::string PrioritizeAnswer(const std::vector<std::string>& names,
                             const std::vector<int64_t>& scores) {
  JsonArray list;
  for (size_t i = 0; i < names.size(); ++i) {
    list.emplace_back(JsonObject{{"Host", names[i]}, {"Score", scores[i]}});
  }
  return WriteJson(std::move(list));
}

Result<ExtenderBinding> ReadExtenderBinding(std::string_view text) {
  NOS_ASSIGN(const Json args, ReadArgs(text));
  ExtenderBinding binding{
      std::string(FindString(args, "PodNamespace")), std::string(FindString(args, "PodName")),
      std::string(FindString(args, "PodUID")), std::string(FindString(args, "Node"))};
  if (binding.ns.empty() || binding.pod.empty() || binding.uid.empty() || binding.node.empty()) {
    return Invalid("PodNamespace, PodName, PodUID and Node are all needed");
  }
  return binding;
}

std::string BindAnswer(std::string_view error) { return WriteJson(JsonObject{{"Error", error}}); }

Result<ExtenderVictims> ReadExtenderVictims(std::string_view text) {
  NOS_ASSIGN(const Json args, ReadArgs(text));
  ExtenderVictims victims;
  NOS_ASSIGN(victims.pod, ReadPodOf(args));
  for (const char* key : {"NodeNameToMetaVictims", "NodeNameToVictims"}) {
    const Json* nodes = Given(args, key);
    if (nodes == nullptr) continue;
    if (!nodes->is_object()) return Invalid(fmt::format("{} is no object", key));
    for (const auto& [name, value] : nodes->get_object()) {
      auto read = ReadVictims(value);
      if (!read.ok()) return read.status().Within(fmt::format("{}.{}", key, std::string(name)));
      victims.nodes[std::string(name)] = *std::move(read);
    }
  }
  return victims;
}

std::string PreemptAnswer(const std::map<std::string, ExtenderVictims::Node>& nodes) {
  JsonObject victims;
  for (const auto& [name, node] : nodes) {
    JsonArray pods;
    for (const std::string& uid : node.uids) pods.emplace_back(JsonObject{{"UID", uid}});
    victims[name] = JsonObject{{"Pods", std::move(pods)}, {"NumPDBViolations", node.violations}};
  }
  return WriteJson(JsonObject{{"NodeNameToMetaVictims", std::move(victims)}});
}

}  // namespace nos::controllers
