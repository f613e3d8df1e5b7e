#include "cluster/objects.h"

#include <algorithm>

#include "cluster/fields.h"

namespace nos::cluster {
namespace {

void ReadOwner(const Field& from, OwnerReference& to) {
  from["apiVersion"].Read(to.api_version);
  from["kind"].Read(to.kind);
  from["name"].Read(to.name);
  from["uid"].Read(to.uid);
  from["controller"].Read(to.controller);
}

void ReadMeta(const Field& from, ObjectMeta& to) {
  from["name"].Read(to.name);
  if (to.name.empty()) from["name"].Fail("is missing");
  from["namespace"].Read(to.ns);
  from["uid"].Read(to.uid);
  from["resourceVersion"].Read(to.resource_version);
  from["labels"].Read(to.labels);
  from["annotations"].Read(to.annotations);
  from["ownerReferences"].Read(to.owners, ReadOwner);
  from["creationTimestamp"].Read(to.created);
  from["deletionTimestamp"].Read(to.deleted);
}

void ReadCondition(const Field& from, Condition& to) {
  from["type"].Read(to.type);
  from["status"].Read(to.status);
  from["reason"].Read(to.reason);
  from["message"].Read(to.message);
  from["lastTransitionTime"].Read(to.last_transition);
}

void ReadRequirement(const Field& from, SelectorRequirement& to) {
  from["key"].Read(to.key);
  from["operator"].Read(to.op);
  from["values"].Read(to.values);
}

void ReadTerm(const Field& from, NodeSelectorTerm& to) {
  from["matchExpressions"].Read(to.match_expressions, ReadRequirement);
  from["matchFields"].Read(to.match_fields, ReadRequirement);
}

void ReadPreferredTerm(const Field& from, PreferredNodeTerm& to) {
  from["weight"].Read(to.weight);
  ReadTerm(from["preference"], to.term);
}

void ReadNodeAffinity(const Field& from, NodeAffinity& to) {
  const Field required = from["requiredDuringSchedulingIgnoredDuringExecution"];
  if (required.Present()) required["nodeSelectorTerms"].Read(to.required.emplace(), ReadTerm);
  from["preferredDuringSchedulingIgnoredDuringExecution"].Read(to.preferred, ReadPreferredTerm);
}

void ReadToleration(const Field& from, Toleration& to) {
  from["key"].Read(to.key);
  from["operator"].Read(to.op);
  from["value"].Read(to.value);
  from["effect"].Read(to.effect);
}

void ReadTaint(const Field& from, Taint& to) {
  from["key"].Read(to.key);
  from["value"].Read(to.value);
  from["effect"].Read(to.effect);
}

void ReadContainer(const Field& from, Container& to) {
  from["name"].Read(to.name);
  from["resources"]["requests"].Read(to.requests);
  from["resources"]["limits"].Read(to.limits);
  std::string restart_policy;
  from["restartPolicy"].Read(restart_policy);
  to.restart_always = restart_policy == "Always";
}

void ReadPodSpec(const Field& from, Pod& to) {
  from["nodeName"].Read(to.node_name);
  from["schedulerName"].Read(to.scheduler_name);
  from["priorityClassName"].Read(to.priority_class);
  from["priority"].Read(to.priority);
  from["nodeSelector"].Read(to.node_selector);
  const Field affinity = from["affinity"];
  const Field node_affinity = affinity["nodeAffinity"];
  if (node_affinity.Present()) ReadNodeAffinity(node_affinity, to.node_affinity.emplace());
  from["tolerations"].Read(to.tolerations, ReadToleration);
  from["containers"].Read(to.containers, ReadContainer);
  from["initContainers"].Read(to.init_containers, ReadContainer);
  from["overhead"].Read(to.overhead);
  from["resources"]["requests"].Read(to.requests);
  from["resources"]["limits"].Read(to.limits);
  from["schedulingGates"].Read(
      to.scheduling_gates, [](const Field& gate, std::string& name) { gate["name"].Read(name); });
}

void ReadPodStatus(const Field& from, Pod& to) {
  from["phase"].Read(to.phase);
  from["nominatedNodeName"].Read(to.nominated_node);
  from["reason"].Read(to.reason);
  from["message"].Read(to.message);
  from["conditions"].Read(to.conditions, ReadCondition);
}

}  // namespace

const Condition* Pod::FindCondition(std::string_view type) const {
  const auto it = std::find_if(conditions.begin(), conditions.end(),
                               [&](const Condition& condition) { return condition.type == type; });
  return it == conditions.end() ? nullptr : &*it;
}

Result<Pod> DecodePod(const Json& json) {
  Status error;
  Pod pod;
  pod.meta.ns = "default";
  pod.scheduler_name = "default-scheduler";
  pod.phase = "Pending";
  const Field root(json, error);
  ReadMeta(root["metadata"], pod.meta);
  ReadPodSpec(root["spec"], pod);
  ReadPodStatus(root["status"], pod);
  if (!error.ok()) return error;
  return pod;
}

Result<Node> DecodeNode(const Json& json) {
  Status error;
  Node node;
  const Field root(json, error);
  ReadMeta(root["metadata"], node.meta);
  root["spec"]["unschedulable"].Read(node.unschedulable);
  root["spec"]["taints"].Read(node.taints, ReadTaint);
  root["status"]["capacity"].Read(node.capacity);
  root["status"]["allocatable"].Read(node.allocatable);
  root["status"]["conditions"].Read(node.conditions, ReadCondition);
  if (!error.ok()) return error;
  return node;
}

}  // namespace nos::cluster
