#include "cmd/clustercheck/reader.h"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "cmd/clustercheck/topics.h"
#include "codec/cursor.h"
#include "codec/yaml.h"
#include "kube/client.h"

namespace nos::cmd {
namespace {

constexpr Duration kProxyPatience = std::chrono::seconds(5);
constexpr size_t kMaxConfig = size_t{1} << 20;  // bytes of YAML; etcd holds no larger object

class Reader {
 public:
  Reader(kube::Transport& transport, Snapshot& to)
      : transport_(transport), client_(transport), to_(to) {}

  Status ReadVersion() {
    kube::ApiRequest request;
    request.method = "GET";
    request.path = "/version";
    const Result<Json> version = client_.Send(request);
    if (version.ok()) {
      to_.server_version = std::string(FindString(*version, "gitVersion"));
      return Status::Ok();
    }
    to_.server_version = version.status();
    const Code code = version.status().code();
    const bool silent = code == Code::kUnavailable || code == Code::kDeadline;
    return silent ? version.status() : Status::Ok();
  }

  // Adds each item with its kind, which lists leave out. Only one item is held as a tree.
  Status List(const kube::Resource& resource, const std::string& ns = "") {
    Status unreadable;
    std::vector<Json> none;
    const auto add = [&](JsonSource item) {
      Result<Json> object = TreeOf(item);
      if (!object.ok() || !object->is_object()) {
        unreadable = object.status();
        return;
      }
      object->as_object()["kind"] = resource.kind;
      if (resource.kind == "CustomResourceDefinition") Shorten(*object);
      Take(*object, to_);
    };
    const auto again = [&] { Forget(resource.kind); };
    const auto listed = client_.ListEach(resource, ns, {}, again, add);
    return listed.ok() ? unreadable : listed.status();
  }

  void ReadConfigs() {
    std::set<std::pair<std::string, std::string>> names;
    for (const WorkloadFacts* workload : to_.AllOfNos()) {
      for (const std::string& name : workload->config_maps) names.emplace(workload->ns, name);
    }
    for (const auto& [ns, name] : names) {
      const Result<Json> map = client_.Get(kube::kConfigMaps, ns, name);
      if (map.ok()) TakeConfig(fmt::format("{}/{}", ns, name), *map);
    }
  }

  Status ReadEndpoints() {
    std::set<std::string> namespaces;
    for (const WebhookFacts& webhook : to_.webhooks.items) namespaces.insert(webhook.service_ns);
    for (const WorkloadFacts* workload : to_.AllOfNos()) namespaces.insert(workload->ns);
    namespaces.erase("");
    for (const std::string& ns : namespaces) {
      NOS_RETURN_IF_ERROR(
          List({"discovery.k8s.io", "v1", "endpointslices", "EndpointSlice", true}, ns));
    }
    return Status::Ok();
  }

  Status ReadLeases() {
    std::set<std::string> namespaces;
    for (const WorkloadFacts* workload : to_.AllOfNos()) {
      namespaces.insert(workload->ns);
      const Json* config = to_.ConfigOf(*workload);
      if (config != nullptr) {
        namespaces.emplace(FindString(*config, "leaderElection", "resourceNamespace"));
      }
    }
    namespaces.erase("");
    for (const std::string& ns : namespaces) NOS_RETURN_IF_ERROR(List(kube::kLeases, ns));
    return Status::Ok();
  }

  // By the API server's proxy, through the Service of the chart.
  void ReadTelemetryMetrics() {
    const auto servers = to_.Running("telemetry");
    if (servers.empty()) return;
    kube::ApiRequest request;
    request.method = "GET";
    request.path = fmt::format("/api/v1/namespaces/{}/services/{}-metrics:metrics/proxy/metrics",
                               servers.front()->ns, servers.front()->name);
    request.accept = "text/plain";
    request.patience = kProxyPatience;
    to_.telemetry_metrics = TextOf(transport_.Do(request));
  }

  void AskRights() {
    to_.access = RightsToAskFor(to_);
    Ask(true);
    Ask(false);
  }

 private:
  static Result<std::string> TextOf(Result<kube::ApiResponse> answer) {
    if (!answer.ok()) return answer.status();
    if (answer->code == 200) return std::move(answer->text);
    const auto status = answer->text.empty() ? Result<Json>(answer->body) : ParseJson(answer->text);
    const std::string_view message = status.ok() ? FindString(*status, "message") : "";
    return Status(
        answer->code == 403 ? Code::kPermission : Code::kUnavailable,
        message.empty() ? fmt::format("HTTP status {}", answer->code) : std::string(message));
  }

  // The schemas of definitions are long.
  static void Shorten(Json& definition) {
    Json* spec = definition.as_object().if_contains("spec");
    if (spec == nullptr || !spec->is_object()) return;
    Json* versions = spec->as_object().if_contains("versions");
    if (versions == nullptr || !versions->is_array()) return;
    for (Json& version : versions->as_array()) {
      if (version.is_object()) version.as_object().erase("schema");
    }
  }

