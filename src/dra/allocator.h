// Allocates devices to claims on one node, as kube-scheduler does, for any driver: the complete
// semantics of resource.k8s.io/v1, without side effects.
//
//   const PreparedClaims prepared(claims, classes, features);     // once for a pod
//   const AllocationOutcome outcome = Allocate(inventory, prepared, node, options);
//
// The search is exhaustive, so claims that fit are allocated. It is bounded by a number of steps,
// and tries devices that cannot be distinguished only once.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cluster/objects.h"
#include "dra/features.h"
#include "dra/inventory.h"
#include "dra/objects.h"

namespace nos::dra {

// Why claims were refused: not for lack of devices, but because an object is at fault.
enum class Fault {
  kNone,
  kFeatureDisabled,           // the claim needs a feature that is switched off
  kMissingClass,              // its DeviceClass does not exist
  kUnsupportedRequest,        // a kind of request, selector, mode or constraint of a newer API
  kTooManyDevices,            // more than 32 devices for one claim
  kExpressionFailed,          // a CEL expression does not compile, or fails for a device
  kCapacityNotRepresentable,  // an amount of capacity passes 64 bits
  kNegativeCapacity,
  kConstraintExcludesAll,  // all devices are asked for, and a constraint forbids one of them
  kPoolIncomplete,         // all devices are asked for, and a pool is being updated
  kPoolInvalid             // a pool contradicts itself
};
// CamelCase, for conditions and logs: "MissingClass".
const char* FaultName(Fault fault);

struct AllocationFault {
  Fault fault = Fault::kNone;
  std::string message;
  // Only this node is affected: others may serve the claims.
  bool node_only = false;
};

// Finds a DeviceClass by name; null: it does not exist.
using FindClass = std::function<std::shared_ptr<const DeviceClass>(const std::string& name)>;

struct PreparedClaim;

// Claims that are allocated together, checked and ready for every node.
class PreparedClaims {
 public:
  PreparedClaims(std::vector<std::shared_ptr<const ResourceClaim>> claims,
                 const FindClass& find_class, const Features& features);
  ~PreparedClaims();
  PreparedClaims(PreparedClaims&&) noexcept;

  // Set if no node can serve the claims.
  const std::optional<AllocationFault>& fault() const { return fault_; }
  const std::vector<PreparedClaim>& claims() const { return claims_; }

 private:
  std::optional<AllocationFault> fault_;
  std::vector<PreparedClaim> claims_;
};

class NodeView;

// A device that may be chosen, or that has been chosen: NodeView::devices[index].
struct DeviceChoice {
  uint32_t index = 0;
};

// How much less a node can serve once the chosen devices are in use. For comparing nodes.
struct DeviceLoss {
  double gpus = 0;  // in whole GPUs
  // Free slots that are left on the GPUs of the chosen instances, or on all empty GPUs of the node
  // if whole GPUs are chosen.
  int free_slots = 0;
  uint32_t tie = 0;  // lower: GPUs with more instances, which stay in use anyway
  auto operator<=>(const DeviceLoss&) const = default;
};

// Decides which device is tried first.
class DeviceRanking {
 public:
  virtual ~DeviceRanking() = default;
  // Orders `devices`, the best first: all that are free for one device of a request, in
  // kube-scheduler's order. `view`: all devices of the node with their use; `chosen`: the devices
  // chosen so far in this call. May not add or remove.
  virtual void Rank(const NodeView& view, std::span<const DeviceChoice> chosen,
                    std::vector<DeviceChoice>& devices) const = 0;
  virtual DeviceLoss LossOf(const NodeView& /*view*/,
                            std::span<const DeviceChoice> /*chosen*/) const {
    return {};
  }
};

struct AllocationOptions {
  // Devices that may be tried, over all levels of the search. Evaluations of expressions count,
  // too, by their cost. A million takes about a tenth of a second.
  int64_t max_steps = 1'000'000;
  // Null: kube-scheduler's order, the first that fits. Also in its order: claims for which a device
  // is at fault, and searches for which the ranking's order takes too many steps.
  const DeviceRanking* ranking = nullptr;
  // Each firstAvailable request tries its alternatives from this index on, or from the last one if
  // it has fewer. It tries the ones before that after the others.
  size_t first_alternative = 0;
  bool optional_node_operations = false;  // the node declares DRAOptionalNodeOperations
};

struct AllocationOutcome {
  enum class Kind {
    kAllocated,
    kDoesNotFit,      // not on this node, as long as nothing is released or added
    kStepsExhausted,  // unknown: the search ended at max_steps
    kRefused          // see `fault`
  };
  Kind kind = Kind::kDoesNotFit;
  AllocationFault fault;
  std::vector<Allocation> allocations;  // one for each claim, in their order
  int64_t steps = 0;                    // devices tried
  bool ranked = false;                  // kAllocated: found in the ranking's order
  DeviceLoss loss;                      // kAllocated, by the ranking
  // kAllocated: sum over the requests of how many alternatives are tried before the allocated one.
  int alternatives = 0;
};

// Returns AllocatedDevice::share_id for a device that the claim shares.
std::string ShareIdOf(const ResourceClaim& claim, const AllocatedDevice& device);

// Does not change the use in `inventory`: the caller passes the allocations to Inventory::Allocate
// when it decides for this node. Share ids are derived from the claim's uid, so a repeated call
// gives the same ones.
AllocationOutcome Allocate(const Inventory& inventory, const PreparedClaims& claims,
                           const cluster::Node& node, const AllocationOptions& options = {});

}  // namespace nos::dra
