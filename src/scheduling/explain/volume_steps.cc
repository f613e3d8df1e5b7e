#include "scheduling/explain/volume_steps.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <vector>

#include "cluster/volumes.h"
#include "scheduling/pod_names.h"

namespace nos::scheduling {
namespace {

using cluster::ClusterSnapshot;
using cluster::NodeInfo;
using cluster::Pod;

std::string Listed(const std::set<std::string>& names) {
  return NamesOf({names.begin(), names.end()}, "", " and ");
}

// Names the other pods that use a claim of the pod.
std::string ExclusiveClaimStep(const Pod& pod, const ClusterSnapshot& snapshot) {
  std::set<std::string> claims, pods;
  for (const cluster::Volume& volume : pod.volumes) {
    if (volume.kind == cluster::Volume::Kind::kClaim) claims.insert(volume.source);
  }
  for (size_t i = 0; i < snapshot.size(); ++i) {
    for (const auto& other : snapshot.node(i).pods) {
      const bool shares =
          other->meta.ns == pod.meta.ns &&
          std::ranges::any_of(other->volumes, [&](const cluster::Volume& volume) {
            return volume.kind == cluster::Volume::Kind::kClaim && claims.contains(volume.source);
          });
      if (shares) pods.insert(other->Key());
    }
  }
  return fmt::format(
      "wait for the end of {}: its volume is for one pod at a time (ReadWriteOncePod)",
      pods.empty() ? "the pod that uses it" : Listed(pods));
}

// Volumes bound to the pod's claims that the node cannot reach, or, with `missing`, that do not
// exist.
std::set<std::string> BoundVolumes(const Pod& pod, const cluster::Node& node,
                                   const cluster::ClusterContext& context, bool missing) {
  std::set<std::string> names;
  for (const cluster::Volume& volume : pod.volumes) {
    if (!cluster::IsClaim(volume)) continue;
    const auto* claim = context.claims.Find(pod.meta.ns + "/" + cluster::ClaimName(pod, volume));
    if (claim == nullptr || claim->volume_name.empty()) continue;
    const auto* bound = context.volumes.Find(claim->volume_name);
    const bool meant =
        bound == nullptr ? missing : !missing && !cluster::Reaches(node.meta.labels, *bound);
    if (meant) names.insert(claim->volume_name);
  }
  return names;
}

}  // namespace

std::string UnboundStep(const Pod& pod, const cluster::ClusterContext& context) {
  std::set<std::string> names;
  for (const cluster::Volume& volume : pod.volumes) {
    if (!cluster::IsClaim(volume)) continue;
    const std::string name = cluster::ClaimName(pod, volume);
    const auto* claim = context.claims.Find(pod.meta.ns + "/" + name);
    if (claim != nullptr && !cluster::IsBound(*claim)) names.insert(pod.meta.ns + "/" + name);
  }
  return names.empty() ? ""
                       : fmt::format(
                             "have PersistentVolumeClaim {} bound: its events say what it "
                             "waits for",
                             Listed(names));
}

std::string VolumeStep(const Reason& reason, const Pod& pod, const NodeInfo& node,
                       const ClusterSnapshot& snapshot) {
  const std::string& name = node.node->meta.name;
  const auto bound = [&](bool missing) {
    const auto names = BoundVolumes(pod, *node.node, snapshot.context(), missing);
    return names.empty() ? std::string("the volume") : "PersistentVolume " + Listed(names);
  };
  if (reason.code == codes::kNoVolumeToBind) {
    return fmt::format("make a volume available to it that node {} can reach", name);
  }
  if (reason.code == codes::kNotEnoughStorage) {
    return fmt::format("free storage of its class that node {} can reach", name);
  }
  if (reason.code == codes::kVolumeOutOfReach) {
    return fmt::format("replace {}, which node {} cannot reach", bound(false), name);
  }
  if (reason.code == codes::kVolumeNotFound) {
    return fmt::format("restore {}, to which its claim is bound, or replace the claim",
                       bound(true));
  }
  if (reason.code == codes::kVolumeZoneConflict) {
    return fmt::format("replace its volume by one in the zone of node {}", name);
  }
  if (reason.code == codes::kTooManyVolumes) {
    return fmt::format("detach volumes from node {}, which holds as many as it can", name);
  }
  if (reason.code == codes::kDiskConflict) {
    return fmt::format("wait for the end of the pods that use its disk on node {}", name);
  }
  if (reason.code == codes::kReadWriteOncePodConflict) return ExclusiveClaimStep(pod, snapshot);
  return "";
}

}  // namespace nos::scheduling
