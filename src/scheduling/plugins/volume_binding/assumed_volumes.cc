#include "scheduling/plugins/volume_binding/assumed_volumes.h"

#include <fmt/core.h>

#include "cluster/volumes.h"
#include "codec/api_request.h"

namespace nos::scheduling {
namespace {

using cluster::ClusterContext;
using cluster::ClusterSnapshot;
using cluster::PersistentVolume;
using cluster::PersistentVolumeClaim;

const codec::Resource kVolumes{"", "v1", "persistentvolumes", "PersistentVolume", false};
const codec::Resource kClaims{"", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", true};

std::string KeyOf(const PersistentVolume& volume) { return volume.meta.name; }
std::string KeyOf(const PersistentVolumeClaim& claim) {
  return claim.meta.ns + "/" + claim.meta.name;
}

const auto& TableOf(const ClusterContext& context, const PersistentVolume&) {
  return context.volumes;
}
auto& TableOf(ClusterContext& context, const PersistentVolume&) { return context.volumes; }
const auto& TableOf(const ClusterContext& context, const PersistentVolumeClaim&) {
  return context.claims;
}
auto& TableOf(ClusterContext& context, const PersistentVolumeClaim&) { return context.claims; }

template <typename T>
void Put(const std::shared_ptr<const T>& object, ClusterSnapshot& snapshot) {
  TableOf(snapshot.ChangeContext(), *object).Set(KeyOf(*object), object);
}

template <typename T>
const T* Current(const T& object, const ClusterSnapshot& snapshot) {
  return TableOf(snapshot.context(), object).Find(KeyOf(object));
}

template <typename T>
bool NeedsWrite(const AssumedVolumes::Change<T>& change) {
  return change.before != change.after;
}

// The volume bound to the claim, as the PersistentVolume controller would write it.
std::shared_ptr<const PersistentVolume> Given(std::shared_ptr<const PersistentVolume> volume,
                                              const PersistentVolumeClaim& claim) {
  const bool kept = cluster::IsFor(*volume, claim);
  if (kept && volume->claim_uid == claim.meta.uid) return volume;
  auto given = std::make_shared<PersistentVolume>(*volume);
  given->claim_ns = claim.meta.ns;
  given->claim_name = claim.meta.name;
  given->claim_uid = claim.meta.uid;
  if (!kept) given->meta.annotations.try_emplace(std::string(cluster::kBoundByController), "yes");
  return given;
}

std::shared_ptr<const PersistentVolumeClaim> Sent(
    std::shared_ptr<const PersistentVolumeClaim> claim, const std::string& node) {
  const auto selected = claim->meta.annotations.find(cluster::kSelectedNode);
  if (selected != claim->meta.annotations.end() && selected->second == node) return claim;
  auto sent = std::make_shared<PersistentVolumeClaim>(*claim);
  sent->meta.annotations[std::string(cluster::kSelectedNode)] = node;
  return sent;
}

template <typename T>
void Withdraw(const AssumedVolumes::Change<T>& change, ClusterSnapshot& snapshot) {
  if (NeedsWrite(change) && Current(*change.after, snapshot) == change.after.get()) {
    Put(change.before, snapshot);
  }
}

// A merge patch with a resourceVersion: the API server rejects it if the object has changed.
codec::ApiRequest Patch(std::string path, const std::string& resource_version, JsonObject metadata,
                        JsonObject rest = {}) {
  metadata["resourceVersion"] = resource_version;
  rest["metadata"] = std::move(metadata);
  codec::ApiRequest request;
  request.method = "PATCH";
  request.path = std::move(path);
  request.content_type = "application/merge-patch+json";
  request.body = std::move(rest);
  return request;
}

codec::ApiRequest WriteOf(const AssumedVolumes::Binding& binding) {
  const auto& [before, after] = binding.volume;
  const cluster::ObjectMeta& claim = binding.claim->meta;
  JsonObject metadata;
  if (before->meta.annotations != after->meta.annotations) {
    metadata["annotations"] = JsonObject{{std::string(cluster::kBoundByController), "yes"}};
  }
  const JsonObject reference{{"apiVersion", "v1"},    {"kind", "PersistentVolumeClaim"},
                             {"namespace", claim.ns}, {"name", claim.name},
                             {"uid", claim.uid},      {"resourceVersion", claim.resource_version}};
  return Patch(codec::PathOf(kVolumes, "", before->meta.name), before->meta.resource_version,
               std::move(metadata), {{"spec", JsonObject{{"claimRef", reference}}}});
}

codec::ApiRequest WriteOf(const AssumedVolumes::Change<PersistentVolumeClaim>& provision) {
  const cluster::ObjectMeta& after = provision.after->meta;
  const std::string key(cluster::kSelectedNode);
  return Patch(codec::PathOf(kClaims, after.ns, after.name), after.resource_version,
               {{"annotations", JsonObject{{key, after.annotations.at(key)}}}});
}

// State of one of the pod's volumes.
struct Finding {
  enum class Kind { kBound, kWaits, kFailed } kind = Kind::kBound;
  std::string message = {};
};

Finding Waits(const PersistentVolumeClaim& claim) {
  return {Finding::Kind::kWaits,
          fmt::format("persistentvolumeclaim \"{}\" is not bound yet", KeyOf(claim))};
}

Finding Failed(std::string message) { return {Finding::Kind::kFailed, std::move(message)}; }

Finding CheckReach(const PersistentVolume& volume, const cluster::Node& node) {
  if (cluster::Reaches(node.meta.labels, volume)) return {};
  return Failed(fmt::format(
      "pv \"{}\" node affinity doesn't match node \"{}\": no matching NodeSelectorTerms",
      volume.meta.name, node.meta.name));
}

// True if a change is to be written, or was written and the watch has not shown it yet.
template <typename T>
bool IsOutstanding(const AssumedVolumes::Change<T>& change, const T& current) {
  return NeedsWrite(change) &&
         current.meta.resource_version == change.before->meta.resource_version;
}

template <typename T>
Finding CheckUntouched(const AssumedVolumes::Change<T>& change, const T& current,
                       std::string_view kind) {
  if (!NeedsWrite(change) || IsOutstanding(change, current)) return {};
  return Failed(fmt::format("{} \"{}\" has changed since it was chosen", kind, KeyOf(current)));
}

Finding CheckClaim(const PersistentVolumeClaim& claim) {
  if (claim.phase == "Lost") {
    return Failed(
        fmt::format("persistentvolumeclaim \"{}\" bound to non-existent persistentvolume \"{}\"",
                    claim.meta.name, claim.volume_name));
  }
  return cluster::IsBound(claim) ? Finding{} : Waits(claim);
}

Finding CheckBinding(const AssumedVolumes::Binding& binding, bool written,
                     const cluster::Node& node, const ClusterSnapshot& snapshot) {
  const PersistentVolume& assumed = *binding.volume.after;
  const PersistentVolume* volume = Current(assumed, snapshot);
  const PersistentVolumeClaim* claim = Current(*binding.claim, snapshot);
  if (volume == nullptr || claim == nullptr) {
    return Failed(fmt::format("failed to check binding: {} \"{}\" not found",
                              volume == nullptr ? "persistentvolume" : "persistentvolumeclaim",
                              volume == nullptr ? KeyOf(assumed) : KeyOf(*binding.claim)));
  }
  const bool taken = !volume->claim_name.empty() && !cluster::IsFor(*volume, *binding.claim);
  if (taken || (!claim->volume_name.empty() && claim->volume_name != assumed.meta.name)) {
    return Failed(fmt::format("pv \"{}\" and persistentvolumeclaim \"{}\" were bound to others",
                              assumed.meta.name, KeyOf(*claim)));
  }
  if (!written) {
    Finding untouched = CheckUntouched(binding.volume, *volume, "persistentvolume");
    if (untouched.kind == Finding::Kind::kFailed) return untouched;
  }
  if (IsOutstanding(binding.volume, *volume)) return Waits(*claim);
  Finding reach = CheckReach(*volume, node);
  if (reach.kind == Finding::Kind::kFailed) return reach;
  if (volume->claim_uid.empty()) {
    return Failed(fmt::format("ClaimRef got reset for pv \"{}\"", volume->meta.name));
  }
  return CheckClaim(*claim);
}

Finding CheckProvision(const AssumedVolumes::Change<PersistentVolumeClaim>& provision, bool written,
                       const cluster::Node& node, const ClusterSnapshot& snapshot) {
  const PersistentVolumeClaim* claim = Current(*provision.after, snapshot);
  if (claim == nullptr) {
    return Failed(
        fmt::format("failed to check provisioning pvc: persistentvolumeclaim \"{}\" not found",
                    KeyOf(*provision.after)));
  }
  if (!written) {
    Finding untouched = CheckUntouched(provision, *claim, "persistentvolumeclaim");
    if (untouched.kind == Finding::Kind::kFailed) return untouched;
  }
  if (IsOutstanding(provision, *claim)) return Waits(*claim);
  // A provisioner that fails removes the annotation so that the pod is scheduled again.
  const auto selected = claim->meta.annotations.find(cluster::kSelectedNode);
  if (selected == claim->meta.annotations.end() || selected->second != node.meta.name) {
    return Failed(fmt::format("provisioning failed for PVC \"{}\"", claim->meta.name));
  }
  if (!claim->volume_name.empty()) {
    const PersistentVolume* volume = snapshot.context().volumes.Find(claim->volume_name);
    if (volume == nullptr) {
      return claim->phase == "Lost" ? CheckClaim(*claim) : Waits(*claim);  // the watch may be late
    }
    Finding reach = CheckReach(*volume, node);
    if (reach.kind == Finding::Kind::kFailed) return reach;
  }
  return CheckClaim(*claim);
}

// Keeps the worse finding; of equals the first.
void Merge(Finding next, Finding& to) {
  if (next.kind > to.kind) to = std::move(next);
}

std::vector<codec::ApiRequest> WritesOf(const AssumedVolumes& assumed) {
  std::vector<codec::ApiRequest> writes;
  for (const auto& binding : assumed.bindings) {
    if (NeedsWrite(binding.volume)) writes.push_back(WriteOf(binding));
  }
  for (const auto& provision : assumed.provisions) {
    if (NeedsWrite(provision)) writes.push_back(WriteOf(provision));
  }
  return writes;
}

}  // namespace

AssumedVolumes AssumeVolumes(const VolumeChoice& choice, const std::string& node,
                             ClusterSnapshot& snapshot) {
  AssumedVolumes assumed;
  for (const auto& [volume, claim] : choice.bindings) {
    assumed.bindings.push_back({{volume, Given(volume, *claim)}, claim});
    const auto& change = assumed.bindings.back().volume;
    if (NeedsWrite(change)) Put(change.after, snapshot);
  }
  for (const auto& claim : choice.provisions) {
    assumed.provisions.push_back({claim, Sent(claim, node)});
    if (NeedsWrite(assumed.provisions.back())) Put(assumed.provisions.back().after, snapshot);
  }
  return assumed;
}

void Withdraw(const AssumedVolumes& assumed, ClusterSnapshot& snapshot) {
  for (const auto& binding : assumed.bindings) Withdraw(binding.volume, snapshot);
  for (const auto& provision : assumed.provisions) Withdraw(provision, snapshot);
}

Progress CheckVolumes(const AssumedVolumes& assumed, std::string_view node,
                      const ClusterSnapshot& snapshot) {
  const cluster::NodeInfo* info = snapshot.Find(node);
  Finding finding;
  if (info == nullptr) {
    finding = Failed(fmt::format("failed to get node \"{}\": it is gone", node));
  } else {
    for (const auto& binding : assumed.bindings) {
      Merge(CheckBinding(binding, assumed.written, *info->node, snapshot), finding);
    }
    for (const auto& provision : assumed.provisions) {
      Merge(CheckProvision(provision, assumed.written, *info->node, snapshot), finding);
    }
  }
  if (finding.kind == Finding::Kind::kFailed) {
    return {Progress::Kind::kFailed, codes::kVolumeBindingFailed,
            "binding volumes: " + finding.message};
  }
  if (finding.kind == Finding::Kind::kBound) return {};
  Progress waits{Progress::Kind::kWaits, codes::kWaitsForVolumes, std::move(finding.message)};
  if (!assumed.written) waits.writes = WritesOf(assumed);
  return waits;
}

}  // namespace nos::scheduling
