// The Kubernetes objects nos decides on, as typed values: only the fields that matter to it.
// Field names and meanings are those of k8s.io/api core/v1. Plain data; copies are deep.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/quantity.h"
#include "base/status.h"
#include "cluster/constraints.h"
#include "codec/cursor.h"
#include "gpu/layout.h"

namespace nos::gpu {
class Model;
}

namespace nos::cluster {

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

// A port of a container that takes one of its node.
struct HostPort {
  int32_t port = 0;
  std::string ip;                // "" and "0.0.0.0": every address
  std::string protocol = "TCP";  // TCP, UDP, SCTP
  friend bool operator==(const HostPort&, const HostPort&) = default;
};

struct Container {
  std::string name;
  ResourceList requests, limits;
  bool restart_always = false;  // an init container that keeps running (sidecar)
  std::string image{};
  std::vector<HostPort> host_ports{};  // only those with a host port
  int64_t user = -1;                   // securityContext.runAsUser; -1: as its pod says
  // What counts in place of `requests` while it is not resized to them: what its node has set aside
  // for it, and `requests` unless they can never be met there.
  std::optional<ResourceList> resizing{};
};

// Where a volume of a pod comes from, as far as a scheduler looks.
struct Volume {
  enum class Kind {
    kOther,
    kClaim,
    kEphemeral,
    kGcePersistentDisk,
    kAwsElasticBlock,
    kIscsi,
    kRbd
  };
  std::string name;
  Kind kind = Kind::kOther;
  // kClaim: the claim's name. Disks: what tells one from another ("pdName", "volumeID",
  // "iqn", "pool/image monitors...").
  std::string source{};
  bool read_only = false;
  std::vector<std::string> monitors{};  // of kRbd
  bool local = false;                   // on the node itself: hostPath, emptyDir unless of memory
};

// spec.workloadRef, of Kubernetes 1.35 alone: the pod belongs to a group of a Workload
// (scheduling.k8s.io).
struct WorkloadRef {
  std::string name, pod_group, replica_key;
};

struct Condition {
  std::string type, status, reason, message;
  Time last_transition{};
};
// Null when there is none of this type.
const Condition* FindCondition(const std::vector<Condition>& conditions, std::string_view type);

// A MIG instance of a node that is promised to a pod, whether it is there yet or not.
struct PromisedInstance {
  int gpu = 0;  // index
  gpu::Placement placement;
  // Which the GPU is switched to for it (Gpu::other); null: the one that it has.
  const gpu::Model* model = nullptr;
  friend bool operator==(const PromisedInstance&, const PromisedInstance&) = default;
};

struct Pod {
  ObjectMeta meta;
  // spec
  std::string node_name, scheduler_name, priority_class;
  int32_t priority = 0;
  StringMap node_selector;
  std::optional<NodeAffinity> node_affinity;
  PodAffinity pod_affinity, pod_anti_affinity;
  std::vector<TopologySpreadConstraint> spread;
  std::vector<Toleration> tolerations;
  std::vector<Container> containers, init_containers;
  ResourceList overhead;
  ResourceList requests, limits;  // of the pod as a whole (spec.resources)
  std::vector<std::string> scheduling_gates;
  std::vector<Volume> volumes;
  std::string preemption_policy;  // "": PreemptLowerPriority; or Never
  bool claims_devices = false;    // spec.resourceClaims is not empty
  std::optional<WorkloadRef> workload;
  std::string scheduling_group;  // spec.schedulingGroup.podGroupName, since Kubernetes 1.36
  bool host_ipc = false;
  int64_t user = -1;  // securityContext.runAsUser; -1: as the image says
  // status
  std::string phase, nominated_node, reason, message;
  std::optional<Time> started;  // startTime
  // When the last of its containers ended, or the last init container that failed.
  std::optional<Time> ended{};
  std::vector<Condition> conditions;
  // Not from the API server: set by a scheduler that has the node's GPUs cut for a pod which is not
  // bound yet. All instances that it requests.
  std::vector<PromisedInstance> promised{};

  std::string Key() const { return meta.ns + "/" + meta.name; }
  bool Finished() const { return phase == "Succeeded" || phase == "Failed"; }
  const Condition* FindCondition(std::string_view type) const {
    return cluster::FindCondition(conditions, type);
  }
};

// An image that a node has, under one of its names, which are long and many: a number stands for
// it. Two names may share one; it decides a preference only.
struct NodeImage {
  uint64_t name = 0;  // ImageId
  int64_t bytes = 0;
};
uint64_t ImageId(std::string_view name);

struct Node {
  ObjectMeta meta;
  bool unschedulable = false;
  std::vector<Taint> taints;
  ResourceList capacity, allocatable;
  std::vector<Condition> conditions;
  std::vector<NodeImage> images;  // sorted by name
  // Not from the API server: indexes of GPUs that a scheduler does not want cut for now.
  std::set<int> resting_gpus{};
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
// Takes an object of another kind; false: it is to be ignored.
using TakeOther = std::function<Result<bool>(std::string_view api_version, std::string_view kind,
                                             const Json& object)>;
// `source` names the text in errors. Error: kInvalid: "nodes.yaml: document 2, item 7 (Pod a/b):
// ...".
Result<Objects> ReadObjects(std::string_view text, std::string_view source,
                            const TakeOther& take_other = {});

// What the pod asks of a node in all: the sum of its containers and sidecars, or the most that any
// init container needs beside the sidecars started before it, if that is more; pod-level cpu,
// memory and huge pages in their place where given; plus overhead. Limits stand in for missing
// requests. Source: k8s.io/component-helpers resource.PodRequests; pod-level resources: KEP 2837.
// `when_missing`: what counts where a container requests none of a resource.
ResourceList PodRequests(const Pod& pod, const ResourceList& when_missing = {});

}  // namespace nos::cluster
