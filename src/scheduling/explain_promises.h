// What has been promised to pods that wait, as far as the cluster's objects tell: somebody who has
// only those sees what the scheduler keeps in mind (Engine::WithPromises, and its reservations).
//
//   const ClusterSnapshot with = WithPromises(snapshot, pods, pod, goes_first);
//   Explain({framework, cutting, with, pod});
//
// Pure functions.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/function_ref.h"
#include "scheduling/framework.h"

namespace nos::scheduling {

// The snapshot with every other pod that is nominated for a node (status.nominatedNodeName) and
// goes before `pod`: those of which `goes_first(other)` says so (Engine::PromisesFor), and those
// for which GPUs are being cut there. Not those of `except` (keys).
cluster::ClusterSnapshot WithPromises(const cluster::ClusterSnapshot& snapshot, Pods pods,
                                      const cluster::Pod& pod,
                                      FunctionRef<bool(const cluster::Pod&)> goes_first,
                                      const std::set<std::string>& except = {});

// The instances that are being cut for the pod on its nominated node: the node is asked for them,
// its agent has not answered, and nobody else in the snapshot has them. None: that is not so.
std::optional<std::vector<cluster::PromisedInstance>> BeingCutFor(
    const cluster::Pod& pod, const cluster::ClusterSnapshot& snapshot);

// Pods have gone there of which the node's agent has yet to tell that their instances are free.
bool IsBehind(const cluster::NodeInfo& node);

// Room was made for the pod on its nominated node, whose agent has yet to tell that the instances
// of those who went are free: the pod fits there then. Who evicted them is all the same.
bool AwaitsAgent(const Framework& framework, const cluster::Pod& pod,
                 const cluster::ClusterSnapshot& snapshot);
constexpr std::string_view kAwaitsAgent =
    "the nominated node's agent has not told yet that the instances of evicted pods are free.";

// The pod could run there as the cluster is.
bool FitsOn(const Framework& framework, const cluster::Pod& pod, std::string_view node,
            const cluster::ClusterSnapshot& snapshot);

}  // namespace nos::scheduling
