// Derives nominations and their progress from API objects alone, for callers without access to the
// scheduler's memory (Engine::WithPromises and its reservations).
//
//   const ClusterSnapshot with = WithPromises(snapshot, pods, pod, goes_first);
//   Explain({framework, partitioning, with, pod});
//
// Pure functions.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/function_ref.h"
#include "scheduling/plugin.h"

namespace nos::scheduling {

class Framework;

// Returns the snapshot with other nominated pods (status.nominatedNodeName) bound to their nodes:
// pods for which `goes_first(other)` is true (see Engine::PromisesFor), and pods for which GPUs are
// being partitioned there. Pods whose keys are in `except` are left out.
cluster::ClusterSnapshot WithPromises(const cluster::ClusterSnapshot& snapshot, Pods pods,
                                      const cluster::Pod& pod,
                                      FunctionRef<bool(const cluster::Pod&)> goes_first,
                                      const std::set<std::string>& except = {});

// Instances that are being created for the pod on its nominated node: the node's plan requests
// them, its agent has not acknowledged them, and no other pod in the snapshot has them. Absent:
// there are none.
std::optional<std::vector<cluster::PromisedInstance>> BeingCreatedFor(
    const cluster::Pod& pod, const cluster::ClusterSnapshot& snapshot);

// Pods left the node, and its agent has yet to report that their instances are free.
bool IsBehind(const cluster::NodeInfo& node);

// Capacity was freed for the pod on its nominated node, by any component, but the node's agent has
// yet to report that the instances of evicted pods are free. The pod fits there once it does.
bool AwaitsAgent(const Framework& framework, const cluster::Pod& pod,
                 const cluster::ClusterSnapshot& snapshot);
constexpr std::string_view kAwaitsAgent =
    "the nominated node's agent has not reported yet that the instances of evicted pods are free.";

// True if the pod fits on the node in this snapshot.
bool FitsOn(const Framework& framework, const cluster::Pod& pod, std::string_view node,
            const cluster::ClusterSnapshot& snapshot);

}  // namespace nos::scheduling
