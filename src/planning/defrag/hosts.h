// Nodes where a pod that waits would fit if some of those that run there did not. What moves.h
// tries, node after node.
//
//   const Host host(snapshot, "gpu-1", guests, newcomer);
//   for (const GuestSet& gone : host.SetsOf(2)) if (host.Fits(gone)) ...
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
#include "planning/planner.h"
#include "scheduling/framework_choice.h"

namespace nos::planning {

// A pod that runs and may be moved.
struct Guest {
  std::shared_ptr<const cluster::Pod> pod;
  bool in_quota = true;      // not told to be beyond it (quota/standing.h)
  int64_t gpu = 0, cpu = 0;  // what it has: thousandths of a GPU, of a core
};
Guest GuestOf(const std::shared_ptr<const cluster::Pod>& pod, const cluster::NodeInfo& node);
// Whom to move rather than the other: the less important, then who is beyond a quota, then who has
// less, then by name.
bool IsRatherMoved(const Guest& a, const Guest& b);

// Of moving several; smaller is better, in this order.
struct MoveCost {
  int32_t priority = 0;  // the highest
  int in_quota = 0;
  int64_t gpu = 0, cpu = 0;
  friend auto operator<=>(const MoveCost&, const MoveCost&) = default;
};

// The pod that waits.
struct Newcomer {
  Newcomer(std::shared_ptr<const cluster::Pod> pod, const scheduling::FrameworkChoice& frameworks,
           bool live, std::function<bool()> out_of_time);

  std::shared_ptr<const cluster::Pod> pod;
  // It without what it asks of pods on other nodes, to be tried on a node that is all there is.
  std::shared_ptr<const cluster::Pod> alone;
  cluster::ResourceVector requests;
  scheduling::FrameworkChoice frameworks;
  bool live = false;  // filters look at more than the node for it (live_filters.h)
  std::function<bool()> out_of_time;
};

// Whether filters that look at what runs refuse it there now.
bool IsRefused(const cluster::ClusterSnapshot& snapshot, const Newcomer& pod,
               const std::string& node);

using GuestSet = std::vector<size_t>;  // by their place among the guests, ascending

class Host {
 public:
  // `guests`: of this node. Those whose departure cannot help are left out. The newcomer must
  // outlive it. REQUIRES: the node is in the snapshot.
  Host(const cluster::ClusterSnapshot& snapshot, std::string node, std::vector<Guest> guests,
       const Newcomer& pod);

  const std::string& name() const { return name_; }
  const std::vector<Guest>& guests() const { return guests_; }
  GuestSet All() const;
  MoveCost CostOf(const GuestSet& gone) const;
  // Fewer cannot be enough; beyond the number of guests where nothing is.
  size_t Least() const;

  // Whether the pod fits there without them, GPUs cut as they may be.
  bool Fits(const GuestSet& gone) const;
  // The same; which slices it gets.
  std::optional<std::vector<AssignedDevice>> DevicesWithout(const GuestSet& gone) const;
  // All sets of so many that may be enough, the cheapest first. None: there would be more than
  // `most` to look at.
  std::optional<std::vector<GuestSet>> SetsOf(size_t count, size_t most) const;
  // One that is enough, and no part of it is: not always the smallest. REQUIRES: Fits(All()).
  GuestSet Enough() const;

 private:
  bool Covers(const GuestSet& gone) const;
  bool MayHelp(const cluster::NodeInfo& node, const Guest& guest) const;
  void FindLacks(const cluster::NodeInfo& node);
  GuestSet Without(GuestSet gone, const std::vector<size_t>& order) const;
  cluster::ClusterSnapshot AloneWithout(const GuestSet& gone) const;

  const Newcomer& pod_;
  const std::string name_;
  const cluster::ClusterSnapshot& snapshot_;
  cluster::ClusterSnapshot alone_;  // this node and no other
  std::vector<Guest> guests_;
  std::vector<std::pair<cluster::ResourceId, int64_t>> lacks_;  // beside GPUs that are cut
  bool wants_slices_ = false;
};

}  // namespace nos::planning
