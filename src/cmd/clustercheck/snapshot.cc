#include "cmd/clustercheck/snapshot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "base/text.h"
#include "cluster/annotations.h"
#include "cluster/objects.h"
#include "controllers/pod_facts.h"
#include "scheduling/pod_state.h"
#include "scheduling/summary.h"

namespace nos::cmd {
namespace {

constexpr std::array<std::string_view, 6> kCommands{"partitioner", "agent",      "scheduler",
                                                    "operator",    "autoscaler", "telemetry"};

std::string ValueOf(const Labels& labels, std::string_view key) {
  const auto found = labels.find(key);
  return found == labels.end() ? "" : found->second;
}

// Calls `visit` for each element of the array at the path.
template <typename Visit, typename... Keys>
void Each(const Json& value, Visit visit, const Keys&... keys) {
  const Json* found = Find(value, keys...);
  if (found == nullptr || !found->is_array()) return;
  for (const Json& element : found->get_array()) visit(element);
}

template <typename... Keys>
Labels StringsAt(const Json& value, const Keys&... keys) {
  Labels out;
  const Json* found = Find(value, keys...);
  if (found == nullptr || !found->is_object()) return out;
  for (const auto& [key, text] : found->get_object()) {
    if (text.is_string()) out.emplace(key, View(text.get_string()));
  }
  return out;
}

template <typename... Keys>
int64_t NumberAt(const Json& value, const Keys&... keys) {
  const Json* found = Find(value, keys...);
  if (found == nullptr) return 0;
  if (found->is_int64()) return found->get_int64();
  return 0;
}

bool IsOfNos(std::string_view key) {
  return key.starts_with(cluster::kPrefix) || key.starts_with(cluster::kOldPrefix);
}

bool IsGpuResource(std::string_view name) { return name.starts_with("nvidia.com/"); }

bool AsksForGpu(const Json& pod) {
  bool asks = false;
  Each(
      pod,
      [&](const Json& container) {
        const Json* limits = Find(container, "resources", "limits");
        if (limits == nullptr || !limits->is_object()) return;
        for (const auto& [key, amount] : limits->get_object()) {
          asks = asks || IsGpuResource({key.data(), key.size()});
        }
      },
      "spec", "containers");
  return asks;
}

// `host_folders`: volume -> folder of the node
ContainerFacts ReadContainer(const Json& container, const Labels& host_folders) {
  ContainerFacts facts;
  facts.name = FindString(container, "name");
  facts.image = FindString(container, "image");
  const auto add = [&](const Json& word) {
    if (word.is_string()) facts.arguments.emplace_back(View(word.get_string()));
  };
  Each(container, add, "command");
  Each(container, add, "args");
  Each(
      container,
      [&](const Json& variable) {
        facts.environment[std::string(FindString(variable, "name"))] =
            FindString(variable, "value");
      },
      "env");
  Each(
      container,
      [&](const Json& mount) {
        const auto found = host_folders.find(FindString(mount, "name"));
        if (found != host_folders.end()) facts.host_folders.insert(found->second);
      },
      "volumeMounts");
  return facts;
}

}  // namespace

std::string NodeFacts::Label(std::string_view key) const { return ValueOf(labels, key); }

std::string NodeFacts::Condition(std::string_view type) const { return ValueOf(conditions, type); }

std::string NodeFacts::Reason(std::string_view type) const { return ValueOf(reasons, type); }

bool NodeFacts::HasGpu() const {
  return !resources.empty() || Label("nvidia.com/gpu.present") == "true" ||
         !Label(cluster::kProductLabel).empty();
}

std::string NodeFacts::Mode() const {
  cluster::Node node;
  node.meta.labels.insert(labels.begin(), labels.end());
  const std::string mode(cluster::RequestedSharingMode(node));
  return mode == "mig" || mode == "mps" || mode == "hybrid" ? mode : "";
}

std::string_view WorkloadFacts::NosCommand() const {
  for (const ContainerFacts& container : containers) {
    for (const std::string_view command : kCommands) {
      const auto& words = container.arguments;
      const auto at = std::ranges::find(words, command);
      if (at == words.end() || std::ranges::distance(words.begin(), at) > 1) continue;
      // Other programs have such arguments too; nos's daemons read a configuration.
      if (std::ranges::find(words, "--config") != words.end()) return command;
    }
  }
  return "";
}

std::optional<std::string> WorkloadFacts::Environment(std::string_view variable) const {
  for (const ContainerFacts& container : containers) {
    const auto found = container.environment.find(variable);
    if (found != container.environment.end()) return found->second;
  }
  return std::nullopt;
}

bool WorkloadFacts::HasImage(std::string_view part) const {
  return std::ranges::any_of(containers, [&](const ContainerFacts& container) {
    return container.image.find(part) != std::string::npos;
  });
}

std::string AccessFacts::Text() const {
  std::string text = verb + " " + resource;
  if (!subresource.empty()) text += "/" + subresource;
  if (!group.empty()) text += "." + group;
  return ns.empty() ? text : text + " in namespace " + ns;
}

std::vector<const WorkloadFacts*> Snapshot::AllOfNos() const {
  std::vector<const WorkloadFacts*> all;
  for (const auto* kind : {&deployments, &daemon_sets, &stateful_sets}) {
    for (const WorkloadFacts& workload : kind->items) {
      const bool here = nos_namespace.empty() || workload.ns == nos_namespace;
      if (here && !workload.NosCommand().empty()) all.push_back(&workload);
    }
  }
  return all;
}

std::vector<const WorkloadFacts*> Snapshot::Running(std::string_view command) const {
  std::vector<const WorkloadFacts*> all = AllOfNos();
  std::erase_if(all, [&](const WorkloadFacts* one) { return one->NosCommand() != command; });
  return all;
}

const Json* Snapshot::ConfigOf(const WorkloadFacts& workload) const {
  for (const std::string& name : workload.config_maps) {
    const auto found = configs.find(workload.ns + "/" + name);
    if (found != configs.end()) return &found->second;
  }
  return nullptr;
}

std::string Snapshot::AgentConfig(std::string_view group, std::string_view field) const {
  for (const WorkloadFacts* agent : Running("agent")) {
    if (const Json* config = ConfigOf(*agent))
      return std::string(FindString(*config, group, field));
  }
  return "";
}

NodeFacts ReadNodeFacts(const Json& node) {
  NodeFacts facts;
  facts.name = FindString(node, "metadata", "name");
  facts.labels = StringsAt(node, "metadata", "labels");
  facts.annotations = StringsAt(node, "metadata", "annotations");
  std::erase_if(facts.annotations, [](const auto& entry) { return !IsOfNos(entry.first); });
  Each(
      node,
      [&](const Json& condition) {
        const std::string type(FindString(condition, "type"));
        if (type != "Ready" && !IsOfNos(type)) return;
        facts.conditions[type] = FindString(condition, "status");
        facts.reasons[type] = FindString(condition, "reason");
      },
      "status", "conditions");
  for (const auto& [name, amount] : StringsAt(node, "status", "allocatable")) {
    if (IsGpuResource(name) && amount != "0") facts.resources.insert(name);
  }
  facts.runtime = FindString(node, "status", "nodeInfo", "containerRuntimeVersion");
  facts.kubelet = FindString(node, "status", "nodeInfo", "kubeletVersion");
  return facts;
}

namespace {

// Nullopt if the pod waits for no node, or cannot be read.
std::optional<PodFacts::Pending> PendingIn(const Json& json) {
  const auto pod = cluster::DecodePod(json);
  if (!pod.ok() || !scheduling::IsPending(*pod)) return std::nullopt;
  const auto summary = scheduling::Summarize(controllers::FactsOf(*pod));
  return PodFacts::Pending{pod->meta.created, summary.headline,
                           summary.actions.empty() ? "" : summary.actions.front().text};
}

}  // namespace

PodFacts ReadPodFacts(const Json& pod) {
  PodFacts facts;
  facts.ns = FindString(pod, "metadata", "namespace");
  facts.name = FindString(pod, "metadata", "name");
  facts.node = FindString(pod, "spec", "nodeName");
  facts.scheduler = FindString(pod, "spec", "schedulerName");
  facts.phase = FindString(pod, "status", "phase");
  Each(
      pod,
      [&](const Json& owner) {
        facts.owner = fmt::format("{}/{}", FindString(owner, "kind"), FindString(owner, "name"));
      },
      "metadata", "ownerReferences");
  Each(
      pod,
      [&](const Json& condition) {
        if (FindString(condition, "type") == "Ready") {
          facts.ready = FindString(condition, "status") == "True";
        }
      },
      "status", "conditions");
  facts.asks_for_gpu = AsksForGpu(pod);
  if (facts.asks_for_gpu && facts.node.empty()) facts.pending = PendingIn(pod);
  return facts;
}

WorkloadFacts ReadWorkloadFacts(const Json& workload, std::string_view kind) {
  WorkloadFacts facts;
  facts.kind = kind;
  facts.ns = FindString(workload, "metadata", "namespace");
  facts.name = FindString(workload, "metadata", "name");
  facts.labels = StringsAt(workload, "metadata", "labels");
  const bool daemons = kind == "DaemonSet";
  facts.desired = daemons ? NumberAt(workload, "status", "desiredNumberScheduled")
                          : NumberAt(workload, "spec", "replicas");
  facts.ready = daemons ? NumberAt(workload, "status", "numberReady")
                        : NumberAt(workload, "status", "readyReplicas");
  const Json* spec = Find(workload, "spec", "template", "spec");
  if (spec == nullptr) return facts;
  Labels host_folders;
  Each(
      *spec,
      [&](const Json& volume) {
        const std::string_view name = FindString(volume, "configMap", "name");
        if (!name.empty()) facts.config_maps.emplace(name);
        const std::string_view folder = FindString(volume, "hostPath", "path");
        if (!folder.empty()) host_folders.emplace(FindString(volume, "name"), folder);
      },
      "volumes");
  Each(
      *spec, [&](const Json& one) { facts.containers.push_back(ReadContainer(one, host_folders)); },
      "containers");
  facts.service_account = FindString(*spec, "serviceAccountName");
  facts.runtime_class = FindString(*spec, "runtimeClassName");
  return facts;
}

std::vector<WebhookFacts> ReadWebhookFacts(const Json& configuration) {
  std::vector<WebhookFacts> all;
  Each(
      configuration,
      [&](const Json& webhook) {
        WebhookFacts facts;
        facts.configuration = FindString(configuration, "metadata", "name");
        facts.name = FindString(webhook, "name");
        facts.service_ns = FindString(webhook, "clientConfig", "service", "namespace");
        facts.service = FindString(webhook, "clientConfig", "service", "name");
        facts.failure_policy = FindString(webhook, "failurePolicy");
        facts.has_ca = !FindString(webhook, "clientConfig", "caBundle").empty();
        if (facts.name.ends_with(".nos.nebuly.com")) all.push_back(std::move(facts));
      },
      "webhooks");
  return all;
}

EndpointFacts ReadEndpointFacts(const Json& slice) {
  EndpointFacts facts;
  facts.ns = FindString(slice, "metadata", "namespace");
  facts.service = FindString(slice, "metadata", "labels", "kubernetes.io/service-name");
  Each(
      slice,
      [&](const Json& endpoint) {
        // Source: EndpointConditions: an absent value counts as ready.
        const Json* ready = Find(endpoint, "conditions", "ready");
        if (ready == nullptr || !ready->is_bool() || ready->get_bool()) ++facts.ready;
      },
      "endpoints");
  return facts;
}

LeaseFacts ReadLeaseFacts(const Json& lease) {
  LeaseFacts facts;
  facts.ns = FindString(lease, "metadata", "namespace");
  facts.name = FindString(lease, "metadata", "name");
  facts.holder = FindString(lease, "spec", "holderIdentity");
  facts.seconds = NumberAt(lease, "spec", "leaseDurationSeconds");
  if (const auto time = ParseTime(FindString(lease, "spec", "renewTime")); time.ok()) {
    facts.renewed = *time;
  }
  return facts;
}

void Take(const Json& object, Snapshot& to) {
  const std::string_view kind = FindString(object, "kind");
  if (kind == "Node") to.nodes.items.push_back(ReadNodeFacts(object));
  if (kind == "Pod") to.pods.items.push_back(ReadPodFacts(object));
  if (kind == "Deployment") to.deployments.items.push_back(ReadWorkloadFacts(object, kind));
  if (kind == "DaemonSet") to.daemon_sets.items.push_back(ReadWorkloadFacts(object, kind));
  if (kind == "StatefulSet") to.stateful_sets.items.push_back(ReadWorkloadFacts(object, kind));
  if (kind == "CustomResourceDefinition") to.definitions.items.push_back(object);
  if (kind.ends_with("WebhookConfiguration")) {
    std::ranges::move(ReadWebhookFacts(object), std::back_inserter(to.webhooks.items));
  }
  if (kind == "EndpointSlice") to.endpoints.items.push_back(ReadEndpointFacts(object));
  if (kind == "Lease") to.leases.items.push_back(ReadLeaseFacts(object));
  if (kind == "RuntimeClass") {
    to.runtime_classes.items.push_back(fmt::format("{}={}", FindString(object, "metadata", "name"),
                                                   FindString(object, "handler")));
  }
  if (kind == "ClusterPolicy") to.cluster_policies.items.push_back(object);
  if (kind == "ElasticQuota" || kind == "CompositeElasticQuota") to.quotas.items.push_back(object);
}

}  // namespace nos::cmd
