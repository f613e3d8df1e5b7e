// Candidate nodes: nodes where a pending pod would fit if some of the running pods left. moves.h
// tries them one after the other.
//
//   const CandidateNode host(snapshot, "gpu-1", movable, pending);
//   for (const PodSubset& gone : host.SetsOf(2)) if (host.Fits(gone)) ...
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cluster/snapshot.h"
#include "planning/plan.h"
#include "scheduling/framework_choice.h"

namespace nos::planning {

// An eviction candidate: a running pod that may be moved.
struct EvictionCandidate {
  std::shared_ptr<const cluster::Pod> pod;
  bool in_quota = true;      // false: it exceeds min of its quota (quota_standing.h)
  int64_t gpu = 0, cpu = 0;  // its resources: thousandths of a GPU, of a core
};
EvictionCandidate EvictionCandidateOf(const std::shared_ptr<const cluster::Pod>& pod,
                                      const cluster::NodeInfo& node, bool over_quota);
// True if `a` should be moved rather than `b`: the less important pod, then the one over its quota,
// then the one with fewer resources, then by name.
bool IsRatherMoved(const EvictionCandidate& a, const EvictionCandidate& b);

// Cost of moving a set of pods; smaller is better, members are compared in order.
struct MoveCost {
  int32_t priority = 0;  // the highest of the set
  int in_quota = 0;
  int64_t gpu = 0, cpu = 0;
  friend auto operator<=>(const MoveCost&, const MoveCost&) = default;
};

// The pending pod for which others move.
struct PendingPod {
  PendingPod(std::shared_ptr<const cluster::Pod> pod, const scheduling::FrameworkChoice& frameworks,
             bool live, std::function<bool()> out_of_time);

  std::shared_ptr<const cluster::Pod> pod;
  // The pod without constraints on pods of other nodes, for trials on a snapshot with a single
  // node.
  std::shared_ptr<const cluster::Pod> alone;
  cluster::ResourceVector requests;
  scheduling::FrameworkChoice frameworks;
  bool live = false;  // filters for it depend on other nodes (live_filters.h)
  std::function<bool()> out_of_time;
};

// True if filters that depend on running pods currently reject the pod on this node.
bool IsRefused(const cluster::ClusterSnapshot& snapshot, const PendingPod& pod,
               const std::string& node);

using PodSubset = std::vector<size_t>;  // indices into CandidateNode::movable(), ascending

class CandidateNode {
 public:
  // `movable`: pods of this node. Pods whose departure cannot help are left out. The pending pod
  // must outlive this object. REQUIRES: the node is in the snapshot.
  CandidateNode(const cluster::ClusterSnapshot& snapshot, std::string node,
                std::vector<EvictionCandidate> movable, const PendingPod& pod);

  const std::string& name() const { return name_; }
  const std::vector<EvictionCandidate>& movable() const { return movable_; }
  PodSubset All() const;
  MoveCost CostOf(const PodSubset& gone) const;
  // A lower limit for the number of pods that must leave; more than movable().size() if the pod
  // cannot fit.
  size_t Least() const;

  // True if the pod fits after these have left; GPUs may be repartitioned.
  bool Fits(const PodSubset& gone) const;
  // The slices that the pod gets then. nullopt if it does not fit.
  std::optional<std::vector<AssignedDevice>> DevicesWithout(const PodSubset& gone) const;
  // All sets of `count` pods that may be enough, cheapest first. nullopt: more than `most` sets
  // would have to be checked.
  std::optional<std::vector<PodSubset>> SetsOf(size_t count, size_t most) const;
  // A sufficient set of which no subset is sufficient; not always the smallest one. REQUIRES:
  // Fits(All()).
  PodSubset Enough() const;

 private:
  bool Covers(const PodSubset& gone) const;
  bool MayHelp(const cluster::NodeInfo& node, const EvictionCandidate& candidate) const;
  void FindLacks(const cluster::NodeInfo& node);
  PodSubset Without(PodSubset gone, const std::vector<size_t>& order) const;
  cluster::ClusterSnapshot AloneWithout(const PodSubset& gone) const;

  const PendingPod& pod_;
  const std::string name_;
  const cluster::ClusterSnapshot& snapshot_;
  cluster::ClusterSnapshot alone_;  // only this node
  std::vector<EvictionCandidate> movable_;
  // Shortfall, without resources from GPU partitioning.
  std::vector<std::pair<cluster::ResourceId, int64_t>> lacks_;
  bool wants_slices_ = false;
};

}  // namespace nos::planning
