#include "scheduling/plugins/node_volume_limits/plugin.h"

#include <fmt/core.h>

#include <algorithm>
#include <compare>
#include <span>
#include <unordered_map>

#include "cluster/volumes.h"

namespace nos::scheduling {
namespace {

using cluster::ClusterContext;
using cluster::CsiNode;
using cluster::PersistentVolumeClaim;
using cluster::Pod;
using cluster::Volume;
using cluster::VolumeAttachment;

// A volume of a CSI driver, identified by its handle, or by its claim if it is not provisioned yet.
// Refers to objects of the cluster context.
struct CsiVolume {
  std::string_view driver, handle;
  const PersistentVolumeClaim* claim = nullptr;

  friend auto operator<=>(const CsiVolume&, const CsiVolume&) = default;
};
using CsiVolumes = std::vector<CsiVolume>;  // sorted, without duplicates

struct Asked {
  std::shared_ptr<const ClusterContext> context;
  Verdict refusal;  // applies to all nodes
  CsiVolumes volumes;
  // By node name; only for the drivers of `volumes`.
  std::unordered_map<std::string_view, std::vector<const VolumeAttachment*>> attachments;
};

void SortUnique(CsiVolumes& volumes) {
  std::ranges::sort(volumes);
  const auto rest = std::ranges::unique(volumes);
  volumes.erase(rest.begin(), rest.end());
}

bool Has(const CsiVolumes& volumes, const CsiVolume& volume) {
  return std::ranges::binary_search(volumes, volume);
}

int64_t CountOf(const CsiVolumes& volumes, std::string_view driver) {
  return std::ranges::count(volumes, driver, &CsiVolume::driver);
}

// Without a driver: the claim does not count.
CsiVolume CsiVolumeOf(const PersistentVolumeClaim& claim, const ClusterContext& context) {
  if (!claim.volume_name.empty()) {
    const auto* volume = context.volumes.Find(claim.volume_name);
    if (volume != nullptr) return {volume->csi_driver, volume->csi_handle};
  }
  const auto* storage = context.storage_classes.Find(cluster::ClassOf(claim));
  if (storage == nullptr) return {};
  return {storage->provisioner, {}, &claim};
}

Asked VolumesOf(const Pod& pod, std::shared_ptr<const ClusterContext> context) {
  Asked asked{std::move(context), {}, {}, {}};
  for (const Volume& volume : pod.volumes) {
    if (!cluster::IsClaim(volume)) continue;
    const std::string name = cluster::ClaimName(pod, volume);
    const auto* claim = asked.context->claims.Find(pod.meta.ns + "/" + name);
    if (claim == nullptr) {
      asked.refusal = Verdict::Unresolvable(
          codes::kClaimNotFound,
          fmt::format("looking up PVC {}/{}: persistentvolumeclaim \"{}\" not found", pod.meta.ns,
                      name, name));
      return asked;
    }
    if (volume.kind == Volume::Kind::kEphemeral && !cluster::IsMadeFor(*claim, pod)) {
      asked.refusal = Verdict::Unresolvable(
          codes::kClaimOfAnother,
          fmt::format("PVC {}/{} was not created for pod {} (pod is not owner)", pod.meta.ns, name,
                      pod.Key()));
      return asked;
    }
    const CsiVolume found = CsiVolumeOf(*claim, *asked.context);
    if (!found.driver.empty()) asked.volumes.push_back(found);
  }
  SortUnique(asked.volumes);
  return asked;
}

void AddAttachments(Asked& asked) {
  for (const auto& [name, attachment] : asked.context->attachments.rows()) {
    if (CountOf(asked.volumes, attachment->attacher) == 0) continue;
    asked.attachments[attachment->node].push_back(attachment.get());
  }
}

std::span<const VolumeAttachment* const> AttachmentsOf(const std::string& node,
                                                       const Asked& asked) {
  const auto found = asked.attachments.find(node);
  if (found == asked.attachments.end()) return {};
  return found->second;
}

CsiVolumes AttachedTo(const std::string& node, const Asked& asked) {
  CsiVolumes attached;
  for (const VolumeAttachment* attachment : AttachmentsOf(node, asked)) {
    const auto* volume = asked.context->volumes.Find(attachment->volume);
    if (volume == nullptr || volume->csi_driver.empty()) continue;
    attached.push_back({attachment->attacher, volume->csi_handle});
  }
  SortUnique(attached);
  return attached;
}

// Volumes of pods on the node, of all drivers. Claims that do not exist are ignored.
CsiVolumes HeldOn(const cluster::NodeInfo& node, const ClusterContext& context) {
  CsiVolumes held;
  for (const auto& pod : node.pods) {
    for (const Volume& volume : pod->volumes) {
      if (!cluster::IsClaim(volume)) continue;
      const auto* claim =
          context.claims.Find(pod->meta.ns + "/" + cluster::ClaimName(*pod, volume));
      const bool counts = claim != nullptr &&
                          (volume.kind == Volume::Kind::kClaim || cluster::IsMadeFor(*claim, *pod));
      if (!counts) continue;
      const CsiVolume found = CsiVolumeOf(*claim, context);
      if (!found.driver.empty()) held.push_back(found);
    }
  }
  SortUnique(held);
  return held;
}

// Volumes on a node, without duplicates.
struct There {
  CsiVolumes held, attached;
};

// Quick check that decides for most nodes: true if the limit holds even if all volumes on the node
// were distinct and of this driver.
bool FitsAnyway(const cluster::NodeInfo& node, const Asked& asked, int64_t limit) {
  const size_t others = AttachmentsOf(node.node->meta.name, asked).size();
  auto most = static_cast<int64_t>(asked.volumes.size() + others);
  for (const auto& pod : node.pods) most += std::ranges::count_if(pod->volumes, cluster::IsClaim);
  return most <= limit;
}

// An attached volume without a pod counts in addition to the pod's request for the same volume, as
// in kube-scheduler.
bool Fits(std::string_view driver, int64_t limit, const Asked& asked, const There& there) {
  const auto counts = [&](const CsiVolume& volume) {
    return volume.driver == driver && !Has(there.held, volume);
  };
  const int64_t fresh = std::ranges::count_if(asked.volumes, counts);
  if (fresh == 0) return true;
  return CountOf(there.held, driver) + std::ranges::count_if(there.attached, counts) + fresh <=
         limit;
}

const CsiNode::Driver* FindDriver(const CsiNode& node, std::string_view name) {
  const auto found = std::ranges::find(node.drivers, name, &CsiNode::Driver::name);
  return found == node.drivers.end() ? nullptr : &*found;
}

// True if the limit of a driver was raised or removed, or a driver with a limit was added.
bool Grew(const CsiNode& before, const CsiNode& after) {
  const auto grew = [&](const CsiNode::Driver& old) {
    const CsiNode::Driver* now = FindDriver(after, old.name);
    return old.count && (now == nullptr || !now->count || *now->count > *old.count);
  };
  const auto is_new = [&](const CsiNode::Driver& now) {
    return now.count.value_or(0) > 0 && FindDriver(before, now.name) == nullptr;
  };
  return std::ranges::any_of(before.drivers, grew) || std::ranges::any_of(after.drivers, is_new);
}

}  // namespace

PreFilterPlugin::Outcome NodeVolumeLimits::PreFilter(const Pod& pod,
                                                     const cluster::ClusterSnapshot& snapshot,
                                                     CycleState& state) const {
  Outcome outcome;
  auto context = Concerns(pod) ? snapshot.ShareContext() : nullptr;
  outcome.skip = context == nullptr;
  if (outcome.skip) return outcome;
  Asked asked = VolumesOf(pod, std::move(context));
  outcome.skip = asked.refusal.fits() && asked.volumes.empty();
  if (!outcome.skip) AddAttachments(asked);
  state.Set(std::move(asked));
  return outcome;
}

Verdict NodeVolumeLimits::Filter(const CycleState& state, const Pod&,
                                 const cluster::NodeInfo& node) const {
  const auto* asked = state.Get<Asked>();
  if (asked == nullptr) return Verdict::Fits();
  if (!asked->refusal.fits()) return asked->refusal;
  const std::string& name = node.node->meta.name;
  const CsiNode* limits = asked->context->csi_nodes.Find(name);
  if (limits == nullptr) return Verdict::Fits();
  std::optional<There> there;
  for (const CsiNode::Driver& driver : limits->drivers) {
    if (!driver.count || CountOf(asked->volumes, driver.name) == 0) continue;
    if (!there && FitsAnyway(node, *asked, *driver.count)) continue;
    if (!there) there = There{HeldOn(node, *asked->context), AttachedTo(name, *asked)};
    if (!Fits(driver.name, *driver.count, *asked, *there)) {
      return Verdict::Unschedulable(codes::kTooManyVolumes, "node(s) exceed max volume count");
    }
  }
  return Verdict::Fits();
}

bool NodeVolumeLimits::MayHelp(const ClusterEvent& event, const Pod& pod) const {
  using enum ClusterEvent::Kind;
  if (event.kind == kNodeAdded) return true;
  if (event.kind == kPodLeft) {
    const Pod* left = event.pod_before ? event.pod_before.get() : event.pod.get();
    return left == nullptr || cluster::UsesClaims(*left);
  }
  if (event.kind != kContext) return false;
  const bool has_objects = event.context_before.has_value() || event.context_after.has_value();
  if (event.context_kind == "CSINode") {
    const auto* before = event.ContextBefore<CsiNode>();
    const auto* after = event.ContextAfter<CsiNode>();
    return before == nullptr || after == nullptr || Grew(*before, *after);
  }
  if (event.context_kind == "PersistentVolumeClaim") {
    const auto* after = event.ContextAfter<PersistentVolumeClaim>();
    if (!has_objects) return true;
    return event.ContextBefore<PersistentVolumeClaim>() == nullptr && after != nullptr &&
           cluster::UsesClaim(pod, *after);
  }
  if (event.context_kind == "VolumeAttachment") {
    return event.ContextAfter<cluster::VolumeAttachment>() == nullptr && cluster::UsesClaims(pod);
  }
  return false;
}

}  // namespace nos::scheduling
