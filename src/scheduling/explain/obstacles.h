// Everything that excludes a pod from one node. Internal to explanations.
//
// Pure functions.
#pragma once

#include <optional>
#include <tuple>
#include <vector>

#include "scheduling/cycle.h"
#include "scheduling/explain.h"

namespace nos::scheduling {

// Instances to create and destroy on the node's GPUs; absent: partitioning does not help.
std::optional<Explanation::Repartition> FindRepartition(const cluster::NodeInfo& node,
                                                        const cluster::ResourceVector& requests);
// A member of the pod's gang that has found this node in the trial (explain_gang.h). It stays.
bool IsPlacedMember(const cluster::Pod& pod);
// Agents provide the resource on nodes with this node's label, but none has reported yet.
bool IsOfUnreportedAgent(const cluster::NodeInfo& node, cluster::ResourceId resource);
bool HasUsedInstances(const cluster::NodeGpus& gpus);

class Obstacles {
 public:
  Obstacles(const Cycle& cycle, const cluster::Pod& pod, const cluster::NodeInfo& node);

  bool none() const { return nearest_.objections.empty() && nearest_.lacks.empty(); }
  size_t objections() const { return nearest_.objections.size(); }
  // Number of shortfalls that partitioning does not resolve.
  size_t lacks() const;
  // True if less important pods hold all missing resources other than instances.
  bool GiveWay() const { return give_way_; }
  // Missing slices, if the first filter that refuses the pod names them.
  std::vector<const Explanation::Lack*> FirstSlices() const;
  // The node has none of the missing slices, because no component partitions its GPUs.
  bool NeedsOptIn() const { return needs_opt_in_; }
  bool LacksOnlySlices() const;
  // Sort key, nearest node first: node is down, resources it can never offer, number of obstacles,
  // the pod asks for other nodes, needs partitioning, relative shortfall.
  std::tuple<bool, size_t, size_t, bool, bool, double> Distance() const;
  const Explanation::Nearest& nearest() const { return nearest_; }

 private:
  void Add(const Verdict& verdict, const cluster::NodeInfo& node);
  void AddReason(const Reason& reason, const cluster::NodeInfo& node);

  const cluster::ResourceVector requests_;
  Explanation::Nearest nearest_;
  size_t first_lacks_ = 0;  // number of leading lacks that the first refusing filter names
  bool give_way_ = false, needs_opt_in_ = false;
};

}  // namespace nos::scheduling
