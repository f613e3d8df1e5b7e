// Constraints of a pod on nodes and on other pods. Field names and meanings follow k8s.io/api
// core/v1. Plain data.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace nos::cluster {

using StringMap = std::map<std::string, std::string, std::less<>>;

struct Taint {
  std::string key, value, effect;  // NoSchedule, PreferNoSchedule, NoExecute
  friend auto operator<=>(const Taint&, const Taint&) = default;
};

struct Toleration {
  std::string key, op, value, effect;  // op: Equal (default) or Exists
};

// A requirement of a label or node selector. op: In, NotIn, Exists, DoesNotExist, Gt, Lt.
struct SelectorRequirement {
  std::string key, op;
  std::vector<std::string> values;
  friend bool operator==(const SelectorRequirement&, const SelectorRequirement&) = default;
};

// metav1.LabelSelector. An empty selector selects everything.
struct LabelSelector {
  StringMap match_labels;
  std::vector<SelectorRequirement> match_expressions;
  friend bool operator==(const LabelSelector&, const LabelSelector&) = default;
};

struct NodeSelectorTerm {
  std::vector<SelectorRequirement> match_expressions;
  std::vector<SelectorRequirement> match_fields;  // only metadata.name
};

struct PreferredNodeTerm {
  int weight = 0;
  NodeSelectorTerm term;
};

struct NodeAffinity {
  std::optional<std::vector<NodeSelectorTerm>> required;  // the terms are alternatives
  std::vector<PreferredNodeTerm> preferred;
};

// Selects pods in `namespaces` and in namespaces that `namespace_selector` selects; in the pod's
// own namespace if both are empty. An absent selector selects no pod; an absent namespace selector
// selects no namespace.
struct PodAffinityTerm {
  std::optional<LabelSelector> selector;
  std::vector<std::string> namespaces;
  std::optional<LabelSelector> namespace_selector;
  std::string topology_key;
  friend bool operator==(const PodAffinityTerm&, const PodAffinityTerm&) = default;
};

struct PreferredPodTerm {
  int weight = 0;
  PodAffinityTerm term;
};

// podAffinity or podAntiAffinity.
struct PodAffinity {
  std::vector<PodAffinityTerm> required;  // all terms must hold
  std::vector<PreferredPodTerm> preferred;
  bool empty() const { return required.empty() && preferred.empty(); }
};

struct TopologySpreadConstraint {
  int32_t max_skew = 1;
  std::string topology_key;
  std::string when_unsatisfiable;         // DoNotSchedule, ScheduleAnyway
  std::optional<LabelSelector> selector;  // absent: no pod
  std::optional<int32_t> min_domains;
  // each either Honor or Ignore
  std::string node_affinity_policy = "Honor", node_taints_policy = "Ignore";
  std::vector<std::string> match_label_keys;
};

}  // namespace nos::cluster
