// Where the MIG instances or shares that a pod asks for can be had on a node, cutting its GPUs if
// need be.
//
//   if (CanCut(info, requests)) {
//     auto promised = FindCut(info, requests);  // "1g.5gb@6 of GPU 0"
//
// Used instances stay where they are. Free ones serve the pod first; then what fits beside all that
// there is; and only then free ones give way. Among equals the GPU that is `preferred`, then that
// which loses least potential (gpu/fragmentation.h), the lower index, the higher start.
//
// A node that an agent does not manage, or that still has a plan of somebody else to carry out, is
// not cut. `requests`: those of the pod (RequestsOf); what are no MIG instances do not matter.
//
// What fits is found, however many GPUs and kinds there are, within a bound that only requests
// reach which were made to: those are refused.
//
// The functions are pure and may be called from any thread.
#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "cluster/placement/division.h"
#include "cluster/objects.h"
#include "cluster/resources.h"
#include "cluster/snapshot.h"

namespace nos::cluster {

// Whether nos may ask the node's agent for another layout now.
bool MayBeCut(const NodeInfo& node);

// Whether the node has as many free instances as are requested.
bool HasFreeInstances(const NodeInfo& node, const ResourceVector& requests);

// One for each instance that is requested; none: they do not fit there together.
// `preferred`: Gpu::index.
std::optional<std::vector<PromisedInstance>> FindCut(const NodeInfo& node,
                                                     const ResourceVector& requests,
                                                     std::optional<int> preferred = {});

// Whether FindCut finds something, faster.
bool CanCut(const NodeInfo& node, const ResourceVector& requests);

// The same for many nodes: it remembers what it learnt of GPUs in some state, and nodes whose GPUs
// can hold the same are looked at once.
//
//   CutFinder finder(requests);
//   for (const NodeInfo* node : nodes) if (finder.Can(*node)) ...
//
// One owner thread.
class CutFinder {
 public:
  explicit CutFinder(const ResourceVector& requests);
  std::optional<std::vector<PromisedInstance>> Find(const NodeInfo& node,
                                                    std::optional<int> preferred = {});
  bool Can(const NodeInfo& node);

 private:
  CutFinder(std::vector<ResourceId> kinds, const ResourceVector& requests);
  void Forget();
  // Where whole GPUs are no instances, none is asked for as such.
  Share AskedOf(const NodeInfo& node) const;

  OfferBook book_;
  Share asked_;  // of the book's kinds
  bool too_many_ = false;
  // By what the GPUs offer, and what is asked of the node.
  std::map<std::pair<std::vector<size_t>, Share>, bool> known_;
};

}  // namespace nos::cluster
