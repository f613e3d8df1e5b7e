// The claims of a pod, as the scheduler has to serve them.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "cluster/snapshot.h"
#include "dra/device_index.h"
#include "scheduling/plugin.h"

namespace nos::scheduling {

struct WantedClaims {
  using Claim = std::shared_ptr<const dra::ResourceClaim>;
  std::vector<Claim> allocated;  // before this pod, or for it in an earlier attempt
  std::vector<Claim> open;       // devices are to be allocated
};

// True if the context has the objects of resource.k8s.io.
bool KnowsDevices(const cluster::ClusterContext& around);

// Finds DeviceClasses by name. Refers to the context.
dra::FindClass ClassesOf(const cluster::ClusterContext& around);

// Verdict: why no node can serve the pod now.
std::variant<WantedClaims, Verdict> FindWantedClaims(const cluster::Pod& pod,
                                                     const cluster::ClusterContext& around);

// True if devices that were allocated can be used from the node.
bool ReachDevices(const WantedClaims& wanted, const cluster::Node& node);

}  // namespace nos::scheduling
