#include "controllers/pool_scaling.h"

#include <fmt/format.h>

#include <limits>
#include <optional>
#include <utility>

#include "base/names.h"
#include "base/text.h"
#include "codec/json.h"
#include "reconcile/node_write.h"

namespace nos::controllers {
namespace {

constexpr size_t kMaxText = 200;  // bytes of text from other systems
constexpr std::string_view kMachineGroup = "cluster.x-k8s.io";
// Source: Cluster API, annotations of nodes that its machine controller sets.
constexpr const char* kMachine = "cluster.x-k8s.io/machine";
constexpr const char* kMachineNamespace = "cluster.x-k8s.io/cluster-namespace";
constexpr const char* kMachineVersion = "cluster.x-k8s.io/v1beta1";

std::string TargetText(const cluster::NodePool& pool) {
  const cluster::ScaleTarget& target = pool.target;
  return fmt::format("{} {}{}{}", target.kind, target.ns, target.ns.empty() ? "" : "/",
                     target.name);
}

std::optional<int32_t> CountIn(const Json* value) {
  if (value == nullptr || !value->is_int64()) return std::nullopt;
  const int64_t count = value->get_int64();
  if (count < 0 || count > std::numeric_limits<int32_t>::max()) return std::nullopt;
  return static_cast<int32_t>(count);
}

// An absent spec.replicas means 0. Source: k8s.io/api autoscaling/v1 ScaleSpec, omitempty.
Result<PoolScale> ScaleIn(const Json& answer) {
  const Json* spec = Find(answer, "spec");
  const Json* replicas = spec == nullptr ? nullptr : Find(*spec, "replicas");
  const auto count = replicas == nullptr ? std::optional<int32_t>(0) : CountIn(replicas);
  if (spec == nullptr || !spec->is_object() || !count) {
    return Invalid("its scale says no number in spec.replicas");
  }
  return PoolScale{*count, std::string(FindString(answer, "metadata", "resourceVersion"))};
}

struct Found {
  std::string plural;
  bool namespaced = true, scales = false;
};

// Finds the kind in the resource list of one group and version. Source: metav1.APIResourceList.
std::optional<Found> FindKind(const Json& list, std::string_view kind) {
  const Json* resources = Find(list, "resources");
  if (resources == nullptr || !resources->is_array()) return std::nullopt;
  std::optional<Found> found;
  for (const Json& each : resources->get_array()) {
    const std::string_view name = FindString(each, "name");
    if (found || FindString(each, "kind") != kind || !IsDnsLabel(name)) continue;
    const Json* namespaced = Find(each, "namespaced");
    const bool is_namespaced =
        namespaced != nullptr && namespaced->is_bool() && namespaced->get_bool();
    found = Found{std::string(name), is_namespaced, false};
  }
  if (!found) return std::nullopt;
  for (const Json& each : resources->get_array()) {
    found->scales = found->scales || FindString(each, "name") == found->plural + "/scale";
  }
  return found;
}

Json AnnotationPatch(const std::string& key, bool named, std::string_view uid) {
  JsonObject annotations;
  annotations[key] = named ? Json("true") : Json(nullptr);
  JsonObject meta{{"annotations", std::move(annotations)}};
  if (!uid.empty()) meta["uid"] = uid;
  return {{"metadata", std::move(meta)}};
}

std::string AnnotationOf(const cluster::Node& node, const char* key) {
  const auto found = node.meta.annotations.find(key);
  return found == node.meta.annotations.end() ? "" : found->second;
}

}  // namespace

Result<kube::Resource> PoolScaling::ResourceOf(std::string_view api_version, std::string_view kind,
                                               bool scales, kube::Client& client) {
  const std::string key = fmt::format("{} {}", api_version, kind);
  if (const auto known = resources_.find(key); known != resources_.end()) return known->second;
  const size_t slash = api_version.find('/');
  const bool grouped = slash != std::string_view::npos;
  kube::ApiRequest request;
  request.method = "GET";
  request.path = fmt::format("/{}/{}", grouped ? "apis" : "api", api_version);
  const Result<Json> list = client.Send(request);
  if (!list.ok()) return list.status().Within(fmt::format("which resources {} has", api_version));
  const auto found = FindKind(*list, kind);
  if (!found) {
    return Status(Code::kNotFound,
                  fmt::format("the API server has no kind {} in {}", kind, api_version));
  }
  if (scales && !found->scales) {
    return Invalid(fmt::format("{} of {} has no subresource scale", kind, api_version));
  }
  kube::Resource resource{std::string(grouped ? api_version.substr(0, slash) : ""),
                          std::string(grouped ? api_version.substr(slash + 1) : api_version),
                          found->plural, std::string(kind), found->namespaced};
  resources_[key] = resource;
  return resource;
}

Result<kube::Resource> PoolScaling::TargetOf(const cluster::NodePool& pool, kube::Client& client) {
  NOS_ASSIGN(kube::Resource resource,
             ResourceOf(pool.target.api_version, pool.target.kind, true, client));
  if (resource.namespaced && pool.target.ns.empty()) {
    return Invalid(fmt::format("spec.scaleTargetRef.namespace is missing: {} are of a namespace",
                               resource.plural));
  }
  return resource;
}

Result<PoolScale> PoolScaling::Read(const cluster::NodePool& pool, kube::Client& client) {
  if (!pool.webhook.empty()) {
    if (!webhook_) return Status(Code::kUnimplemented, "webhooks of pools are not served here");
    const Result<std::string> answer = webhook_("GET", pool.webhook, "");
    if (!answer.ok()) return answer.status().Within("webhook of the pool");
    const Result<Json> json = ParseJson(*answer);
    const auto count = json.ok() ? CountIn(Find(*json, "replicas")) : std::nullopt;
    if (count) return PoolScale{*count, ""};
    return Invalid(fmt::format("the webhook of the pool does not say replicas: {}",
                               Shortened(*answer, kMaxText)));
  }
  if (pool.target.name.empty()) return Invalid("the pool names no scale target");
  NOS_ASSIGN(const kube::Resource resource, TargetOf(pool, client));
  kube::ApiRequest request;
  request.method = "GET";
  request.path = kube::PathOf(resource, pool.target.ns, pool.target.name, "scale");
  const Result<Json> answer = client.Send(request);
  if (!answer.ok()) {
    // The kind may have been removed and recreated with another plural or scope, so the next read
    // discovers it again.
    if (answer.status().code() == Code::kNotFound) {
      resources_.erase(fmt::format("{} {}", pool.target.api_version, pool.target.kind));
    }
    return answer.status().Within("scale of " + TargetText(pool));
  }
  Result<PoolScale> scale = ScaleIn(*answer);
  if (!scale.ok()) return scale.status().Within(TargetText(pool));
  return scale;
}

Status PoolScaling::Write(const cluster::NodePool& pool, const PoolScale& last, int32_t wanted,
                          const std::vector<std::string>& remove, kube::Client& client) {
  if (!pool.webhook.empty()) {
    if (!webhook_) return {Code::kUnimplemented, "webhooks of pools are not served here"};
    JsonArray names;
    for (const std::string& name : remove) names.emplace_back(name);
    const Json body{{"pool", pool.meta.name},
                    {"replicas", wanted},
                    {"from", last.wanted},
                    {"remove", std::move(names)}};
    const Result<std::string> answer = webhook_("POST", pool.webhook, WriteJson(body));
    return answer.ok() ? Status::Ok() : answer.status().Within("webhook of the pool");
  }
  NOS_ASSIGN(const kube::Resource resource, TargetOf(pool, client));
  JsonObject meta{{"name", pool.target.name}};
  if (resource.namespaced) meta["namespace"] = pool.target.ns;
  if (!last.version.empty()) meta["resourceVersion"] = last.version;
  const Json scale{{"apiVersion", "autoscaling/v1"},
                   {"kind", "Scale"},
                   {"metadata", std::move(meta)},
                   {"spec", {{"replicas", wanted}}}};
  const Result<Json> answer = client.Update(resource, pool.target.ns, scale, "scale");
  return answer.ok() ? Status::Ok() : answer.status().Within("scale of " + TargetText(pool));
}

// A node's annotations name its machine. They are trusted only if the machine's status.nodeRef
// names the node.
Status PoolScaling::Mark(const cluster::NodePool& pool, const cluster::Node& node, bool named,
                         kube::Client& client) {
  const std::string& key = pool.delete_annotation;
  if (key.empty()) return Status::Ok();
  const std::string machine = AnnotationOf(node, kMachine);
  if (machine.empty()) {
    if (node.meta.annotations.contains(key) == named) return Status::Ok();
    return client
        .Patch(kube::kNodes, "", node.meta.name, kube::PatchType::kMerge,
               AnnotationPatch(key, named, node.meta.uid))
        .status();
  }
  const std::string ns = AnnotationOf(node, kMachineNamespace);
  if (!IsDnsSubdomain(machine) || !IsDnsLabel(ns)) {
    return Invalid(fmt::format("node {}: its annotations {} and {} name no object", node.meta.name,
                               kMachine, kMachineNamespace));
  }
  const bool own_version = pool.target.api_version.starts_with(std::string(kMachineGroup) + "/");
  NOS_ASSIGN(const kube::Resource resource,
             ResourceOf(own_version ? pool.target.api_version : kMachineVersion, "Machine", false,
                        client));
  const std::string what = fmt::format("Machine {}/{}", ns, machine);
  const Result<Json> object = client.Get(resource, ns, machine);
  if (!object.ok()) return object.status().Within(what);
  if (FindString(*object, "status", "nodeRef", "name") != node.meta.name) {
    return Invalid(fmt::format("{} is not that of node {}, as the node's annotations say", what,
                               node.meta.name));
  }
  const bool is_named = Find(*object, "metadata", "annotations", std::string_view(key)) != nullptr;
  if (is_named == named) return Status::Ok();
  const Json patch = AnnotationPatch(key, named, FindString(*object, "metadata", "uid"));
  const Result<Json> written = client.Patch(resource, ns, machine, kube::PatchType::kMerge, patch);
  return written.ok() ? Status::Ok() : written.status().Within(what);
}

Status PoolScaling::Name(const cluster::NodePool& pool, const cluster::Node& node,
                         kube::Client& client) {
  return Mark(pool, node, true, client);
}

Status PoolScaling::Unname(const cluster::NodePool& pool, const cluster::Node& node,
                           kube::Client& client) {
  return Mark(pool, node, false, client);
}

}  // namespace nos::controllers
