// NodePool (nos.nebuly.com/v1alpha1, without a namespace): nodes that are alike and can become more
// or fewer. What a node of it has, how many there may be, what one costs, and whom to ask for them.
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
// On the Machine of a node that is to go when its set is made smaller. Source: Cluster API,
// "Machine deletion": of a MachineSet those that have this annotation go first.
inline constexpr std::string_view kDeleteMachine = "cluster.x-k8s.io/delete-machine";

inline constexpr int kMostPoolNodes = 10'000;
inline constexpr Quantity kDefaultPods = Quantity::FromValue(110);  // as the kubelet
inline constexpr int kMostStartSeconds = 24 * 3600;

// The GPUs of one node.
struct PoolGpus {
  // One of the two: the name in the catalogue ("A100-80GB"), or the product as GPU feature
  // discovery labels nodes with it ("NVIDIA-A100-SXM4-80GB").
  std::string model, product;
  int32_t count = 0;  // 0: none
  Partitioning partitioning = Partitioning::kNone;
  Quantity memory;          // of one GPU; 0: as the catalogue says
  int32_t time_slices = 0;  // of a hybrid node's GPU; 0 or 1: none
  friend bool operator==(const PoolGpus&, const PoolGpus&) = default;
};

// What one node of a pool is, as it was learnt from nodes (node_template.h).
struct NodeTemplate {
  PoolGpus gpu;  // by product; "" where no label tells it
  ResourceList resources;
  StringMap labels;
  std::vector<Taint> taints;
  friend bool operator==(const NodeTemplate&, const NodeTemplate&) = default;
};
inline constexpr size_t kMostLearntLabels = 128;

// Anything with the subresource `scale`.
struct ScaleTarget {
  std::string api_version, kind, ns, name;  // "cluster.x-k8s.io/v1beta1", "MachineDeployment"
};

// How nodes are asked for where another autoscaler makes them: by what it looks at.
enum class PoolSignal {
  kNone,                 // nobody else makes them
  kWaitingPods,          // pods that wait and fit nowhere but on a node of this pool
  kProvisioningRequest,  // autoscaling.x-k8s.io, for as many such pods
};

struct NodePool {
  ObjectMeta meta;
  PoolGpus gpu;
  // Of one node, for pods: less what the system and DaemonSets take. With "pods"; where it learns,
  // what the spec says of them.
  ResourceList resources;
  StringMap labels;  // of its nodes; node_selector is part of them
  std::vector<Taint> taints;
  int32_t min = 0, max = 0;     // nodes
  Quantity price;               // of a node for an hour, in any currency; 0: not told
  int32_t start_seconds = 300;  // from asking for a node until it takes pods
  // One of the three.
  ScaleTarget target;   // no name: there is none
  std::string webhook;  // URL; "": there is none
  PoolSignal signal = PoolSignal::kNone;
  // On the machine of a node that is to go, before there are fewer; "": no node can be named.
  std::string delete_annotation;
  StringMap node_selector;  // the labels by which its nodes are known; at least one
  // status
  int32_t nodes = 0, wanted = 0;
  std::optional<Time> asked;         // since when nodes are awaited; none: all are there
  int32_t failures = 0;              // times in a row that nodes did not come
  std::optional<Time> closed_until;  // no further ones are asked for before
  std::vector<Condition> conditions;
  // What the spec leaves out is learnt from nodes where it leaves out cpu or memory.
  bool learns = false;
  bool gpu_told = true, taints_told = true;
  // status.template. Empty: it has one that cannot be, which is to be replaced.
  std::optional<NodeTemplate> learnt;
};

std::string_view NameOf(Partitioning partitioning);  // "none", "mig", "mps", "hybrid"
std::string_view NameOf(PoolSignal signal);          // "", "Pods", "ProvisioningRequest"

// Whether it is one of the pool's nodes, by its labels.
bool IsOf(const NodePool& pool, const Node& node);

// Whether it can have been learnt: cpu, memory, and nothing that a pool could not say.
bool IsUsable(const NodeTemplate& known);

// In thousandths, rounded up.
int64_t MilliPriceOf(const NodePool& pool);

// As ReadPod: what is not known is ignored, a known field of the wrong type is an error with its
// path. So is what could not work: each error says which field, and what it must be. The API server
// checks most of it by the definition's schema; here it is checked whoever wrote it.
Status ReadNodePool(JsonSource json, NodePool& to);

}  // namespace nos::cluster
