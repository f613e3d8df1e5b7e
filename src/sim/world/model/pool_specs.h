// Node pools of a virtual cluster as short descriptions, and the objects they become.
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

// On the nodes of a pool: its name.
inline constexpr std::string_view kPoolLabel = "sim.nos.nebuly.com/pool";
// Where the objects behind pools are.
inline constexpr std::string_view kInfraNamespace = "infra";
// The namespace of Machine objects, and their names, on nodes. Source: Cluster API, "Node
// annotations".
inline constexpr std::string_view kMachineName = "cluster.x-k8s.io/machine";
inline constexpr std::string_view kMachineNamespace = "cluster.x-k8s.io/cluster-namespace";

extern const kube::Resource kPoolResource, kMachineSets, kMachines;

struct PoolSpec {
  std::string name = {};
  NodeSpec node = {};  // as all of its nodes are, but for their names
  int min = 0, max = 10;
  int nodes = 0;  // from the start
  Quantity price = Quantity::FromValue(1);
  Duration start = std::chrono::minutes(1);  // from asking for a node until it joins
  bool machines = false;                     // its nodes have Machines, which carry annotations
  bool unnamed = false;                      // no node of it can be named for removal
  bool untold = false;                       // its NodePool does not say what its nodes are
};

// From now on the API server serves NodePools, as the chart installs them but without the checks,
// and what stands behind them. OK when it does so already.
Status DefinePools(kube::Client& client);
// The NodePool, scaled by a MachineSet of its own name.
Json NodePoolObject(const PoolSpec& spec);
Json MachineSetObject(const PoolSpec& spec);
// Of the node of this name.
Json MachineObject(std::string_view name);

// As a NodePool describes it, or has learnt by its status, whoever makes its nodes there: it begins
// with its minimum. Error: kInvalid: GPUs that the virtual cluster does not have, or it does not
// say what a node is.
Result<PoolSpec> PoolSpecOf(const cluster::NodePool& told, const gpu::Catalogue& catalogue);

}  // namespace nos::sim
