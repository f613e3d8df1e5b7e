// Computes the charge of a pod against the quota of its namespace: all resources that the pod
// requests, plus nos.nebuly.com/gpu-memory in GB for the GPUs and GPU slices among them:
//
//   nvidia.com/mig-1g.10gb: 2     20: memory in the profile's name
//   nvidia.com/gpu-8gb: 1          8: an MPS share
//   nvidia.com/gpu: 1             80: memory of the node's GPUs (label nvidia.com/gpu.memory)
//   nvidia.com/gpu.shared: 1      20: the same, divided by the number of pods that share a GPU
//                                     (label nvidia.com/gpu.replicas, or the number of time slices
//                                     on hybrid nodes), rounded up
//
// Devices of a pod's ResourceClaims count as the resources that they would be ("nvidia.com/gpu"),
// and in addition by their class, as ResourceQuota names them. A claim that several pods use counts
// once (ChargeParts, ledger.h).
//
// Pure functions of values.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "quota/amounts.h"

namespace nos::quota {

inline constexpr std::string_view kGpuMemory = "nos.nebuly.com/gpu-memory";

// Amounts by the keys ("ns/name") of the ResourceClaims that count for them.
using ClaimAmounts = std::vector<std::pair<std::string, Amounts>>;

// Knows the devices of ResourceClaims.
class ClaimCharges {
 public:
  virtual ~ClaimCharges() = default;
  // All claims that the pod names, without GPU memory. For claims that are not allocated yet: the
  // most that they may get. Nothing for claims that are not known.
  virtual ClaimAmounts Of(const cluster::Pod& pod) const = 0;
};

// The charge of a pod, and apart from it that of each of its claims, which other pods may use, too.
struct ChargeParts {
  Amounts own;
  ClaimAmounts claims = {};

  Amounts Total() const;
  // Returns the total without the claims that `counted` has, and adds the others to `counted`.
  Amounts TakeNew(std::set<std::string>& counted) const;
};

struct ChargeRules {
  // GB of a whole GPU of unknown model. Setting nvidiaGpuResourceMemoryGB of the Go implementation
  // of nos.
  int64_t gpu_memory_gb = 32;
  // GB of a time slice of a pod without a node. 0: charge it as a whole GPU.
  int64_t time_slice_gb = 0;
  std::shared_ptr<const ClaimCharges> claims{};  // null: claims count for nothing
};

// GB of resources whose name does not state their memory.
struct GpuWorth {
  int64_t whole = 0;       // of a GPU
  int64_t time_slice = 0;  // of one time slice of a GPU
  friend auto operator<=>(const GpuWorth&, const GpuWorth&) = default;
};
// Memory of the node's GPUs, from the first source that is present: label nvidia.com/gpu.memory,
// the largest model that the node's agent reports for a GPU that exists, but no more than the
// product's, the product in label nvidia.com/gpu.product.
// Null node: the defaults in `rules`.
GpuWorth GpuWorthOf(const cluster::Node* node, const ChargeRules& rules);

// True if the charge of the pod may differ between nodes: it requests whole GPUs or time slices, or
// claims devices.
bool DependsOnNode(const cluster::Pod& pod);

// Adds amounts by the names of their resources.
void Add(const std::map<std::string, int64_t>& counts, Amounts& to);

// `node`: the pod's node, or null if it has none.
ChargeParts ChargePartsOf(const cluster::Pod& pod, const cluster::Node* node,
                          const ChargeRules& rules);
// Their total.
Amounts ChargeOf(const cluster::Pod& pod, const cluster::Node* node, const ChargeRules& rules);

}  // namespace nos::quota
