#include "cluster/read_parts.h"

namespace nos::cluster {
namespace {

void ReadOwner(Field& from, OwnerReference& to) {
  from.Members(At("apiVersion", to.api_version), At("kind", to.kind), At("name", to.name),
               At("uid", to.uid), At("controller", to.controller));
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

void ReadPodTerm(Field& from, PodAffinityTerm& to) {
  from.Members(At("labelSelector", to.selector, ReadSelector), At("namespaces", to.namespaces),
               At("namespaceSelector", to.namespace_selector, ReadSelector),
               At("topologyKey", to.topology_key));
}

void ReadPreferredPodTerm(Field& from, PreferredPodTerm& to) {
  from.Members(At("weight", to.weight), At("podAffinityTerm", to.term, ReadPodTerm));
}

}  // namespace

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

void ReadSelector(Field& from, LabelSelector& to) {
  from.Members(At("matchLabels", to.match_labels),
               At("matchExpressions", to.match_expressions, ReadRequirement));
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

void ReadPodAffinity(Field& from, PodAffinity& to) {
  from.Members(
      At("requiredDuringSchedulingIgnoredDuringExecution", to.required, ReadPodTerm),
      At("preferredDuringSchedulingIgnoredDuringExecution", to.preferred, ReadPreferredPodTerm));
}

void ReadSpread(Field& from, TopologySpreadConstraint& to) {
  from.Members(At("maxSkew", to.max_skew), At("topologyKey", to.topology_key),
               At("whenUnsatisfiable", to.when_unsatisfiable),
               At("labelSelector", to.selector, ReadSelector), At("minDomains", to.min_domains),
               At("nodeAffinityPolicy", to.node_affinity_policy),
               At("nodeTaintsPolicy", to.node_taints_policy),
               At("matchLabelKeys", to.match_label_keys));
}

}  // namespace nos::cluster
