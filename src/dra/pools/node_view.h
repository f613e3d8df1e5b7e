// The devices that one node can use, in the order in which kube-scheduler tries them.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "dra/pools/generation.h"

namespace nos::dra {

struct PoolId {
  Name driver, pool;
  std::string ToString() const { return driver.str() + "/" + pool.str(); }
  friend auto operator<=>(const PoolId&, const PoolId&) = default;
};

// The part of a pool that a node can use.
struct PoolView {
  PoolId id;
  const Generation* generation = nullptr;  // null if incomplete
  bool incomplete = false;                 // a slice of the generation is missing
  std::string problem;                     // why no device may be used; "": they may
  bool usable() const { return !incomplete && problem.empty(); }
};

struct ViewDevice {
  uint32_t pool = 0;   // into NodeView::pools
  uint32_t index = 0;  // into the devices of its generation
};

class NodeView {
 public:
  std::string node;
  bool optional_node_operations = false;
  // Sorted by driver and pool; pools with binding conditions come last.
  std::vector<PoolView> pools;
  // Devices of usable pools: by pool, slice name, and place in the slice.
  std::vector<ViewDevice> devices;

  const PoolDevice& Find(const ViewDevice& device) const {
    return pools[device.pool].generation->devices()[device.index];
  }

  // Indices of devices without those that the selectors are known to exclude. Null if no search has
  // evaluated the selectors. `key`: PreparedRequest::selectors_key. Not thread-safe.
  const std::vector<uint32_t>* NotExcluded(const Name& key) const {
    const auto found = not_excluded_.find(key);
    return found == not_excluded_.end() ? nullptr : &found->second;
  }
  void SetNotExcluded(const Name& key, std::vector<uint32_t> indices) const {
    if (not_excluded_.size() >= kMaxKeys) not_excluded_.clear();
    not_excluded_[key] = std::move(indices);
  }

 private:
  static constexpr size_t kMaxKeys = 32;  // any user may write selectors

  mutable std::unordered_map<Name, std::vector<uint32_t>> not_excluded_;
};

}  // namespace nos::dra
