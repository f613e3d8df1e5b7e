// Finds topology domains in which a gang can start whose members must be near each other. The node
// of the first member restricts all others, so a caller that places members one by one must try
// each domain.
//
//   const GangTies ties(members);
//   const auto domains = ties.Domains(nodes, [&](size_t node) { return CapacityOf(node); });
//   // place the first member with ties.IsTied() in one of the domains
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/function_ref.h"
#include "cluster/snapshot.h"

namespace nos::scheduling {

// True if placing other pods can make the pod fit: it requires pod affinity, or a hard topology
// spread.
bool MayFollow(const cluster::Pod& pod);

class GangTies {
 public:
  explicit GangTies(std::span<const std::shared_ptr<const cluster::Pod>> members);

  // True if some member requires affinity to a member, possibly to itself.
  bool near() const { return !keys_.empty(); }
  // True if this member (by index) requires affinity to a member, or is the target of such a term.
  bool IsTied(size_t member) const { return tied_[member]; }
  // Node indices of each domain of the topology keys of those affinity terms. Domains are sorted by
  // capacity (at most the gang's size), then by size, largest first. `room`: approximate number of
  // members that fit on a node. Domains without capacity and nodes without one of the keys are left
  // out. Empty unless near().
  std::vector<std::vector<size_t>> Domains(std::span<const cluster::NodeInfo* const> nodes,
                                           FunctionRef<int64_t(size_t)> room) const;

 private:
  int64_t members_ = 0;
  std::set<std::string> keys_;
  std::vector<bool> tied_;  // by member index
};

// Number of pods with these requests that fit into the free resources of the node, at most `most`.
// `as_partitioned`: counts slices on nodes with managed GPUs as if all free parts of GPUs were
// repartitioned for them; else counts existing free slices.
int64_t CopiesOn(const cluster::NodeInfo& node, const cluster::ResourceVector& requests,
                 bool as_partitioned, int64_t most);

}  // namespace nos::scheduling
