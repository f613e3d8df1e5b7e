// All pools of a cluster, and the views of its nodes.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "dra/inventory.h"
#include "dra/pools/node_view.h"
#include "dra/pools/state.h"

namespace nos::dra {

class PoolTable {
 public:
  PoolTable(const Features& features, const DeviceExpressions& expressions)
      : features_(features), expressions_(expressions) {}

  void Put(SlicePointer slice);
  void Remove(const std::string& slice);
  void SetRules(std::vector<DeviceTaintRule> rules);
  void Allocate(const std::string& claim, const Allocation& allocation);
  void Release(const std::string& claim);
  const NodeView& View(const cluster::Node& node, bool optional_node_operations);
  void ForgetNode(const std::string& name) { views_.erase(name); }
  const Features& features() const { return features_; }
  const DeviceExpressions& expressions() const { return expressions_; }

 private:
  // A pool with the number of its last change, and the places of its slices.
  struct Entry {
    Pool pool;
    uint64_t changed = 0;
    std::map<std::string, int> slices_on;  // by node name; "": not of one node
  };
  // A view with what it was made from.
  struct CachedView {
    NodeView view;
    std::pair<size_t, uint64_t> stamp;  // number of pools, newest change among them
    cluster::StringMap labels;
  };

  Entry& EntryOf(const PoolId& id);
  void Place(const PoolId& id, Entry& entry, const std::string& node, int change);
  void DropIfEmpty(const PoolId& id);
  std::set<PoolId> PoolsOf(const std::string& node) const;
  NodeView Build(const cluster::Node& node, const std::set<PoolId>& pools);

  const Features features_;
  const DeviceExpressions& expressions_;
  std::vector<DeviceTaintRule> rules_;
  uint64_t changes_ = 0;
  std::map<PoolId, Entry> pools_;
  std::unordered_map<std::string, PoolId> pool_of_slice_;
  std::unordered_map<std::string, std::set<PoolId>> pools_on_;  // by node name, as above
  std::unordered_map<std::string, std::vector<AllocatedDevice>> claims_;
  std::unordered_map<std::string, CachedView> views_;
};

}  // namespace nos::dra
