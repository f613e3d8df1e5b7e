// Extended resources that DeviceClasses serve (KEP-5004). A container asks for one as for a
// resource of a device plugin; on a node that does not offer the resource, the pod gets devices of
// the class by a ResourceClaim that the scheduler creates.
//
//   ExtendedResources mapped(context.device_classes);
//   const ExtendedClaim made = mapped.ClaimFor(pod, node);     // made.claim is null: none needed
//
// The claim has a name of its own for each pod, so that an attempt to create it can be repeated.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cluster/context.h"
#include "cluster/objects.h"
#include "cluster/snapshot.h"
#include "dra/objects.h"

namespace nos::dra {

// A claim for extended resources, and which of its requests serves which container:
// status.extendedResourceClaimStatus of the pod.
struct ExtendedClaim {
  // A container may have several requests for one resource.
  struct Mapping {
    std::string container, resource, request;
    friend bool operator==(const Mapping&, const Mapping&) = default;
  };
  // Without a resource version, because it is not stored yet.
  std::shared_ptr<const ResourceClaim> claim;
  std::vector<Mapping> mappings;
};

// True if the node has the resource without a claim, in use or not: from a device plugin, or
// because nos partitions its GPUs.
bool Offers(const cluster::NodeInfo& node, const std::string& resource);

// True if a container of the pod asks for a resource that a class might serve.
bool AsksForExtendedResources(const cluster::Pod& pod);

// "ns/name" of the claim that ClaimFor makes for the pod.
std::string ExtendedClaimKey(const cluster::Pod& pod);
// True if a scheduler has created the claim for extended resources.
bool IsExtendedClaim(const ResourceClaim& claim);

class ExtendedResources {
 public:
  ExtendedResources() = default;
  // If several classes name one resource, the newest serves it, and of equally old ones the first
  // by name.
  explicit ExtendedResources(const cluster::Table<DeviceClass>& classes);

  // The class that serves the resource by spec.extendedResourceName; null: none does. Implicit
  // names (deviceclass.resource.kubernetes.io/CLASS) are not served: every class has one, so a
  // tenant could get devices by a name that no quota limits.
  const std::string* ClassOf(std::string_view resource) const;

  // The resources that the pod asks for and a class serves, in the order of their names.
  std::vector<std::string> ServedFor(const cluster::Pod& pod) const;
  // The claim for those of the resources that the node does not offer itself. Source of its form:
  // kube-scheduler 1.37, extendeddynamicresources.go.
  ExtendedClaim ClaimFor(const cluster::Pod& pod, const cluster::NodeInfo& node) const;

 private:
  std::map<std::string, std::string, std::less<>> classes_;  // by resource
};

// The claim as the API server takes it for creation, owned by the pod and with the finalizer.
Json WriteExtendedClaim(const ResourceClaim& claim, const cluster::Pod& pod);

}  // namespace nos::dra
