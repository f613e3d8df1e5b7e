// Which claims a pod's volumes stand for, and what claims and PersistentVolumes say of each other
// and of nodes.
//
// Semantics: k8s.io/component-helpers storage/volume and storage/ephemeral.
//
// Pure functions of values; may be called from any thread.
#pragma once

#include <string>
#include <string_view>

#include "cluster/surroundings.h"

namespace nos::cluster {

inline constexpr std::string_view kBindCompleted = "pv.kubernetes.io/bind-completed";
inline constexpr std::string_view kBoundByController = "pv.kubernetes.io/bound-by-controller";
inline constexpr std::string_view kSelectedNode = "volume.kubernetes.io/selected-node";

// Whether the volume is a claim, by name or made for the pod (generic ephemeral).
inline bool IsClaim(const Volume& volume) {
  return volume.kind == Volume::Kind::kClaim || volume.kind == Volume::Kind::kEphemeral;
}
bool UsesClaims(const Pod& pod);
// The name of the claim of such a volume, in the pod's namespace.
std::string ClaimName(const Pod& pod, const Volume& volume);
// Whether one of the pod's volumes is this claim.
bool UsesClaim(const Pod& pod, const PersistentVolumeClaim& claim);
// Whether the claim was made for the pod, as that of an ephemeral volume must be.
bool IsMadeFor(const PersistentVolumeClaim& claim, const Pod& pod);

// The name of the storage class, "" for none; the old annotation goes before the field.
const std::string& ClassOf(const PersistentVolumeClaim& claim);
const std::string& ClassOf(const PersistentVolume& volume);

// The claim has its volume, and whoever binds them is done.
bool IsBound(const PersistentVolumeClaim& claim);
// The volume is kept for or bound to this claim.
bool IsFor(const PersistentVolume& volume, const PersistentVolumeClaim& claim);
// Whether a node with these labels can reach the volume.
bool Reaches(const StringMap& node_labels, const PersistentVolume& volume);

}  // namespace nos::cluster
