// The Kubernetes objects nos decides on, as typed values: only the fields that matter to it.
// Field names and meanings are those of k8s.io/api core/v1. Plain data; copies are deep.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/quantity.h"
#include "base/status.h"
#include "codec/cursor.h"

namespace nos::cluster {

using StringMap = std::map<std::string, std::string, std::less<>>;
using ResourceList = std::map<std::string, Quantity, std::less<>>;

struct OwnerReference {
  std::string api_version, kind, name, uid;
  bool controller = false;
};

struct ObjectMeta {
  std::string name, ns, uid, resource_version;
  StringMap labels, annotations;
  std::vector<OwnerReference> owners;
  Time created{};
  std::optional<Time> deleted;  // deletionTimestamp
};

struct Taint {
  std::string key, value, effect;  // NoSchedule, PreferNoSchedule, NoExecute
};

struct Toleration {
  std::string key, op, value, effect;  // op: Equal (default) or Exists
};

// A requirement of a label or node selector. op: In, NotIn, Exists, DoesNotExist, Gt, Lt.
struct SelectorRequirement {
  std::string key, op;
  std::vector<std::string> values;
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
  std::optional<std::vector<NodeSelectorTerm>> required;  // terms are alternatives
  std::vector<PreferredNodeTerm> preferred;
};

struct Container {
  std::string name;
  ResourceList requests, limits;
  bool restart_always = false;  // an init container that keeps running (sidecar)
};

struct Condition {
  std::string type, status, reason, message;
  Time last_transition{};
};
// Null when there is none of this type.
const Condition* FindCondition(const std::vector<Condition>& conditions, std::string_view type);

struct Pod {
  ObjectMeta meta;
  // spec
  std::string node_name, scheduler_name, priority_class;
  int32_t priority = 0;
  StringMap node_selector;
  std::optional<NodeAffinity> node_affinity;
  std::vector<Toleration> tolerations;
  std::vector<Container> containers, init_containers;
  ResourceList overhead;
  ResourceList requests, limits;  // of the pod as a whole (spec.resources)
  std::vector<std::string> scheduling_gates;
  // status
  std::string phase, nominated_node, reason, message;
  std::vector<Condition> conditions;

  std::string Key() const { return meta.ns + "/" + meta.name; }
  bool Finished() const { return phase == "Succeeded" || phase == "Failed"; }
  const Condition* FindCondition(std::string_view type) const {
    return cluster::FindCondition(conditions, type);
  }
};

struct Node {
  ObjectMeta meta;
  bool unschedulable = false;
  std::vector<Taint> taints;
  ResourceList capacity, allocatable;
  std::vector<Condition> conditions;
};

// Unknown fields are ignored, null means absent; a known field of the wrong type is an error. What
// the API server would default is defaulted: namespace, scheduler name, phase. Values that only its
// validation refuses (an unknown operator) pass: a newer server may hold them, and they match
// nothing.
// Error: kInvalid with the field path: "spec.containers[1].resources.requests[cpu]: 'x' is not a
// quantity ...".
Result<Pod> DecodePod(JsonSource json);
Result<Node> DecodeNode(JsonSource json);
// The same, for many; all that can be read is in `to` even when something else is wrong.
Status ReadPod(JsonSource json, Pod& to);
Status ReadNode(JsonSource json, Node& to);

// What `kubectl get nodes,pods -A -o yaml|json` prints: a List, single objects, or several
// documents; YAML or JSON. Lists may hold Lists. Objects of other kinds are counted and skipped;
// what is of no kind at all, or of one that does not exist ("node"), is refused, and so is a Pod or
// Node that the API server would not accept where nos reads it (an unknown operator or effect, a
// Pod without containers). In a Pod, Node or List, apiVersion may be missing.
//
//   NOS_ASSIGN(Objects objects, ReadObjects(text, "nodes.yaml"));
struct Objects {
  std::vector<Pod> pods;
  std::vector<Node> nodes;
  size_t ignored = 0;  // objects of other kinds
};
// `source` names the text in errors. Error: kInvalid: "nodes.yaml: document 2, item 7 (Pod a/b):
// ...".
Result<Objects> ReadObjects(std::string_view text, std::string_view source);

// What the pod asks of a node in all: the sum of its containers and sidecars, or the most that any
// init container needs beside the sidecars started before it, if that is more; pod-level cpu,
// memory and huge pages in their place where given; plus overhead. Limits stand in for missing
// requests. Source: k8s.io/component-helpers resource.PodRequests; pod-level resources: KEP 2837.
ResourceList PodRequests(const Pod& pod);

}  // namespace nos::cluster
