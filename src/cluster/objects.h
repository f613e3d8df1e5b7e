// The Kubernetes objects that nos uses, as typed values with only the fields that nos reads. Field
// names and meanings follow k8s.io/api core/v1. Plain data; copies are deep.
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

// A port of a container that occupies a port of the node.
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
  int64_t user = -1;                   // securityContext.runAsUser; -1: inherited from the pod
  // Replaces `requests` while a resize is in progress: the maximum of the resources allocated by
  // the kubelet and `requests`; only the allocated resources if the resize is infeasible.
  std::optional<ResourceList> resizing{};
};

// The source of a pod's volume, as far as a scheduler needs it.
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
  // kClaim: the claim's name. Disks: the identity of the disk ("pdName", "volumeID", "iqn",
  // "pool/image monitors...").
  std::string source{};
  bool read_only = false;
  std::vector<std::string> monitors{};  // for kRbd
  bool local = false;  // on the node itself: hostPath, or emptyDir that is not in memory
};

// spec.workloadRef, in Kubernetes 1.35 only: the pod belongs to a group of a Workload
// (scheduling.k8s.io).
struct WorkloadRef {
  std::string name, pod_group, replica_key;
};

struct Condition {
  std::string type, status, reason, message;
  Time last_transition{};
};
// Null if the object has no condition of this type.
const Condition* FindCondition(const std::vector<Condition>& conditions, std::string_view type);

// An instance of a node that is nominated for a pod, whether it exists yet or not.
struct PromisedInstance {
  int gpu = 0;  // index
  gpu::Placement placement;
  // The model that the GPU switches to for it (Gpu::alternative); null: the current model.
  const gpu::Model* model = nullptr;
  friend bool operator==(const PromisedInstance&, const PromisedInstance&) = default;
};

// An entry of spec.resourceClaims: devices that the pod gets through a ResourceClaim.
struct PodClaim {
  std::string name;
  // The ResourceClaim: resourceClaimName, or for a template the claim that was made for the pod
  // (status.resourceClaimStatuses). "": not made yet.
  std::string claim;
  std::string template_name;  // resourceClaimTemplateName
  bool unneeded = false;      // the status states that the pod needs no claim for this entry
  friend bool operator==(const PodClaim&, const PodClaim&) = default;
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
  ResourceList requests, limits;  // pod-level resources (spec.resources)
  std::vector<std::string> scheduling_gates;
  std::vector<Volume> volumes;
  std::string preemption_policy;  // PreemptLowerPriority or Never; "" means PreemptLowerPriority
  std::vector<PodClaim> claims;   // spec.resourceClaims
  std::optional<WorkloadRef> workload;
  std::string scheduling_group;  // spec.schedulingGroup.podGroupName, since Kubernetes 1.36
  int64_t grace_seconds = 30;    // terminationGracePeriodSeconds
  bool host_ipc = false;
  int64_t user = -1;  // securityContext.runAsUser; -1: as in the image
  // status
  std::string phase, nominated_node, reason, message;
  // The ResourceClaim that serves extended resources of the pod (extendedResourceClaimStatus).
  std::string extended_claim;
  std::optional<Time> started;  // startTime
  // When the last container ended, or the last init container that failed.
  std::optional<Time> ended{};
  std::vector<Condition> conditions;
  // Not from the API server: set by a scheduler that has the node's GPUs repartitioned for a pod
  // that is not bound yet. Lists all instances that the pod requests.
  std::vector<PromisedInstance> promised{};

  std::string Key() const { return meta.ns + "/" + meta.name; }
  // True if devices are prepared for it by ResourceClaims.
  bool HasClaims() const { return !claims.empty() || !extended_claim.empty(); }
  bool Finished() const { return phase == "Succeeded" || phase == "Failed"; }
  const Condition* FindCondition(std::string_view type) const {
    return cluster::FindCondition(conditions, type);
  }
};

// An image on a node, under one of its names. A hash replaces the name, because names are long and
// numerous. Two names may collide: this affects only a preference.
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
  // Not from the API server: indexes of GPUs that a scheduler excludes from repartitioning for now.
  std::set<int> resting_gpus{};
};

// Unknown fields are ignored, null means absent; a known field of the wrong type is an error.
// Applies the API server's defaults: namespace, scheduler name, phase. Values that only API server
// validation rejects (an unknown operator) are accepted: a newer server may store them, and they
// match nothing. Error: kInvalid with the field path: "spec.containers[1].resources.requests[cpu]:
// 'x' is not a quantity ...".
Result<Pod> DecodePod(JsonSource json);
Result<Node> DecodeNode(JsonSource json);
// The same, for many objects; `to` has all readable fields even if the result is an error.
Status ReadPod(JsonSource json, Pod& to);
Status ReadNode(JsonSource json, Node& to);

// Reads the output of `kubectl get nodes,pods -A -o yaml|json`: a List, single objects, or several
// documents; YAML or JSON. Lists may contain Lists. Objects of other kinds are counted and skipped.
// Refused are objects without a kind, objects of a kind that does not exist ("node"), and a Pod or
// Node with a field that the API server would reject and nos reads (an unknown operator or effect,
// a Pod without containers). A Pod, Node or List may omit apiVersion.
//
//   NOS_ASSIGN(Objects objects, ReadObjects(text, "nodes.yaml"));
struct Objects {
  std::vector<Pod> pods;
  std::vector<Node> nodes;
  size_t ignored = 0;  // objects of other kinds
};
// Receives each object of another kind; returns false to ignore it.
using TakeOther = std::function<Result<bool>(std::string_view api_version, std::string_view kind,
                                             const Json& object)>;
// `source` names the text in errors. Error: kInvalid: "nodes.yaml: document 2, item 7 (Pod a/b):
// ...".
Result<Objects> ReadObjects(std::string_view text, std::string_view source,
                            const TakeOther& take_other = {});

// Total requests of the pod on a node: the sum over containers and sidecars, or the maximum over
// init containers (each with the sidecars started before it), whichever is larger. Pod-level cpu,
// memory and huge pages replace the sum where given. Overhead is added. Limits replace missing
// requests. Source: k8s.io/component-helpers resource.PodRequests; pod-level resources: KEP 2837.
// `when_missing`: amounts for containers that request none of a resource.
ResourceList PodRequests(const Pod& pod, const ResourceList& when_missing = {});

}  // namespace nos::cluster
