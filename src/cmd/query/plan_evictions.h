// Pods without a place in a plan for which their schedulers would evict other pods. The planner
// takes running pods as they are; this code asks which pods a scheduler evicts by priority or
// quota, like nos explain.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "cmd/telemetry/read_cluster.h"
#include "gpu/catalogue.h"
#include "planning/plan.h"

namespace nos::cmd {

// Replaces the remedies of such pods: none is needed. The most important pods are asked for first,
// a limited number of them, and no running pod is evicted for two of them. `out_of_time`: null:
// never. Returns the victims' keys by the key of the pod.
std::map<std::string, std::vector<std::string>> AskForEvictions(
    const ClusterObjects& input, const gpu::Catalogue& catalogue,
    const std::function<bool()>& out_of_time, planning::Plan& plan);

// Keys of pending pods for which the pod, which has a node, would be evicted now. The most
// important pods are asked for, a limited number of them.
std::vector<std::string> EvictorsOf(const cluster::Pod& pod, const ClusterObjects& input,
                                    const gpu::Catalogue& catalogue);

}  // namespace nos::cmd
