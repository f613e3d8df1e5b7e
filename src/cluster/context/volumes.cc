#include "cluster/volumes.h"

#include <algorithm>

#include "cluster/selectors.h"

namespace nos::cluster {
namespace {

const std::string* OldClass(const ObjectMeta& meta) {
  const auto found = meta.annotations.find("volume.beta.kubernetes.io/storage-class");
  return found == meta.annotations.end() ? nullptr : &found->second;
}

}  // namespace

bool UsesClaims(const Pod& pod) { return std::ranges::any_of(pod.volumes, IsClaim); }

std::string ClaimName(const Pod& pod, const Volume& volume) {
  return volume.kind == Volume::Kind::kEphemeral ? pod.meta.name + "-" + volume.name
                                                 : volume.source;
}

bool UsesClaim(const Pod& pod, const PersistentVolumeClaim& claim) {
  if (pod.meta.ns != claim.meta.ns) return false;
  return std::ranges::any_of(pod.volumes, [&](const Volume& volume) {
    return IsClaim(volume) && ClaimName(pod, volume) == claim.meta.name;
  });
}

bool IsMadeFor(const PersistentVolumeClaim& claim, const Pod& pod) {
  return claim.meta.ns == pod.meta.ns &&
         std::ranges::any_of(claim.meta.owners, [&](const OwnerReference& owner) {
           return owner.controller && owner.uid == pod.meta.uid;
         });
}

const std::string& ClassOf(const PersistentVolumeClaim& claim) {
  static const std::string none;
  if (const std::string* old = OldClass(claim.meta)) return *old;
  return claim.storage_class ? *claim.storage_class : none;
}

const std::string& ClassOf(const PersistentVolume& volume) {
  const std::string* old = OldClass(volume.meta);
  return old == nullptr ? volume.storage_class : *old;
}

bool IsBound(const PersistentVolumeClaim& claim) {
  return !claim.volume_name.empty() && claim.meta.annotations.contains(kBindCompleted);
}

bool IsFor(const PersistentVolume& volume, const PersistentVolumeClaim& claim) {
  return volume.claim_name == claim.meta.name && volume.claim_ns == claim.meta.ns &&
         (volume.claim_uid.empty() || volume.claim_uid == claim.meta.uid);
}

// Looks only at labels: matchFields of a PersistentVolume's terms match no node.
bool Reaches(const StringMap& node_labels, const PersistentVolume& volume) {
  if (!volume.node_terms) return true;
  return std::ranges::any_of(*volume.node_terms, [&](const NodeSelectorTerm& term) {
    if (term.match_expressions.empty() && term.match_fields.empty()) return false;
    return std::ranges::all_of(term.match_expressions, [&](const SelectorRequirement& requirement) {
      return Matches(requirement, node_labels);
    });
  });
}

}  // namespace nos::cluster
