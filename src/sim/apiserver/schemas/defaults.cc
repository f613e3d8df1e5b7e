#include "sim/apiserver/schemas/defaults.h"

#include <array>

#include "base/quantity.h"
#include "codec/base64.h"

namespace nos::sim {
namespace {

// Calls `visit` for every object in the array at `key`.
template <typename Visit>
void ForEach(JsonObject& object, std::string_view key, Visit visit) {
  Json* list = object.if_contains(key);
  if (list == nullptr || !list->is_array()) return;
  for (Json& element : list->get_array()) {
    if (element.is_object()) visit(element.get_object());
  }
}

void Default(JsonObject& object, std::string_view key, Json value) {
  Json& member = object[key];
  if (member.is_null()) member = std::move(value);
}

bool IsAbsent(const JsonObject& object, std::string_view key) {
  const Json* member = object.if_contains(key);
  return member == nullptr || member->is_null();
}

void DefaultText(JsonObject& object, std::string_view key, std::string_view value) {
  Default(object, key, boost::json::string(value));
}

// The object at `key`; null if it is missing or not an object.
JsonObject* Member(JsonObject& object, std::string_view key) {
  Json* member = object.if_contains(key);
  return member == nullptr ? nullptr : member->if_object();
}

// "Always" for ":latest" and for images without a tag, unless a digest pins the image.
std::string_view PullPolicyFor(std::string_view image) {
  if (image.find('@') != std::string_view::npos) return "IfNotPresent";
  const size_t slash = image.rfind('/');
  const size_t colon = image.rfind(':');
  const bool tagged =
      colon != std::string_view::npos && (slash == std::string_view::npos || colon > slash);
  return !tagged || image.substr(colon + 1) == "latest" ? "Always" : "IfNotPresent";
}

void DefaultProbe(JsonObject& container, std::string_view key) {
  JsonObject* probe = Member(container, key);
  if (probe == nullptr) return;
  Default(*probe, "timeoutSeconds", 1);
  Default(*probe, "periodSeconds", 10);
  Default(*probe, "successThreshold", 1);
  Default(*probe, "failureThreshold", 3);
  if (JsonObject* http = Member(*probe, "httpGet")) {
    Default(*http, "path", "/");
    Default(*http, "scheme", "HTTP");
  }
}

// A limit without a request becomes the request.
void DefaultRequests(JsonObject& container) {
  Default(container, "resources", JsonObject());
  JsonObject* resources = Member(container, "resources");
  if (resources == nullptr) return;
  if (const JsonObject* limits = Member(*resources, "limits"); !limits || limits->empty()) return;
  // Default() may move members, so the limits are looked up afterwards.
  Default(*resources, "requests", JsonObject());
  JsonObject* requests = Member(*resources, "requests");
  if (requests == nullptr) return;
  for (const auto& [name, value] : *Member(*resources, "limits")) {
    if (!requests->contains(name)) (*requests)[name] = value;
  }
}

void DefaultContainer(JsonObject& container) {
  const Json* image = container.if_contains("image");
  const std::string_view name =
      image != nullptr && image->is_string() ? View(image->get_string()) : std::string_view();
  DefaultText(container, "imagePullPolicy", PullPolicyFor(name));
  Default(container, "terminationMessagePath", "/dev/termination-log");
  Default(container, "terminationMessagePolicy", "File");
  DefaultRequests(container);
  ForEach(container, "ports", [](JsonObject& port) { Default(port, "protocol", "TCP"); });
  for (const std::string_view probe : {"livenessProbe", "readinessProbe", "startupProbe"}) {
    DefaultProbe(container, probe);
  }
  ForEach(container, "env", [](JsonObject& variable) {
    JsonObject* from = Member(variable, "valueFrom");
    JsonObject* field = from == nullptr ? nullptr : Member(*from, "fieldRef");
    if (field != nullptr) Default(*field, "apiVersion", "v1");
  });
}

void DefaultVolume(JsonObject& volume) {
  if (volume.size() == 1 && volume.contains("name")) volume["emptyDir"] = JsonObject();
  for (const std::string_view kind : {"configMap", "secret", "projected", "downwardAPI"}) {
    if (JsonObject* source = Member(volume, kind)) Default(*source, "defaultMode", 420);
  }
  if (JsonObject* host = Member(volume, "hostPath")) Default(*host, "type", "");
}

void DefaultPodSpec(Json& pod) {
  JsonObject& spec = MakeObject(pod, "spec");
  Default(spec, "restartPolicy", "Always");
  Default(spec, "terminationGracePeriodSeconds", 30);
  Default(spec, "dnsPolicy", "ClusterFirst");
  Default(spec, "securityContext", JsonObject());
  Default(spec, "schedulerName", "default-scheduler");
  for (const std::string_view list : {"containers", "initContainers", "ephemeralContainers"}) {
    ForEach(spec, list, DefaultContainer);
  }
  ForEach(spec, "volumes", DefaultVolume);
}

void DefaultPod(Json& pod) {
  DefaultPodSpec(pod);
  JsonObject& spec = pod.get_object()["spec"].get_object();
  Default(spec, "enableServiceLinks", true);
  Default(spec, "serviceAccountName", "default");
  Default(spec, "serviceAccount", spec["serviceAccountName"]);
}

void DefaultService(Json& service) {
  JsonObject& spec = MakeObject(service, "spec");
  Default(spec, "type", "ClusterIP");
  Default(spec, "sessionAffinity", "None");
  Default(spec, "internalTrafficPolicy", "Cluster");
  ForEach(spec, "ports", [](JsonObject& port) {
    Default(port, "protocol", "TCP");
    if (port.contains("port")) Default(port, "targetPort", port["port"]);
  });
}

void DefaultDeployment(Json& deployment) {
  JsonObject& spec = MakeObject(deployment, "spec");
  Default(spec, "replicas", 1);
  Default(spec, "revisionHistoryLimit", 10);
  Default(spec, "progressDeadlineSeconds", 600);
  JsonObject& strategy = MakeObject(deployment, "spec", "strategy");
  Default(strategy, "type", "RollingUpdate");
  if (strategy["type"] != "RollingUpdate") return;
  JsonObject& rolling = MakeObject(deployment, "spec", "strategy", "rollingUpdate");
  Default(rolling, "maxUnavailable", "25%");
  Default(rolling, "maxSurge", "25%");
}

void DefaultJobSpec(JsonObject& spec) {
  // Only both together: without completions, the Job is a queue of work.
  const bool neither = IsAbsent(spec, "parallelism") && IsAbsent(spec, "completions");
  if (neither) spec["completions"] = 1;
  Default(spec, "parallelism", 1);
  Default(spec, "backoffLimit", 6);
  Default(spec, "completionMode", "NonIndexed");
  Default(spec, "suspend", false);
  Default(spec, "podReplacementPolicy", "TerminatingOrFailed");
}

// The labels by which a Job knows its pods (pkg/registry/batch/job, generateSelector).
void DefaultJobSelector(Json& job) {
  const std::string uid(FindString(job, "metadata", "uid"));
  const std::string name(FindString(job, "metadata", "name"));
  const Json* manual = Find(job, "spec", "manualSelector");
  if (uid.empty() || (manual != nullptr && *manual == true)) return;
  JsonObject& labels = MakeObject(job, "spec", "template", "metadata", "labels");
  for (const std::string_view prefix : {"", "batch.kubernetes.io/"}) {
    DefaultText(labels, std::string(prefix) + "controller-uid", uid);
    DefaultText(labels, std::string(prefix) + "job-name", name);
  }
  DefaultText(MakeObject(job, "spec", "selector", "matchLabels"),
              "batch.kubernetes.io/controller-uid", uid);
}

void DefaultCronJob(Json& cron) {
  JsonObject& spec = MakeObject(cron, "spec");
  Default(spec, "concurrencyPolicy", "Allow");
  Default(spec, "suspend", false);
  Default(spec, "successfulJobsHistoryLimit", 3);
  Default(spec, "failedJobsHistoryLimit", 1);
  DefaultJobSpec(MakeObject(cron, "spec", "jobTemplate", "spec"));
}

void DefaultStatefulSet(Json& set) {
  JsonObject& spec = MakeObject(set, "spec");
  Default(spec, "replicas", 1);
  Default(spec, "revisionHistoryLimit", 10);
  Default(spec, "podManagementPolicy", "OrderedReady");
  JsonObject& update = MakeObject(set, "spec", "updateStrategy");
  Default(update, "type", "RollingUpdate");
  if (update["type"] == "RollingUpdate") {
    Default(MakeObject(set, "spec", "updateStrategy", "rollingUpdate"), "partition", 0);
  }
  JsonObject& retention = MakeObject(set, "spec", "persistentVolumeClaimRetentionPolicy");
  Default(retention, "whenDeleted", "Retain");
  Default(retention, "whenScaled", "Retain");
}

void DefaultDaemonSet(Json& set) {
  Default(MakeObject(set, "spec"), "revisionHistoryLimit", 10);
  JsonObject& update = MakeObject(set, "spec", "updateStrategy");
  Default(update, "type", "RollingUpdate");
  if (update["type"] != "RollingUpdate") return;
  JsonObject& rolling = MakeObject(set, "spec", "updateStrategy", "rollingUpdate");
  Default(rolling, "maxUnavailable", 1);
  Default(rolling, "maxSurge", 0);
}

void DefaultSecret(Json& secret) {
  JsonObject& object = secret.get_object();
  Default(object, "type", "Opaque");
  const JsonObject* plain = Member(object, "stringData");
  if (plain == nullptr) return;
  JsonObject encoded;
  for (const auto& [key, value] : *plain) {
    if (value.is_string()) encoded[key] = EncodeBase64(View(value.get_string()));
  }
  JsonObject& data = MakeObject(secret, "data");
  for (const auto& [key, value] : encoded) data[key] = value;
  object.erase("stringData");
}

void DefaultNamespace(Json& ns) {
  const std::string name(FindString(ns, "metadata", "name"));
  MakeObject(ns, "metadata", "labels")["kubernetes.io/metadata.name"] = name;
  MakeObject(ns, "spec");
  Default(MakeObject(ns, "status"), "phase", "Active");
}

void DefaultDefinition(Json& definition) {
  JsonObject& names = MakeObject(definition, "spec", "names");
  const std::string kind(FindString(definition, "spec", "names", "kind"));
  DefaultText(names, "listKind", kind + "List");
  std::string singular = kind;
  for (char& c : singular) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  DefaultText(names, "singular", singular);
  Default(MakeObject(definition, "spec", "conversion"), "strategy", "None");
}

void DefaultDeviceRequest(JsonObject& request) {
  DefaultText(request, "allocationMode", "ExactCount");
  // Protobuf writes an absent count as 0.
  const bool exact = request["allocationMode"] == "ExactCount";
  if (exact && (IsAbsent(request, "count") || request["count"] == 0)) request["count"] = 1;
  ForEach(request, "tolerations",
          [](JsonObject& toleration) { DefaultText(toleration, "operator", "Equal"); });
}

void DefaultClaimSpec(JsonObject& spec) {
  JsonObject* devices = Member(spec, "devices");
  if (devices == nullptr) return;
  ForEach(*devices, "requests", [](JsonObject& request) {
    if (JsonObject* exactly = Member(request, "exactly")) DefaultDeviceRequest(*exactly);
    ForEach(request, "firstAvailable", DefaultDeviceRequest);
  });
}

void DefaultTemplate(const ResourceType& type, Json& object) {
  Json* at = &object;
  std::string_view path = type.pod_template;
  while (!path.empty() && at != nullptr && at->is_object()) {
    const size_t dot = path.find('.');
    at = at->get_object().if_contains(path.substr(0, dot));
    path = dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1);
  }
  if (at != nullptr && at->is_object()) DefaultPodSpec(*at);
}

void DefaultBuiltIn(const ResourceType& type, Json& object) {
  const std::string_view kind = type.kind;
  if (kind == "Service") DefaultService(object);
  if (kind == "Deployment") DefaultDeployment(object);
  if (kind == "Secret") DefaultSecret(object);
  if (kind == "Namespace") DefaultNamespace(object);
  if (kind == "CustomResourceDefinition") DefaultDefinition(object);
  if (kind == "ResourceClaim") DefaultClaimSpec(MakeObject(object, "spec"));
  if (kind == "ResourceClaimTemplate") DefaultClaimSpec(MakeObject(object, "spec", "spec"));
  if (kind == "Node") MakeObject(object, "spec");
  if (kind == "Job") DefaultJobSpec(MakeObject(object, "spec"));
  if (kind == "Job") DefaultJobSelector(object);
  if (kind == "CronJob") DefaultCronJob(object);
  if (kind == "StatefulSet") DefaultStatefulSet(object);
  if (kind == "DaemonSet") DefaultDaemonSet(object);
  if (kind == "ReplicaSet" || kind == "ReplicationController") {
    Default(MakeObject(object, "spec"), "replicas", 1);
  }
  if (kind == "PriorityClass") {
    Default(object.get_object(), "preemptionPolicy", "PreemptLowerPriority");
  }
}

struct CpuMemory {
  bool any = false, all_limited = true, equal = true;
};

void Account(const Json& container, CpuMemory& use) {
  for (const std::string_view name : {"cpu", "memory"}) {
    const auto request = Quantity::Parse(FindString(container, "resources", "requests", name));
    const auto limit = Quantity::Parse(FindString(container, "resources", "limits", name));
    const Quantity asked = request.value_or(Quantity());
    const Quantity most = limit.value_or(Quantity());
    if (asked > Quantity() || most > Quantity()) use.any = true;
    if (most == Quantity()) use.all_limited = false;
    if (asked != most) use.equal = false;
  }
}

// The scheduler does not look at a pod with scheduling gates, so the server itself says why it
// waits (pkg/registry/core/pod/strategy.go, applySchedulingGatedCondition).
JsonArray GatedCondition(const Json& pod) {
  const Json* gates = Find(pod, "spec", "schedulingGates");
  if (gates == nullptr || !gates->is_array() || gates->get_array().empty()) return {};
  return {JsonObject{{"type", "PodScheduled"},
                     {"status", "False"},
                     {"lastTransitionTime", FindString(pod, "metadata", "creationTimestamp")},
                     {"reason", "SchedulingGated"},
                     {"message", "Scheduling is blocked due to non-empty scheduling gates"}}};
}

}  // namespace

