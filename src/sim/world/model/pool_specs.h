// Node pools of a virtual cluster as short descriptions, and their Kubernetes objects.
//
//   PoolSpec pool{.name = "a100", .node = {.gpus = {{"A100-40GB"}}}, .max = 4};
//   Json object = NodePoolObject(pool);
//
// Plain values.
#pragma once

#include <string>
#include <string_view>

#include "cluster/node_pool.h"
#include "kube/client.h"
#include "sim/specs.h"

namespace nos::sim {

// Label with the pool's name, on its nodes.
inline constexpr std::string_view kPoolLabel = "sim.nos.nebuly.com/pool";
// Namespace of the objects behind pools.
inline constexpr std::string_view kInfraNamespace = "infra";
// Node annotations with the namespace and name of the Machine. Source: Cluster API, "Node
// annotations".
inline constexpr std::string_view kMachineName = "cluster.x-k8s.io/machine";
inline constexpr std::string_view kMachineNamespace = "cluster.x-k8s.io/cluster-namespace";

extern const kube::Resource kPoolResource, kMachineSets, kMachines;

struct PoolSpec {
  std::string name = {};
  NodeSpec node = {};  // the common configuration of its nodes, apart from their names
  int min = 0, max = 10;
  int nodes = 0;  // initial number
  Quantity price = Quantity::FromValue(1);
  Duration start = std::chrono::minutes(1);  // time from the request for a node until it joins
  bool machines = false;                     // its nodes have Machines, which carry the annotations
  bool unnamed = false;                      // its nodes cannot be selected for removal
  bool undescribed = false;                  // its NodePool does not describe its nodes
};

// Makes the API server serve NodePools, as the chart installs them but without validation rules,
// and the objects behind them. OK if it already does.
Status DefinePools(kube::Client& client);
// The NodePool, scaled by a MachineSet of its own name.
Json NodePoolObject(const PoolSpec& spec);
Json MachineSetObject(const PoolSpec& spec);
// The Machine of the node with this name.
Json MachineObject(std::string_view name);

// The pool that the NodePool's spec or learned template describes, whatever creates its nodes in
// the real cluster; it starts with its minimum. Error: kInvalid for GPUs that the virtual cluster
// does not support, or if the NodePool does not describe its nodes.
Result<PoolSpec> PoolSpecOf(const cluster::NodePool& node_pool, const gpu::Catalogue& catalogue);

}  // namespace nos::sim