  // A list that is read again from its beginning.
  void Forget(std::string_view kind) {
    if (kind == "Node") to_.nodes.items.clear();
    if (kind == "Pod") to_.pods.items.clear();
    if (kind == "Deployment") to_.deployments.items.clear();
    if (kind == "DaemonSet") to_.daemon_sets.items.clear();
    if (kind == "StatefulSet") to_.stateful_sets.items.clear();
    if (kind == "CustomResourceDefinition") to_.definitions.items.clear();
    if (kind == "RuntimeClass") to_.runtime_classes.items.clear();
    if (kind == "ClusterPolicy") to_.cluster_policies.items.clear();
  }

  void TakeConfig(const std::string& key, const Json& map) {
    const Json* data = Find(map, "data");
    if (data == nullptr || !data->is_object()) return;
    for (const auto& [file, text] : data->get_object()) {
      if (!text.is_string() || text.get_string().size() > kMaxConfig) continue;
      const auto documents = ParseYaml(View(text.get_string()));
      if (!documents.ok()) continue;
      for (const Json& document : *documents) {
        if (FindString(document, "apiVersion").starts_with("config.nos.nebuly.com/")) {
          to_.configs[key] = document;
        }
      }
    }
  }

  void Ask(bool own) {
    const kube::Resource resource{"authorization.k8s.io", "v1",
                                  own ? "selfsubjectaccessreviews" : "subjectaccessreviews",
                                  own ? "SelfSubjectAccessReview" : "SubjectAccessReview", false};
    std::vector<Json> reviews;
    std::vector<AccessFacts*> asked;
    for (AccessFacts& one : to_.access) {
      if (one.who.empty() != own) continue;
      JsonObject spec{{"resourceAttributes", JsonObject{{"group", one.group},
                                                        {"resource", one.resource},
                                                        {"subresource", one.subresource},
                                                        {"verb", one.verb},
                                                        {"namespace", one.ns},
                                                        {"name", one.name}}}};
      if (!own) {
        spec["user"] = one.who;
        // Bindings may name these groups in place of the account.
        const std::string group = one.who.substr(0, one.who.rfind(':'));
        spec["groups"] = JsonArray{"system:authenticated", "system:serviceaccounts",
                                   "system:serviceaccounts" + group.substr(group.rfind(':'))};
      }
      reviews.push_back(JsonObject{{"apiVersion", "authorization.k8s.io/v1"},
                                   {"kind", resource.kind},
                                   {"spec", std::move(spec)}});
      asked.push_back(&one);
    }
    const std::vector<Result<Json>> answers = client_.CreateAll(resource, reviews);
    for (size_t i = 0; i < asked.size() && i < answers.size(); ++i) {
      asked[i]->asked = answers[i].status();
      if (!answers[i].ok()) continue;
      const Json* allowed = Find(*answers[i], "status", "allowed");
      asked[i]->allowed = allowed != nullptr && allowed->is_bool() && allowed->get_bool();
    }
  }

  kube::Transport& transport_;
  kube::Client client_;
  Snapshot& to_;
};

}  // namespace

Result<Snapshot> ReadSnapshot(kube::Transport& transport, const std::string& ns, Time now) {
  Snapshot snapshot;
  snapshot.now = now;
  snapshot.nos_namespace = ns;
  Reader reader(transport, snapshot);
  NOS_RETURN_IF_ERROR(reader.ReadVersion());
  const std::string apps = "apps", v1 = "v1", quotas = "nos.nebuly.com", v1alpha1 = "v1alpha1";
  snapshot.deployments.status = reader.List({apps, v1, "deployments", "Deployment", true});
  snapshot.daemon_sets.status = reader.List({apps, v1, "daemonsets", "DaemonSet", true});
  snapshot.stateful_sets.status = reader.List({apps, v1, "statefulsets", "StatefulSet", true});
  snapshot.nodes.status = reader.List(kube::kNodes);
  snapshot.pods.status = reader.List(kube::kPods);
  snapshot.definitions.status = reader.List(
      {"apiextensions.k8s.io", v1, "customresourcedefinitions", "CustomResourceDefinition", false});
  const std::string admission = "admissionregistration.k8s.io";
  const Status validating = reader.List(
      {admission, v1, "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", false});
  const Status mutating = reader.List(
      {admission, v1, "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", false});
  snapshot.webhooks.status = validating.ok() ? mutating : validating;
  snapshot.runtime_classes.status =
      reader.List({"node.k8s.io", v1, "runtimeclasses", "RuntimeClass", false});
  snapshot.cluster_policies.status =
      reader.List({"nvidia.com", v1, "clusterpolicies", "ClusterPolicy", false});
  const Status elastic = reader.List({quotas, v1alpha1, "elasticquotas", "ElasticQuota", true});
  const Status composite =
      reader.List({quotas, v1alpha1, "compositeelasticquotas", "CompositeElasticQuota", true});
  snapshot.quotas.status = elastic.ok() ? composite : elastic;
  reader.ReadConfigs();
  snapshot.endpoints.status = reader.ReadEndpoints();
  snapshot.leases.status = reader.ReadLeases();
  reader.ReadTelemetryMetrics();
  reader.AskRights();
  return snapshot;
}

}  // namespace nos::cmd
