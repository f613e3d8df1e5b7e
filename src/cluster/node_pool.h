// NodePool (nos.nebuly.com/v1alpha1, cluster-scoped): a scalable group of alike nodes. Describes
// the configuration of a node, the limits on the number of nodes, the price, and the API that
// creates nodes.
//
//   NodePool pool;
//   NOS_RETURN_IF_ERROR(ReadNodePool(json, pool));   // "spec.max: must be at least min (3)"
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/annotations.h"
#include "cluster/objects.h"

namespace nos::cluster {

inline constexpr std::string_view kPoolGroup = "nos.nebuly.com";
inline constexpr std::string_view kPoolVersion = "v1alpha1";
inline constexpr std::string_view kNodePool = "NodePool";
inline constexpr std::string_view kNodePools = "nodepools";
// Annotation on the Machine of the node to remove before its set is scaled down. Source: Cluster
// API, "Machine deletion": a MachineSet deletes Machines with this annotation first.
inline constexpr std::string_view kDeleteMachine = "cluster.x-k8s.io/delete-machine";

inline constexpr int kMaxPoolNodes = 10'000;
inline constexpr Quantity kDefaultPods = Quantity::FromValue(110);  // the kubelet's default
inline constexpr int kMaxStartSeconds = 24 * 3600;

// The GPUs of one node.
struct PoolGpus {
  // Exactly one of: the catalogue name ("A100-80GB"), or the product as labelled by GPU feature
  // discovery ("NVIDIA-A100-SXM4-80GB").
  std::string model, product;
  int32_t count = 0;  // 0: no GPUs
  SharingMode partitioning = SharingMode::kNone;
  Quantity memory;          // of one GPU; 0: as in the catalogue
  int32_t time_slices = 0;  // per GPU of a hybrid node; 0 or 1: no time-slicing
  friend bool operator==(const PoolGpus&, const PoolGpus&) = default;
};

// The configuration of one node of a NodePool, learned from existing nodes (node_template.h).
struct NodeTemplate {
  PoolGpus gpu;  // by product; "" if no label has it
  ResourceList resources;
  StringMap labels;
  std::vector<Taint> taints;
  friend bool operator==(const NodeTemplate&, const NodeTemplate&) = default;
};
inline constexpr size_t kMaxLearnedLabels = 128;

// Any object with the subresource `scale`.
struct ScaleTarget {
  std::string api_version, kind, ns, name;  // "cluster.x-k8s.io/v1beta1", "MachineDeployment"
};

// The signal that makes another autoscaler create nodes.
enum class PoolSignal {
  kNone,                 // no other autoscaler creates them
  kWaitingPods,          // pending pods that fit only on a node of this NodePool
  kProvisioningRequest,  // autoscaling.x-k8s.io, for the same number of such pods
};

struct NodePool {
  ObjectMeta meta;
  PoolGpus gpu;
  // Capacity of one node for pods: without the share of the system and of DaemonSets. Includes
  // "pods". If `learns`, only the amounts that the spec gives.
  ResourceList resources;
  StringMap labels;  // of its nodes; includes node_selector
  std::vector<Taint> taints;
  int32_t min = 0, max = 0;     // nodes
  Quantity price;               // per node and hour, in any currency; 0: unknown
  int32_t start_seconds = 300;  // from the request for a node until it accepts pods
  // Exactly one of the next three.
  ScaleTarget target;   // no name: not used
  std::string webhook;  // URL; "": not used
  PoolSignal signal = PoolSignal::kNone;
  // Annotation on the Machine of the node to remove before the group is scaled down; "": nodes
  // cannot be selected for removal.
  std::string delete_annotation;
  StringMap node_selector;  // the labels that identify its nodes; at least one
  // status
  int32_t nodes = 0, wanted = 0;
  std::optional<Time> asked;  // start of the wait for requested nodes; nullopt: none are missing
  int32_t failures = 0;       // consecutive requests without new nodes
  std::optional<Time> closed_until;  // no further requests before this time
  std::vector<Condition> conditions;
  // True if the spec omits cpu or memory: then everything that the spec omits is learned from
  // nodes.
  bool learns = false;
  bool gpu_specified = true, taints_specified = true;
  // status.template. Empty resources: the stored template is unusable and must be replaced.
  std::optional<NodeTemplate> learned;
};

std::string_view NameOf(SharingMode partitioning);  // "none", "mig", "mps", "hybrid"
std::string_view NameOf(PoolSignal signal);         // "", "Pods", "ProvisioningRequest"

// True if the node belongs to the NodePool, by its labels.
bool IsOf(const NodePool& pool, const Node& node);

// True if a template can have been learned: it has cpu and memory, and no value that a NodePool
// spec would reject.
bool IsUsable(const NodeTemplate& known);

// In thousandths, rounded up.
int64_t MilliPriceOf(const NodePool& pool);

// Like ReadPod: unknown fields are ignored, a known field of the wrong type is an error with its
// path. Values that cannot work are errors too; each error names the field and the accepted values.
// The schema in the CRD already makes the API server check most of it; this check does not depend
// on the schema.
Status ReadNodePool(JsonSource json, NodePool& to);

}  // namespace nos::cluster
