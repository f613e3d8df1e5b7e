// Finds the MIG instances or shares for a pod on a node, and repartitions GPUs in the search if
// necessary.
//
//   if (CanProvide(info, requests)) {
//     auto promised = FindInstances(info, requests);  // "1g.5gb@6 of GPU 0"
//
// Used instances keep their placements. Placements are chosen in this order: free instances; new
// instances that fit beside all existing ones; new instances in place of free ones. Ties are broken
// by the `preferred` GPU, then the lowest loss of potential (gpu/fragmentation.h), the lower GPU
// index, the higher start.
//
// A node is not repartitioned if it has no agent, or if it still has to carry out a plan of another
// controller. `requests`: the pod's requests (RequestsOf); resources that are not slices are
// ignored.
//
// The search is exhaustive, with bounds that only artificial requests reach: those are refused.
//
// Pure functions; may be called from any thread.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "cluster/objects.h"
#include "cluster/placement/gpu_draft.h"
#include "cluster/resources.h"
#include "cluster/snapshot.h"

namespace nos::cluster {

// True if nos may request another layout from the node's agent now.
bool MayBePartitioned(const NodeInfo& node);

// The node as its agent will report it once the agent has carried out the node's plan, with the
// layout of today. The same object if no plan is left.
std::shared_ptr<const Node> WithoutPlan(const std::shared_ptr<const Node>& node);

// The node's GPUs with free instances in place of those whose pods have left the node, although the
// agent's last report calls them used, or are leaving it.
NodeGpus WithoutLeavers(const NodeInfo& node);

// True if the node has as many free instances as the pod requests.
bool HasFreeInstances(const NodeInfo& node, const ResourceVector& requests);

// One placement for each requested instance; nullopt if they do not fit together. `preferred`:
// Gpu::index.
std::optional<std::vector<PromisedInstance>> FindInstances(const NodeInfo& node,
                                                           const ResourceVector& requests,
                                                           std::optional<int> preferred = {});

// True if FindInstances finds placements; faster.
bool CanProvide(const NodeInfo& node, const ResourceVector& requests);

// The same for many nodes. It caches results by GPU state, and nodes whose GPUs offer the same
// capacity share one search.
//
//   InstanceFinder finder(requests);
//   for (const NodeInfo* node : nodes) if (finder.Can(*node)) ...
//
// Owned by one thread.
class InstanceFinder {
 public:
  explicit InstanceFinder(const ResourceVector& requests);
  std::optional<std::vector<PromisedInstance>> Find(const NodeInfo& node,
                                                    std::optional<int> preferred = {});
  bool Can(const NodeInfo& node);

 private:
  InstanceFinder(std::vector<ResourceId> kinds, const ResourceVector& requests);
  void Forget();
  // The requested slices on this node. Whole GPUs count only on nodes where they are instances.
  Share AskedOf(const NodeInfo& node) const;

  OfferBook book_;
  Share asked_;  // by the kinds of the book
  bool too_many_ = false;
  // By the offers of the node's GPUs and the requested slices.
  std::map<std::pair<std::vector<size_t>, Share>, bool> known_;
};

}  // namespace nos::cluster
