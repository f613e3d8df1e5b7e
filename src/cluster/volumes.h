// The claims of a pod's volumes, and the relations between claims, PersistentVolumes and nodes.
//
// Semantics: k8s.io/component-helpers storage/volume and storage/ephemeral.
//
// Pure functions of values; may be called from any thread.
#pragma once

#include <string>
#include <string_view>

#include "cluster/context.h"

namespace nos::cluster {

inline constexpr std::string_view kBindCompleted = "pv.kubernetes.io/bind-completed";
inline constexpr std::string_view kBoundByController = "pv.kubernetes.io/bound-by-controller";
inline constexpr std::string_view kSelectedNode = "volume.kubernetes.io/selected-node";

// True if the volume is a claim, by name or created for the pod (generic ephemeral).
inline bool IsClaim(const Volume& volume) {
  return volume.kind == Volume::Kind::kClaim || volume.kind == Volume::Kind::kEphemeral;
}
bool UsesClaims(const Pod& pod);
// The name of the claim of such a volume, in the pod's namespace.
std::string ClaimName(const Pod& pod, const Volume& volume);
// True if one of the pod's volumes is this claim.
bool UsesClaim(const Pod& pod, const PersistentVolumeClaim& claim);
// True if the claim was created for the pod, as required for an ephemeral volume.
bool IsMadeFor(const PersistentVolumeClaim& claim, const Pod& pod);

// The name of the storage class, "" if there is none; the old annotation takes precedence over the
// field.
const std::string& ClassOf(const PersistentVolumeClaim& claim);
const std::string& ClassOf(const PersistentVolume& volume);

// The claim has a volume, and the volume controller has completed the binding.
bool IsBound(const PersistentVolumeClaim& claim);
// The volume is reserved for or bound to this claim.
bool IsFor(const PersistentVolume& volume, const PersistentVolumeClaim& claim);
// True if a node with these labels can reach the volume.
bool Reaches(const StringMap& node_labels, const PersistentVolume& volume);

}  // namespace nos::cluster
