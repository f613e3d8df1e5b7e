// Invariants of a virtual cluster that must hold after every step, whatever faults happened before.
// Each function returns the violations as text.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cluster/objects.h"
#include "kube/client.h"
#include "sim/world/node/machine.h"

namespace nos::sim {

// How long a fault may have effects: an event arrives FaultRates::max_delay late, a client reads
// again after a pause, an agent's time limit expires before it destroys an instance.
inline constexpr Duration kFaultsLinger = std::chrono::minutes(2);

// Checks a machine:
// - No two instances overlap, and the hardware supports the layout of every GPU.
// - Shares of a GPU take at most its memory, and are at most as many as its MPS server accepts.
// - Every device that a pod holds exists, has the requested resource, and is held by no other pod.
// - Every running pod has all its devices.
// - The kubelet has not just refused a scheduled pod for lack of devices, unless a recent
//   disturbance explains it: a component that is late because events are delayed, streams end,
//   writes fail or processes die acts on slices that no longer exist.
std::vector<std::string> CheckMachine(const Machine& machine, Time now);

// The API server's objects for a node.
struct ApiTruth {
  cluster::Node node;
  std::vector<cluster::Pod> pods;  // bound to it
};
// Error: kNotFound if there is no such node; otherwise the error of the API server.
Result<ApiTruth> TruthOf(kube::Client& client, const std::string& node);

// Called at the moment when the agent withdraws a device from the kubelet. Skips a device that a
// pod holds, that no longer exists (a share that no pod holds ends with the agent that created it),
// that is on a GPU lost before the agent could read it, or that is unusable. For the others: the
// node object counts no more devices than remain, so that no scheduler sends a pod for the
// withdrawn one; and every pod bound to the node that has no devices yet finds enough of them among
// the remaining ones.
std::vector<std::string> CheckWithdrawal(const Machine& machine,
                                         const kubelet::OfferedDevice& device,
                                         const ApiTruth& truth);

// Called at the moment when an instance is destroyed, while it still exists: no pod holds it, the
// kubelet cannot allocate it, and every pod bound to the node that has no devices yet still finds
// enough others.
std::vector<std::string> CheckDestruction(const Machine& machine,
                                          const device::GpuInstance& instance,
                                          const ApiTruth& truth);

// The pods bound to a node request no more than it has. Slices do not count, because their number
// changes (see CheckMachine).
std::vector<std::string> CheckRoom(const cluster::Node& node,
                                   const std::vector<std::shared_ptr<const cluster::Pod>>& pods);

// The annotations that the partitioner and the agent wrote on the node are readable.
std::vector<std::string> CheckNode(const cluster::Node& node, const gpu::Catalogue& catalogue);

}  // namespace nos::sim
