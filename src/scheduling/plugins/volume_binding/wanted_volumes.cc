#include "scheduling/plugins/volume_binding/wanted_volumes.h"

#include <fmt/core.h>

#include <algorithm>

#include "cluster/selectors.h"
#include "cluster/volumes.h"

namespace nos::scheduling {
namespace {

using cluster::ClusterContext;
using cluster::CsiStorageCapacity;
using cluster::PersistentVolume;
using cluster::PersistentVolumeClaim;
using cluster::Pod;
using cluster::SelectorRequirement;
using cluster::StringMap;
using cluster::Volume;

// Refuses claims that do not exist, are lost, are being deleted, or belong to another pod.
Verdict CheckClaim(const Pod& pod, const Volume& volume, const std::string& name,
                   const PersistentVolumeClaim* claim) {
  const bool ephemeral = volume.kind == Volume::Kind::kEphemeral;
  const auto refuse = [](const char* code, std::string message) {
    return Verdict::Unresolvable(code, std::move(message));
  };
  if (claim == nullptr && ephemeral) {
    return refuse(codes::kClaimNotFound,
                  fmt::format("waiting for ephemeral volume controller to create "
                              "the persistentvolumeclaim \"{}\"",
                              name));
  }
  if (claim == nullptr) {
    return refuse(codes::kClaimNotFound,
                  fmt::format("persistentvolumeclaim \"{}\" not found", name));
  }
  if (claim->phase == "Lost") {
    return refuse(codes::kClaimLost,
                  fmt::format("persistentvolumeclaim \"{}\" bound to non-existent "
                              "persistentvolume \"{}\"",
                              name, claim->volume_name));
  }
  if (claim->meta.deleted) {
    return refuse(codes::kClaimDeleted,
                  fmt::format("persistentvolumeclaim \"{}\" is being deleted", name));
  }
  if (ephemeral && !cluster::IsMadeFor(*claim, pod)) {
    return refuse(codes::kClaimOfAnother,
                  fmt::format("PVC {}/{} was not created for pod {} (pod is not owner)",
                              pod.meta.ns, name, pod.Key()));
  }
  return Verdict::Fits();
}

void AddBound(const PersistentVolumeClaim& claim, const ClusterContext& context,
              WantedVolumes& to) {
  if (to.bound_missing) return;
  auto volume = context.volumes.Share(claim.volume_name);
  to.bound_missing = volume == nullptr;
  if (volume != nullptr) to.bound.push_back(std::move(volume));
}

// Conditions on a volume for any claim, even for the claim that it is reserved for.
bool CanHold(const PersistentVolume& volume, const PersistentVolumeClaim& claim) {
  return volume.storage >= claim.storage && volume.volume_mode == claim.volume_mode &&
         volume.attributes_class == claim.attributes_class.value_or("") && !volume.meta.deleted;
}

// Further conditions on an available volume that is not reserved for the claim.
bool CanTake(const PersistentVolumeClaim& claim, const PersistentVolume& volume) {
  if (claim.selector && !cluster::Matches(*claim.selector, volume.meta.labels)) return false;
  return std::ranges::all_of(claim.access_modes, [&](const std::string& mode) {
    return std::ranges::find(volume.access_modes, mode) != volume.access_modes.end();
  });
}

const SelectorRequirement* FirstIn(const std::vector<SelectorRequirement>& requirements) {
  const auto found = std::ranges::find(requirements, "In", &SelectorRequirement::op);
  return found == requirements.end() ? nullptr : &*found;
}

const SelectorRequirement* FirstIn(const PersistentVolume& volume) {
  if (!volume.node_terms || volume.node_terms->size() != 1) return nullptr;
  return FirstIn(volume.node_terms->front().match_expressions);
}

// True if some volume matches, whether it is free or not.
bool AddCandidates(const ClusterContext& context, WantedVolume& to) {
  const PersistentVolumeClaim& claim = *to.claim;
  const std::string& storage = cluster::ClassOf(claim);
  bool contested = false;
  for (const auto& [name, volume] : context.volumes.rows()) {
    const bool free = volume->claim_name.empty();
    const bool ours = !free && cluster::IsFor(*volume, claim);
    if (!ours && volume->phase != "Available") continue;
    if (cluster::ClassOf(*volume) != storage || !CanHold(*volume, claim)) continue;
    if (ours) {
      to.kept = volume;
      to.candidates.clear();
      return true;
    }
    if (!CanTake(claim, *volume)) continue;
    contested = true;
    if (free) to.candidates.push_back(volume);
  }
  std::ranges::stable_sort(to.candidates, {}, [](const auto& volume) { return volume->storage; });
  for (uint32_t i = 0; i < to.candidates.size(); ++i) {
    to.candidates_near.Add(i, FirstIn(*to.candidates[i]));
  }
  return contested;
}

bool IsEnough(const CsiStorageCapacity& capacity, const PersistentVolumeClaim& claim) {
  const auto& most =
      capacity.maximum_volume_size ? capacity.maximum_volume_size : capacity.capacity;
  return most && most->Value() >= claim.storage.Value();
}

void AddCapacities(const ClusterContext& context, WantedVolume& to) {
  const auto* driver = context.csi_drivers.Find(to.storage->provisioner);
  to.tracks_capacity =
      driver != nullptr && driver->tracks_capacity && to.claim->storage > Quantity();
  if (!to.tracks_capacity) return;
  for (const auto& [name, capacity] : context.csi_capacities.rows()) {
    const auto& topology = capacity->node_topology;
    if (capacity->storage_class != to.storage->meta.name || !topology) continue;
    if (!IsEnough(*capacity, *to.claim)) continue;
    const auto number = static_cast<uint32_t>(to.capacities.size());
    const cluster::LabelSelector& near = *topology;
    to.capacities.push_back(capacity);
    if (near.match_labels.empty()) {
      to.capacities_near.Add(number, FirstIn(near.match_expressions));
    } else {
      const auto& [key, value] = *near.match_labels.begin();
      const SelectorRequirement in{key, "In", {value}};
      to.capacities_near.Add(number, &in);
    }
  }
}

void AddDelayed(std::shared_ptr<const PersistentVolumeClaim> claim,
                std::shared_ptr<const cluster::StorageClass> storage, const ClusterContext& context,
                WantedVolumes& to) {
  WantedVolume& wanted = to.delayed.emplace_back();
  wanted.claim = std::move(claim);
  wanted.storage = std::move(storage);
  const auto& annotations = wanted.claim->meta.annotations;
  const auto selected = annotations.find(cluster::kSelectedNode);
  if (selected != annotations.end()) {
    wanted.selected_node = selected->second;
  } else {
    to.contested |= AddCandidates(context, wanted);
  }
  const std::string& provisioner = wanted.storage->provisioner;
  wanted.provisionable = !provisioner.empty() && provisioner != "kubernetes.io/no-provisioner";
  if (wanted.provisionable) AddCapacities(context, wanted);
}

bool AllowsNode(const cluster::StorageClass& storage, const StringMap& labels) {
  const auto& terms = storage.allowed_topologies;
  return terms.empty() || std::ranges::any_of(terms, [&](const auto& term) {
           return !term.empty() && std::ranges::all_of(term, [&](const SelectorRequirement& label) {
             return cluster::Matches(label, labels);
           });
         });
}

using Taken = std::vector<const PersistentVolume*>;

// Null: no existing volume matches on the node.
const std::shared_ptr<const PersistentVolume>* FindVolume(const WantedVolume& wanted,
                                                          const StringMap& labels,
                                                          const Taken& taken) {
  if (wanted.kept != nullptr) {
    return cluster::Reaches(labels, *wanted.kept) ? &wanted.kept : nullptr;
  }
  const uint32_t found = wanted.candidates_near.First(labels, [&](uint32_t i) {
    const PersistentVolume& volume = *wanted.candidates[i];
    return std::ranges::find(taken, &volume) == taken.end() && cluster::Reaches(labels, volume);
  });
  return found == LabelIndex::kNone ? nullptr : &wanted.candidates[found];
}

enum class Provision { kYes, kNo, kNoSpace };

Provision CanProvision(const WantedVolume& wanted, const StringMap& labels) {
  if (!wanted.provisionable || !AllowsNode(*wanted.storage, labels)) return Provision::kNo;
  if (!wanted.tracks_capacity) return Provision::kYes;
  const uint32_t found = wanted.capacities_near.First(labels, [&](uint32_t i) {
    return cluster::Matches(*wanted.capacities[i]->node_topology, labels);
  });
  return found == LabelIndex::kNone ? Provision::kNoSpace : Provision::kYes;
}

// Claims without an existing volume are provisioned. The first claim that cannot be decides.
Provision ChooseDelayed(const WantedVolumes& wanted, const cluster::Node& node,
                        VolumeChoice* choice) {
  const StringMap& labels = node.meta.labels;
  for (const WantedVolume& volume : wanted.delayed) {
    if (!volume.selected_node.empty() && volume.selected_node != node.meta.name) {
      return Provision::kNo;
    }
  }
  Taken taken;
  for (const WantedVolume& volume : wanted.delayed) {
    const auto* found = volume.selected_node.empty() ? FindVolume(volume, labels, taken) : nullptr;
    if (found != nullptr) {
      if (wanted.delayed.size() > 1) taken.push_back(found->get());
      if (choice != nullptr) choice->bindings.push_back({*found, volume.claim});
      continue;
    }
    const Provision provision = CanProvision(volume, labels);
    if (provision != Provision::kYes) return provision;
    if (choice != nullptr) choice->provisions.push_back(volume.claim);
  }
  return Provision::kYes;
}

void Refuse(const char* code, const char* message, Verdict& to) {
  if (to.fits()) {
    to = Verdict::Unresolvable(code, message);
  } else {
    to.more.push_back({code, message});
  }
}

}  // namespace

std::variant<WantedVolumes, Verdict> FindWantedVolumes(const Pod& pod,
                                                       const ClusterContext& context) {
  WantedVolumes wanted;
  bool immediate = false;
  for (const Volume& volume : pod.volumes) {
    if (!cluster::IsClaim(volume)) continue;
    const std::string name = cluster::ClaimName(pod, volume);
    auto claim = context.claims.Share(pod.meta.ns + "/" + name);
    Verdict verdict = CheckClaim(pod, volume, name, claim.get());
    if (!verdict.fits()) return verdict;
    if (cluster::IsBound(*claim)) {
      AddBound(*claim, context, wanted);
      continue;
    }
    auto storage = context.storage_classes.Share(cluster::ClassOf(*claim));
    const bool waits = storage != nullptr && storage->waits_for_consumer;
    if (waits && claim->volume_name.empty()) {
      const auto same = [&](const WantedVolume& other) { return other.claim == claim; };
      // Two volumes of the pod use one claim.
      if (std::ranges::any_of(wanted.delayed, same)) continue;
      AddDelayed(std::move(claim), std::move(storage), context, wanted);
    } else {
      immediate = true;
    }
  }
  if (immediate) {
    return Verdict::Unresolvable(codes::kClaimUnbound,
                                 "pod has unbound immediate PersistentVolumeClaims");
  }
  std::ranges::stable_sort(wanted.delayed, {}, [](const WantedVolume& volume) {
    const bool decided = !volume.selected_node.empty();
    return std::pair(!decided, decided ? Quantity() : volume.claim->storage);
  });
  return wanted;
}

Verdict ChooseVolumes(const WantedVolumes& wanted, const cluster::Node& node,
                      VolumeChoice* choice) {
  const StringMap& labels = node.meta.labels;
  const bool reached = std::ranges::all_of(
      wanted.bound, [&](const auto& volume) { return cluster::Reaches(labels, *volume); });
  const Provision delayed = ChooseDelayed(wanted, node, choice);
  Verdict verdict;
  if (!reached) {
    Refuse(codes::kVolumeOutOfReach, "node(s) didn't match PersistentVolume's node affinity",
           verdict);
  }
  if (delayed == Provision::kNo) {
    Refuse(codes::kNoVolumeToBind, "node(s) didn't find available persistent volumes to bind",
           verdict);
  }
  if (delayed == Provision::kNoSpace) {
    Refuse(codes::kNotEnoughStorage, "node(s) did not have enough free storage", verdict);
  }
  if (reached && wanted.bound_missing) {
    Refuse(codes::kVolumeNotFound,
           "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)", verdict);
  }
  return verdict;
}

}  // namespace nos::scheduling
