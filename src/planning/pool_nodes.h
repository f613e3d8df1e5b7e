// A node that a pool would give, as filters and planner see nodes: it is in no cluster yet.
//
//   NOS_ASSIGN(auto node, NewNodeOf(pool, 0, catalogue));   // "a100/new-0"
//   snapshot.AddNodes({node});
//
// Its GPUs are empty and may be cut, as its agent will tell once it runs. Pure.
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

// "a100/new-3": no node of a cluster has a slash in its name.
std::string NewNodeName(std::string_view pool, int number);

// Labels are the pool's and those that kubelet and GPU feature discovery set; where the pool does
// not say otherwise, kubernetes.io/os is linux and kubernetes.io/arch amd64.
// A pool that learns is to have its template (cluster/node_template.h).
// Error: kInvalid with the field of the pool: its GPU is not in the catalogue, or cannot be divided
// so; or that nobody knows what its nodes are.
Result<std::shared_ptr<const cluster::Node>> NewNodeOf(const cluster::NodePool& pool, int number,
                                                       const gpu::Catalogue& catalogue);

// By pool: how many nodes of the snapshot are its own. One that several pools select is the
// first's.
std::vector<int> CountNodes(const cluster::ClusterSnapshot& snapshot,
                            std::span<const std::shared_ptr<const cluster::NodePool>> pools);
// Which of the pools it is of; -1: of none.
int PoolOf(const cluster::Node& node,
           std::span<const std::shared_ptr<const cluster::NodePool>> pools);

}  // namespace nos::planning