std::string_view QosClassOf(const Json& pod) {
  CpuMemory use;
  for (const std::string_view list : {"containers", "initContainers"}) {
    const Json* containers = Find(pod, "spec", list);
    if (containers == nullptr || !containers->is_array()) continue;
    for (const Json& container : containers->get_array()) Account(container, use);
  }
  if (!use.any) return "BestEffort";
  return use.all_limited && use.equal ? "Guaranteed" : "Burstable";
}

void ApplyDefaults(const ResourceType& type, Json& object) {
  if (type.custom != nullptr) return;
  if (type.kind == "Pod") return DefaultPod(object);
  DefaultBuiltIn(type, object);
  if (!type.pod_template.empty()) DefaultTemplate(type, object);
}

void ResetStatus(const ResourceType& type, Json& object) {
  if (!type.has_status || type.kind == "Node" || type.kind == "Namespace") return;
  JsonObject& root = object.get_object();
  root.erase("status");
  if (type.kind == "Pod") {
    JsonObject status{{"phase", "Pending"}, {"qosClass", QosClassOf(object)}};
    JsonArray conditions = GatedCondition(object);
    if (!conditions.empty()) status["conditions"] = std::move(conditions);
    root["status"] = std::move(status);
  } else if (type.kind == "PersistentVolumeClaim" || type.kind == "PersistentVolume") {
    root["status"] = {{"phase", "Pending"}};
  } else if (type.custom == nullptr) {
    root["status"] = JsonObject();
  }
}

}  // namespace nos::sim
