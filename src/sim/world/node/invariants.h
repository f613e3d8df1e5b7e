// What must hold in a virtual cluster after every step, whatever went wrong before. Each function
// says, in words, what does not hold.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cluster/objects.h"
#include "kube/client.h"
#include "sim/world/node/machine.h"

namespace nos::sim {

// A fault may be felt for as long: an event comes FaultRates::max_delay later, what was missed is
// read anew after a pause, an agent destroys when its patience ends.
inline constexpr Duration kFaultsLinger = std::chrono::minutes(2);

// No two instances overlap and every GPU's layout is one the hardware can have; shares of a GPU
// take no more memory together than it has, and are no more than its MPS server takes; every device
// that a pod holds is there, is of the kind it asked for, and is held by no other pod; every pod
// that runs has all its devices; no pod that a scheduler sent here has just been refused for want
// of devices, unless something was done to the cluster lately that explains it: whoever is late,
// because events come late, streams end, writes fail or processes die, acts on slices that are
// there no more.
std::vector<std::string> CheckMachine(const Machine& machine, Time now);

// What the API server holds of a node.
struct ApiTruth {
  cluster::Node node;
  std::vector<cluster::Pod> pods;  // bound to it
};
// Error: kNotFound when there is no such node, or what the API server answers.
Result<ApiTruth> TruthOf(kube::Client& client, const std::string& node);

// At the very moment a device leaves the kubelet's offer, it being there still (a share that nobody
// holds ends with the agent that has made it), held by nobody and
// not on a GPU that was lost before the agent could read it: the node object counts no more than
// what is left, so that no scheduler sends a pod for it, and every pod that is bound here and has
// not got its devices yet finds enough of them in the offer.
std::vector<std::string> CheckWithdrawal(const Machine& machine,
                                         const kubelet::OfferedDevice& device,
                                         const ApiTruth& truth);

// At the very moment an instance is destroyed, it being there still: no pod holds it, the kubelet
// may not hand it out, and every pod that is bound here and has not got its devices yet still finds
// enough of them.
std::vector<std::string> CheckDestruction(const Machine& machine,
                                          const device::GpuInstance& instance,
                                          const ApiTruth& truth);

// The pods bound to a node ask for no more than it has. MIG instances do not count: they come and
// go (see CheckMachine).
std::vector<std::string> CheckRoom(const cluster::Node& node,
                                   const std::vector<std::shared_ptr<const cluster::Pod>>& pods);

// What the partitioner and the agent wrote on the node can be read back.
std::vector<std::string> CheckNode(const cluster::Node& node, const gpu::Catalogue& catalogue);

}  // namespace nos::sim
