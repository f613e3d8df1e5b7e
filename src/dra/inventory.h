// All devices of a cluster and their use, kept current by changes: slices, taint rules and the
// allocations of claims come in one at a time, and counters, shares and pools follow.
//
//   Inventory inventory(Features::Of(37), expressions);
//   inventory.PutSlice(slice);
//   inventory.Allocate(claim.uid, *claim.allocation);
//   Allocate(inventory, claims, node);                  // allocator.h
//
// A pool is the slices of one driver with one pool name. Only its newest generation counts, and
// only once all of its slices are known.
//
// Not thread-safe: even a view fills caches.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cluster/objects.h"
#include "dra/features.h"
#include "dra/objects.h"
#include "dra/selectors.h"

namespace nos::dra {

class NodeView;
class PoolTable;

class Inventory {
 public:
  // Refers to `expressions`.
  Inventory(const Features& features, const DeviceExpressions& expressions);
  ~Inventory();

  // Adds the slice, or replaces the one of this name.
  void PutSlice(std::shared_ptr<const ResourceSlice> slice);
  void RemoveSlice(const std::string& name);
  // Replaces all rules.
  void SetTaintRules(std::vector<DeviceTaintRule> rules);

  // The devices of an allocation are in use by the claim until it releases them; a second call for
  // one claim replaces the first. Devices for admin access do not count. A device remains in use
  // while no slice lists it, with the counters that it consumed when it was last seen.
  void Allocate(const std::string& claim_uid, const Allocation& allocation);
  void Release(const std::string& claim_uid);

  // The devices that the node can use. `optional_node_operations`: the node declares that feature.
  // Cached: a call costs little until the slices of the node's pools, or its labels, change. Do not
  // keep the reference across changes of the inventory.
  const NodeView& View(const cluster::Node& node, bool optional_node_operations = false) const;
  void ForgetNode(const std::string& name);

  // Changes with every change of devices or their use.
  uint64_t version() const { return version_; }
  const Features& features() const;
  const DeviceExpressions& expressions() const;

 private:
  std::unique_ptr<PoolTable> pools_;
  uint64_t version_ = 0;
};

}  // namespace nos::dra
