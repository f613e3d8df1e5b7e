#include "cluster/objects.h"

#include <algorithm>

#include "cluster/fields.h"

namespace nos::cluster {
namespace {

void ReadOwner(Field& from, OwnerReference& to) {
  from.Members(At("apiVersion", to.api_version), At("kind", to.kind), At("name", to.name),
               At("uid", to.uid), At("controller", to.controller));
}

void ReadMeta(Field& from, ObjectMeta& to) {
  from.Members(At("name", to.name), At("namespace", to.ns), At("uid", to.uid),
               At("resourceVersion", to.resource_version), At("labels", to.labels),
               At("annotations", to.annotations), At("ownerReferences", to.owners, ReadOwner),
               At("creationTimestamp", to.created), At("deletionTimestamp", to.deleted));
}

void ReadCondition(Field& from, Condition& to) {
  from.Members(At("type", to.type), At("status", to.status), At("reason", to.reason),
               At("message", to.message), At("lastTransitionTime", to.last_transition));
}

void ReadRequirement(Field& from, SelectorRequirement& to) {
  from.Members(At("key", to.key), At("operator", to.op), At("values", to.values));
}

void ReadTerm(Field& from, NodeSelectorTerm& to) {
  from.Members(At("matchExpressions", to.match_expressions, ReadRequirement),
               At("matchFields", to.match_fields, ReadRequirement));
}

void ReadPreferredTerm(Field& from, PreferredNodeTerm& to) {
  from.Members(At("weight", to.weight), At("preference", to.term, ReadTerm));
}

void ReadTerms(Field& from, std::vector<NodeSelectorTerm>& to) {
  from.Members(At("nodeSelectorTerms", to, ReadTerm));
}

void ReadNodeAffinity(Field& from, NodeAffinity& to) {
  from.Members(
      At("requiredDuringSchedulingIgnoredDuringExecution", to.required, ReadTerms),
      At("preferredDuringSchedulingIgnoredDuringExecution", to.preferred, ReadPreferredTerm));
}

void ReadToleration(Field& from, Toleration& to) {
  from.Members(At("key", to.key), At("operator", to.op), At("value", to.value),
               At("effect", to.effect));
}

void ReadTaint(Field& from, Taint& to) {
  from.Members(At("key", to.key), At("value", to.value), At("effect", to.effect));
}

// A ResourceRequirements of any owner that has `requests` and `limits`.
template <typename Owner>
auto Resources(Owner& to) {
  return At("resources", [&to](Field& from) {
    from.Members(At("requests", to.requests), At("limits", to.limits));
  });
}

void ReadContainer(Field& from, Container& to) {
  std::string restart_policy;
  from.Members(At("name", to.name), Resources(to), At("restartPolicy", restart_policy));
  to.restart_always = restart_policy == "Always";
}

void ReadGate(Field& from, std::string& to) { from.Members(At("name", to)); }

void ReadPodSpec(Field& from, Pod& to) {
  from.Members(At("nodeName", to.node_name), At("schedulerName", to.scheduler_name),
               At("priorityClassName", to.priority_class), At("priority", to.priority),
               At("nodeSelector", to.node_selector),
               At("affinity",
                  [&](Field& affinity) {
                    affinity.Members(At("nodeAffinity", to.node_affinity, ReadNodeAffinity));
                  }),
               At("tolerations", to.tolerations, ReadToleration),
               At("containers", to.containers, ReadContainer),
               At("initContainers", to.init_containers, ReadContainer), At("overhead", to.overhead),
               Resources(to), At("schedulingGates", to.scheduling_gates, ReadGate));
}

void ReadPodStatus(Field& from, Pod& to) {
  from.Members(At("phase", to.phase), At("nominatedNodeName", to.nominated_node),
               At("reason", to.reason), At("message", to.message),
               At("conditions", to.conditions, ReadCondition));
}

void ReadNodeSpec(Field& from, Node& to) {
  from.Members(At("unschedulable", to.unschedulable), At("taints", to.taints, ReadTaint));
}

void ReadNodeStatus(Field& from, Node& to) {
  from.Members(At("capacity", to.capacity), At("allocatable", to.allocatable),
               At("conditions", to.conditions, ReadCondition));
}

template <typename T>
Status ReadObject(JsonSource json, T& to, void (*read_spec)(Field&, T&),
                  void (*read_status)(Field&, T&)) {
  NOS_RETURN_IF_ERROR(ReadFields(json, [&](Field& root) {
    root.Members(At("metadata", to.meta, ReadMeta), At("spec", to, read_spec),
                 At("status", to, read_status));
  }));
  return to.meta.name.empty() ? Invalid("metadata.name: is missing") : Status::Ok();
}

}  // namespace

const Condition* FindCondition(const std::vector<Condition>& conditions, std::string_view type) {
  const auto it = std::find_if(conditions.begin(), conditions.end(),
                               [&](const Condition& condition) { return condition.type == type; });
  return it == conditions.end() ? nullptr : &*it;
}

Status ReadPod(JsonSource json, Pod& to) {
  to = Pod();
  to.meta.ns = "default";
  to.scheduler_name = "default-scheduler";
  to.phase = "Pending";
  return ReadObject(json, to, ReadPodSpec, ReadPodStatus);
}

Status ReadNode(JsonSource json, Node& to) {
  to = Node();
  return ReadObject(json, to, ReadNodeSpec, ReadNodeStatus);
}

Result<Pod> DecodePod(JsonSource json) {
  Pod pod;
  NOS_RETURN_IF_ERROR(ReadPod(json, pod));
  return pod;
}

Result<Node> DecodeNode(JsonSource json) {
  Node node;
  NOS_RETURN_IF_ERROR(ReadNode(json, node));
  return node;
}

}  // namespace nos::cluster
