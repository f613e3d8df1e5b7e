#include "scheduling/plugins/volume_binding/plugin.h"

#include <fmt/core.h>

#include <algorithm>

#include "cluster/volumes.h"
#include "scheduling/plugins/volume_binding/assumed_volumes.h"
#include "scheduling/plugins/volume_binding/wanted_volumes.h"

namespace nos::scheduling {
namespace {

using cluster::CsiDriver;
using cluster::CsiStorageCapacity;
using cluster::PersistentVolume;
using cluster::PersistentVolumeClaim;
using cluster::Pod;
using cluster::StorageClass;

struct Wanted {
  std::shared_ptr<const WantedVolumes> volumes;
};

bool SameTopologies(const StorageClass& a, const StorageClass& b) {
  const auto same_labels = [](const auto& left, const auto& right) {
    return left.key == right.key && left.values == right.values;
  };
  return std::ranges::equal(a.allowed_topologies, b.allowed_topologies,
                            [&](const auto& left, const auto& right) {
                              return std::ranges::equal(left, right, same_labels);
                            });
}

std::optional<int64_t> LimitOf(const CsiStorageCapacity& capacity) {
  const auto& limit =
      capacity.maximum_volume_size ? capacity.maximum_volume_size : capacity.capacity;
  return limit ? std::optional(limit->Value()) : std::nullopt;
}

bool MayHelpContext(const ClusterEvent& event, const Pod& pod) {
  const bool has_objects = event.context_before.has_value() || event.context_after.has_value();
  if (event.context_kind == "PersistentVolumeClaim") {
    const auto* after = event.ContextAfter<PersistentVolumeClaim>();
    return !has_objects || (after != nullptr && cluster::UsesClaim(pod, *after));
  }
  if (event.context_kind == "PersistentVolume") {
    return !has_objects || event.ContextAfter<PersistentVolume>() != nullptr;
  }
  if (event.context_kind == "StorageClass") {
    const auto* before = event.ContextBefore<StorageClass>();
    const auto* after = event.ContextAfter<StorageClass>();
    if (!has_objects || before == nullptr) return true;
    return after != nullptr && !SameTopologies(*before, *after);
  }
  if (event.context_kind == "CSIDriver") {
    const auto* before = event.ContextBefore<CsiDriver>();
    const auto* after = event.ContextAfter<CsiDriver>();
    if (!has_objects) return true;
    return before != nullptr && before->tracks_capacity &&
           (after == nullptr || !after->tracks_capacity);
  }
  if (event.context_kind == "CSIStorageCapacity") {
    const auto* before = event.ContextBefore<CsiStorageCapacity>();
    const auto* after = event.ContextAfter<CsiStorageCapacity>();
    if (!has_objects || before == nullptr) return true;
    return after != nullptr && LimitOf(*after) > LimitOf(*before);
  }
  return false;
}

}  // namespace

PreFilterPlugin::Outcome VolumeBinding::PreFilter(const Pod& pod,
                                                  const cluster::ClusterSnapshot& snapshot,
                                                  CycleState& state) const {
  Outcome outcome;
  const auto context = Concerns(pod) ? snapshot.ShareContext() : nullptr;
  outcome.skip = context == nullptr;
  if (outcome.skip) return outcome;
  auto found = FindWantedVolumes(pod, *context);
  if (auto* verdict = std::get_if<Verdict>(&found)) {
    outcome.verdict = std::move(*verdict);
    return outcome;
  }
  state.Set(
      Wanted{std::make_shared<const WantedVolumes>(std::get<WantedVolumes>(std::move(found)))});
  return outcome;
}

// Recomputed if `other` may have taken or released a volume that this pod could use, or if it
// shares an unbound claim, whose node the first pod determines.
bool VolumeBinding::Update(const Pod&, const Pod& other, bool, const cluster::NodeInfo&,
                           CycleState& state, TouchDomain) const {
  const auto* wanted = state.Get<Wanted>();
  if (wanted == nullptr || !cluster::UsesClaims(other)) return true;
  return !wanted->volumes->contested &&
         std::ranges::none_of(wanted->volumes->delayed, [&](const WantedVolume& volume) {
           return cluster::UsesClaim(other, *volume.claim);
         });
}

Verdict VolumeBinding::Filter(const CycleState& state, const Pod&,
                              const cluster::NodeInfo& node) const {
  const auto* wanted = state.Get<Wanted>();
  return wanted == nullptr ? Verdict::Fits() : ChooseVolumes(*wanted->volumes, *node.node);
}

// Chooses again: other pods may have taken volumes since the filter ran.
Verdict VolumeBinding::Reserve(const Pod& pod, std::string_view node,
                               cluster::ClusterSnapshot& snapshot, CycleState& state) const {
  if (state.Get<AssumedVolumes>() != nullptr) state.Set(AssumedVolumes());
  if (!Concerns(pod) || snapshot.ShareContext() == nullptr) return Verdict::Fits();
  const auto found = FindWantedVolumes(pod, snapshot.context());
  if (const auto* verdict = std::get_if<Verdict>(&found)) return *verdict;
  const cluster::NodeInfo* info = snapshot.Find(node);
  if (info == nullptr) {
    return Verdict::Unresolvable(NodeNotFound(node));
  }
  VolumeChoice choice;
  Verdict verdict = ChooseVolumes(std::get<WantedVolumes>(found), *info->node, &choice);
  if (!verdict.fits()) return verdict;
  if (!choice.bindings.empty() || !choice.provisions.empty()) {
    state.Set(AssumeVolumes(choice, info->node->meta.name, snapshot));
  }
  return verdict;
}

void VolumeBinding::Unreserve(const Pod&, std::string_view, cluster::ClusterSnapshot& snapshot,
                              CycleState& state) const {
  auto* assumed = state.Get<AssumedVolumes>();
  if (assumed == nullptr) return;
  Withdraw(*assumed, snapshot);
  *assumed = {};
}

Progress VolumeBinding::PreBind(const Pod&, std::string_view node,
                                const cluster::ClusterSnapshot& snapshot, Time now,
                                CycleState& state) const {
  auto* assumed = state.Get<AssumedVolumes>();
  if (assumed == nullptr || assumed->empty()) return {};
  if (!assumed->until) assumed->until = now + patience_;
  Progress progress = CheckVolumes(*assumed, node, snapshot);
  if (progress.kind != Progress::Kind::kWaits) return progress;
  if (now >= *assumed->until) {
    return {Progress::Kind::kFailed, codes::kVolumeBindingTimeout,
            fmt::format("binding volumes: context deadline exceeded ({} s): {}",
                        std::chrono::duration_cast<std::chrono::seconds>(patience_).count(),
                        progress.message)};
  }
  progress.until = assumed->until;
  assumed->written = true;
  return progress;
}

// A pod that left may never have been bound, and releases the volumes reserved for it.
bool VolumeBinding::MayHelp(const ClusterEvent& event, const Pod& pod) const {
  using enum ClusterEvent::Kind;
  switch (event.kind) {
    case kNodeAdded:
      return true;
    case kNodeChanged:
      return !event.node_before || !event.node ||
             event.node_before->meta.labels != event.node->meta.labels;
    case kPodLeft: {
      const Pod* left = event.pod_before ? event.pod_before.get() : event.pod.get();
      return left == nullptr || cluster::UsesClaims(*left);
    }
    case kContext:
      return MayHelpContext(event, pod);
    case kNodeRemoved:
    case kPodBound:
    case kPodChanged:
      return false;
  }
  return true;
}

}  // namespace nos::scheduling
