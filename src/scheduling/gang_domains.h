// Where a gang may begin whose members have to be near each other. Where the first of them goes
// decides for the others, so whoever places them one by one has to try each topology domain.
//
//   const GangTies ties(members);
//   const auto domains = ties.Domains(nodes, [&](size_t node) { return RoomOn(node); });
//   ... the first member of which ties.IsTied says so begins in one of them
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

// Whether the pod may fit where it does not as soon as others are placed: it has to be near some,
// or to be spread as evenly as they are.
bool MayFollow(const cluster::Pod& pod);

class GangTies {
 public:
  explicit GangTies(std::span<const std::shared_ptr<const cluster::Pod>> members);

  // Whether some of the members have to be near members (required affinity), be it themselves.
  bool near() const { return !keys_.empty(); }
  // Whether the member, by its place among them, is one of those, or one that they have to be near.
  bool IsTied(size_t member) const { return tied_[member]; }
  // The nodes, by index, of each domain of the topology keys by which members have to be near
  // members; those first with room for most, then the largest. `room`: for about how many members
  // there is room on a node; domains without any are left out, and so are nodes that lack one of
  // the keys. Empty unless near().
  std::vector<std::vector<size_t>> Domains(std::span<const cluster::NodeInfo* const> nodes,
                                           FunctionRef<int64_t(size_t)> room) const;

 private:
  int64_t members_ = 0;
  std::set<std::string> keys_;
  std::vector<bool> tied_;  // by member
};

// For how many pods with these requests there is room on the node, counting free resources only, at
// most `most`. `as_cut`: slices on nodes whose GPUs are cut count as if all free parts of GPUs were
// cut for them; else as they are.
int64_t CopiesOn(const cluster::NodeInfo& node, const cluster::ResourceVector& requests,
                 bool as_cut, int64_t most);

}  // namespace nos::scheduling
