// Builds the node that a NodePool would add, in the form that filters and planner use.
//
//   NOS_ASSIGN(auto node, NewNodeOf(pool, 0, catalogue));   // "a100/new-0"
//   snapshot.AddNodes({node});
//
// Its GPUs are empty and may be partitioned, as its agent will report once it runs. Pure functions.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "cluster/node_pool.h"
#include "cluster/snapshot.h"
#include "gpu/catalogue.h"

namespace nos::planning {

// "a100/new-3": names of real nodes cannot contain a slash.
std::string NewNodeName(std::string_view pool, int number);

// The labels are the NodePool's, and those that the kubelet and GPU feature discovery set. Unless
// the NodePool says otherwise, kubernetes.io/os is linux and kubernetes.io/arch is amd64, or arm64
// for GPUs that are on a chip with their processor (gpu::ArchitectureOfHost). A NodePool that
// derives its nodes from observed ones must have its template (cluster/node_template.h). Error:
// kInvalid with the NodePool's field: the catalogue does not contain its GPU, the GPU does not
// support the sharing mode, or the properties of its nodes are unknown.
Result<std::shared_ptr<const cluster::Node>> NewNodeOf(const cluster::NodePool& pool, int number,
                                                       const gpu::Catalogue& catalogue);

// Number of the snapshot's nodes in each NodePool. A node that several NodePools select belongs to
// the first.
std::vector<int> CountNodes(const cluster::ClusterSnapshot& snapshot,
                            std::span<const std::shared_ptr<const cluster::NodePool>> pools);
// Index of the NodePool that the node belongs to; -1 if none.
int PoolOf(const cluster::Node& node,
           std::span<const std::shared_ptr<const cluster::NodePool>> pools);

}  // namespace nos::planning
