// Finds nodes by label value.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/snapshot.h"

namespace nos::scheduling {

// Index of nodes by label value.
class DomainIndex {
 public:
  // Indices of nodes whose label `key` has this value. The index is built on first use of a key;
  // REQUIRES: the same snapshot until Clear.
  const std::vector<uint32_t>& NodesOf(const cluster::ClusterSnapshot& snapshot,
                                       std::string_view key, std::string_view value);
  // To be called when node labels change.
  void Clear() { by_key_.clear(); }

 private:
  using ByValue = std::map<std::string, std::vector<uint32_t>, std::less<>>;
  std::map<std::string, ByValue, std::less<>> by_key_;
};

}  // namespace nos::scheduling
