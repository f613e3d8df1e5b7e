#include "scheduling/plugins/volume_restrictions/plugin.h"

#include <fmt/core.h>

#include <algorithm>

#include "cluster/volumes.h"

namespace nos::scheduling {
namespace {

using cluster::Pod;
using cluster::Volume;
using enum cluster::Volume::Kind;

// Claims of the pod with ReadWriteOncePod, and the number of uses by placed pods.
struct Exclusive {
  std::vector<std::string> claims;
  int64_t uses = 0;
};

bool IsDisk(const Volume& volume) {
  return volume.kind == kGcePersistentDisk || volume.kind == kAwsElasticBlock ||
         volume.kind == kIscsi || volume.kind == kRbd;
}

bool IsNamed(const Volume& volume) { return IsDisk(volume) || volume.kind == kClaim; }

// Two uses of the same disk conflict unless both are read-only; EBS disks always conflict.
bool Conflict(const Volume& a, const Volume& b) {
  if (a.kind != b.kind || a.source != b.source) return false;
  if (a.kind == kAwsElasticBlock) return true;
  if (a.read_only && b.read_only) return false;
  return a.kind != kRbd || std::ranges::find_first_of(a.monitors, b.monitors) != a.monitors.end();
}

bool Conflict(const Pod& pod, const Pod& other) {
  return std::ranges::any_of(other.volumes, [&](const Volume& theirs) {
    return IsDisk(theirs) && std::ranges::any_of(pod.volumes, [&](const Volume& ours) {
             return Conflict(ours, theirs);
           });
  });
}

int64_t UsesOf(const std::vector<std::string>& claims, const Pod& other) {
  return std::ranges::count_if(other.volumes, [&](const Volume& volume) {
    return volume.kind == kClaim && std::ranges::find(claims, volume.source) != claims.end();
  });
}

int64_t UsesOf(const std::vector<std::string>& claims, std::string_view ns,
               const cluster::ClusterSnapshot& snapshot) {
  int64_t uses = 0;
  for (size_t i = 0; i < snapshot.size() && !claims.empty(); ++i) {
    for (const auto& other : snapshot.node(i).pods) {
      if (other->meta.ns == ns) uses += UsesOf(claims, *other);
    }
  }
  return uses;
}

}  // namespace

bool VolumeRestrictions::Concerns(const Pod& pod) const {
  return std::ranges::any_of(pod.volumes, IsNamed);
}

bool VolumeRestrictions::ConcernsIn(const cluster::ClusterSnapshot& snapshot,
                                    const Pod& pod) const {
  return snapshot.ShareContext() == nullptr ? std::ranges::any_of(pod.volumes, IsDisk)
                                            : Concerns(pod);
}

PreFilterPlugin::Outcome VolumeRestrictions::PreFilter(const Pod& pod,
                                                       const cluster::ClusterSnapshot& snapshot,
                                                       CycleState& state) const {
  Exclusive exclusive;
  const auto context = snapshot.ShareContext();
  for (const Volume& volume : pod.volumes) {
    if (volume.kind != kClaim || context == nullptr) continue;
    const auto* claim = context->claims.Find(pod.meta.ns + "/" + volume.source);
    if (claim == nullptr) {
      return {Verdict::Unresolvable(
          codes::kClaimNotFound,
          fmt::format("persistentvolumeclaim \"{}\" not found", volume.source))};
    }
    const auto& modes = claim->access_modes;
    if (std::ranges::find(modes, "ReadWriteOncePod") != modes.end()) {
      exclusive.claims.push_back(volume.source);
    }
  }
  exclusive.uses = UsesOf(exclusive.claims, pod.meta.ns, snapshot);
  Outcome outcome;
  outcome.skip = exclusive.claims.empty() && std::ranges::none_of(pod.volumes, IsDisk);
  state.Set(std::move(exclusive));
  return outcome;
}

// The verdicts of all nodes change with the first and the last use of the claim.
bool VolumeRestrictions::Update(const Pod& pod, const Pod& other, bool came,
                                const cluster::NodeInfo&, CycleState& state, TouchDomain) const {
  auto* exclusive = state.Get<Exclusive>();
  if (exclusive == nullptr || exclusive->claims.empty() || other.meta.ns != pod.meta.ns) {
    return true;
  }
  const bool free = exclusive->uses == 0;
  exclusive->uses += (came ? 1 : -1) * UsesOf(exclusive->claims, other);
  return free == (exclusive->uses == 0);
}

Verdict VolumeRestrictions::Filter(const CycleState& state, const Pod& pod,
                                   const cluster::NodeInfo& node) const {
  const auto conflicts = [&](const auto& other) {
    return !other->volumes.empty() && Conflict(pod, *other);
  };
  if (std::ranges::any_of(pod.volumes, IsDisk) && std::ranges::any_of(node.pods, conflicts)) {
    return Verdict::Unschedulable(codes::kDiskConflict, "node(s) had no available disk");
  }
  const auto* exclusive = state.Get<Exclusive>();
  if (exclusive == nullptr || exclusive->uses == 0) return Verdict::Fits();
  return Verdict::Unschedulable(codes::kReadWriteOncePodConflict,
                                "node(s) unavailable due to PersistentVolumeClaim with "
                                "ReadWriteOncePod access mode already in-use by another pod");
}

bool VolumeRestrictions::MayHelp(const ClusterEvent& event, const Pod& pod) const {
  using enum ClusterEvent::Kind;
  if (event.kind == kNodeAdded) return true;
  if (event.kind == kPodLeft) {
    const Pod* left = event.pod_before ? event.pod_before.get() : event.pod.get();
    if (left == nullptr || Conflict(pod, *left)) return true;
    return left->meta.ns == pod.meta.ns && std::ranges::any_of(pod.volumes, [&](const Volume& v) {
             return v.kind == kClaim && UsesOf({v.source}, *left) > 0;
           });
  }
  if (event.kind != kContext || event.context_kind != "PersistentVolumeClaim") return false;
  const auto* before = event.ContextBefore<cluster::PersistentVolumeClaim>();
  const auto* after = event.ContextAfter<cluster::PersistentVolumeClaim>();
  if (before != nullptr) return false;  // access modes are immutable
  return after == nullptr || cluster::UsesClaim(pod, *after);
}

}  // namespace nos::scheduling
