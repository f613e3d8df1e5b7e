#include "scheduling/plugins/volume_zone/plugin.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "cluster/volumes.h"

namespace nos::scheduling {
namespace {

using cluster::Volume;

// A label key and its current name.
struct ZoneLabel {
  std::string_view key, modern;
};
constexpr std::array<ZoneLabel, 4> kZoneLabels = {
    {{"failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"},
     {"failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"},
     {"topology.kubernetes.io/zone", "topology.kubernetes.io/zone"},
     {"topology.kubernetes.io/region", "topology.kubernetes.io/region"}}};

// Values that one label of a volume allows.
struct Zones {
  ZoneLabel label;
  std::vector<std::string> values;
  friend bool operator==(const Zones& a, const Zones& b) {
    return a.label.key == b.label.key && a.values == b.values;
  }
};
struct AllZones {
  std::vector<Zones> zones;  // all must hold
};

// "a__b" lists several zones. A value with an empty part is ignored.
std::vector<std::string> ParseZones(std::string_view text) {
  std::vector<std::string> values;
  while (true) {
    const size_t end = text.find("__");
    const std::string_view value = Trim(text.substr(0, end));
    if (value.empty()) return {};
    values.emplace_back(value);
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 2);
  }
  std::ranges::sort(values);
  return values;
}

void AddZones(const cluster::PersistentVolume& volume, std::vector<Zones>& zones) {
  for (const ZoneLabel& label : kZoneLabels) {
    const auto found = volume.meta.labels.find(label.key);
    if (found == volume.meta.labels.end()) continue;
    std::vector<std::string> values = ParseZones(found->second);
    if (!values.empty()) zones.push_back({label, std::move(values)});
  }
}

std::vector<Zones> ZonesOf(const cluster::PersistentVolume& volume) {
  std::vector<Zones> zones;
  AddZones(volume, zones);
  return zones;
}

// Fits if the claim's volume is chosen later, together with the node (WaitForFirstConsumer).
Verdict CheckUnbound(const cluster::PersistentVolumeClaim& claim,
                     const cluster::ClusterContext& context) {
  const std::string& name = cluster::ClassOf(claim);
  if (name.empty()) {
    return Verdict::Unresolvable(codes::kClaimUnbound,
                                 "PersistentVolumeClaim had no pv name and storageClass name");
  }
  const auto* storage = context.storage_classes.Find(name);
  if (storage == nullptr) {
    return Verdict::Unresolvable(codes::kStorageClassNotFound,
                                 fmt::format("storageclass.storage.k8s.io \"{}\" not found", name));
  }
  if (storage->waits_for_consumer) return Verdict::Fits();
  return Verdict::Unresolvable(codes::kClaimUnbound, "PersistentVolume had no name");
}

Verdict AddZonesOfClaim(const std::string& ns, const std::string& name,
                        const cluster::ClusterContext& context, std::vector<Zones>& zones) {
  if (name.empty()) {
    return Verdict::Unresolvable(codes::kClaimNotFound, "PersistentVolumeClaim had no name");
  }
  const auto* claim = context.claims.Find(ns + "/" + name);
  if (claim == nullptr) {
    return Verdict::Unresolvable(codes::kClaimNotFound,
                                 fmt::format("persistentvolumeclaim \"{}\" not found", name));
  }
  if (claim->volume_name.empty()) return CheckUnbound(*claim, context);
  const auto* volume = context.volumes.Find(claim->volume_name);
  if (volume == nullptr) {
    return Verdict::Unresolvable(
        codes::kVolumeNotFound,
        fmt::format("persistentvolume \"{}\" not found", claim->volume_name));
  }
  AddZones(*volume, zones);
  return Verdict::Fits();
}

bool Allows(const Zones& zones, const cluster::StringMap& labels) {
  auto label = labels.find(zones.label.key);
  if (label == labels.end()) label = labels.find(zones.label.modern);
  return label != labels.end() && std::ranges::binary_search(zones.values, label->second);
}

}  // namespace

bool VolumeZone::Concerns(const cluster::Pod& pod) const {
  return std::ranges::any_of(
      pod.volumes, [](const Volume& volume) { return volume.kind == Volume::Kind::kClaim; });
}

PreFilterPlugin::Outcome VolumeZone::PreFilter(const cluster::Pod& pod,
                                               const cluster::ClusterSnapshot& snapshot,
                                               CycleState& state) const {
  AllZones all;
  const auto context = snapshot.ShareContext();
  for (const Volume& volume : pod.volumes) {
    if (volume.kind != Volume::Kind::kClaim || context == nullptr) continue;
    Verdict verdict = AddZonesOfClaim(pod.meta.ns, volume.source, *context, all.zones);
    if (!verdict.fits()) return {std::move(verdict)};
  }
  Outcome outcome;
  outcome.skip = all.zones.empty();
  state.Set(std::move(all));
  return outcome;
}

Verdict VolumeZone::Filter(const CycleState& state, const cluster::Pod&,
                           const cluster::NodeInfo& node) const {
  const auto* all = state.Get<AllZones>();
  if (all == nullptr || all->zones.empty()) return Verdict::Fits();
  const cluster::StringMap& labels = node.node->meta.labels;
  const auto has = [&](const ZoneLabel& label) { return labels.contains(label.key); };
  if (std::ranges::none_of(kZoneLabels, has)) return Verdict::Fits();
  if (std::ranges::all_of(all->zones, [&](const Zones& z) { return Allows(z, labels); })) {
    return Verdict::Fits();
  }
  return Verdict::Unresolvable(codes::kVolumeZoneConflict, "node(s) had no available volume zone");
}

bool VolumeZone::MayHelp(const ClusterEvent& event, const cluster::Pod& pod) const {
  using enum ClusterEvent::Kind;
  if (event.kind == kNodeAdded) return true;
  if (event.kind == kNodeChanged) {
    return !event.node_before || !event.node ||
           event.node_before->meta.labels != event.node->meta.labels;
  }
  if (event.kind != kContext) return false;
  const bool has_objects = event.context_before.has_value() || event.context_after.has_value();
  if (event.context_kind == "PersistentVolumeClaim") {
    const auto* after = event.ContextAfter<cluster::PersistentVolumeClaim>();
    return !has_objects || (after != nullptr && cluster::UsesClaim(pod, *after));
  }
  if (event.context_kind == "StorageClass") {
    const auto* after = event.ContextAfter<cluster::StorageClass>();
    return !has_objects || (after != nullptr && after->waits_for_consumer &&
                            event.ContextBefore<cluster::StorageClass>() == nullptr);
  }
  if (event.context_kind == "PersistentVolume") {
    const auto* before = event.ContextBefore<cluster::PersistentVolume>();
    const auto* after = event.ContextAfter<cluster::PersistentVolume>();
    if (!has_objects) return true;
    return after != nullptr && (before == nullptr || ZonesOf(*before) != ZonesOf(*after));
  }
  return false;
}

}  // namespace nos::scheduling
