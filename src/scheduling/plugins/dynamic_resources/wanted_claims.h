// The claims of a pod, as the scheduler has to serve them.
#pragma once

#include <memory>
#include <set>
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
  // Keys of claims in `allocated` whose allocation is assumed for another pod of the same gang.
  std::set<std::string> followed;
  // Extended resources that device classes serve: on a node that does not offer one itself, the pod
  // needs a claim for it, which the scheduler creates.
  std::vector<std::string> extended;
  // Does not fit if a claim of an earlier attempt is in the way of a new one. While a pod is being
  // bound that is its own claim.
  Verdict leftover;
};

// Left in CycleState by PreFilter of DynamicResources for a pod with such resources: nodes that do
// not offer them may still serve it. A profile without this plugin lacks it.
struct ServesExtendedResources {};

// True if the context has the objects of resource.k8s.io.
bool KnowsDevices(const cluster::ClusterContext& context);

// Finds DeviceClasses by name. Refers to the context.
dra::FindClass ClassesOf(const cluster::ClusterContext& context);

// The extended resources of the pod that device classes serve.
std::vector<std::string> ExtendedResourcesOf(const cluster::Pod& pod,
                                             const cluster::ClusterContext& context);
// False if the pod's status names the claim for one of the pod's templates, but the claim was made
// neither for the pod nor for its PodGroup.
bool IsMadeFor(const dra::ResourceClaim& claim, const cluster::Pod& pod);
// True if the scheduler may delete the claim: it was created for extended resources, and no pod but
// this one uses it. A tenant can give a claim of its own any name and annotation.
bool IsLeftover(const dra::ResourceClaim& claim, const cluster::Pod& pod);
// A claim that an earlier attempt created for extended resources of the pod. Null: there is none.
std::shared_ptr<const dra::ResourceClaim> FindExtendedClaim(const cluster::Pod& pod,
                                                            const cluster::ClusterContext& context);

// Verdict: why no node can serve the pod now.
std::variant<WantedClaims, Verdict> FindWantedClaims(const cluster::Pod& pod,
                                                     const cluster::ClusterContext& context);

// True if devices that were allocated can be used from the node.
bool ReachDevices(const WantedClaims& wanted, const cluster::Node& node);

}  // namespace nos::scheduling
