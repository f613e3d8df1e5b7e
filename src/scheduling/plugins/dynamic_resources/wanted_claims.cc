#include "scheduling/plugins/dynamic_resources/wanted_claims.h"

#include <fmt/format.h>

#include <algorithm>

#include "cluster/selectors.h"
#include "dra/objects.h"

namespace nos::scheduling {
namespace {

constexpr size_t kMaxUsers = 256;  // ResourceClaimReservedForMaxSize

}  // namespace

bool KnowsDevices(const cluster::ClusterContext& context) {
  return context.devices != nullptr || !context.device_claims.rows().empty() ||
         !context.device_slices.rows().empty();
}

dra::FindClass ClassesOf(const cluster::ClusterContext& context) {
  return [&context](const std::string& name) { return context.device_classes.Share(name); };
}

std::vector<std::string> ExtendedResourcesOf(const cluster::Pod& pod,
                                             const cluster::ClusterContext& context) {
  if (!dra::AsksForExtendedResources(pod)) return {};
  if (context.devices != nullptr) return context.devices->extended().ServedFor(pod);
  return dra::ExtendedResources(context.device_classes).ServedFor(pod);
}

// A claim that the pod names itself may belong to any pod. Pods do not know the uid of their group.
bool IsMadeFor(const dra::ResourceClaim& claim, const cluster::Pod& pod) {
  const bool from_template = std::ranges::any_of(pod.claims, [&](const cluster::PodClaim& entry) {
    return !entry.template_name.empty() && entry.claim == claim.name;
  });
  if (!from_template) return true;
  if (!claim.controller) return false;
  const cluster::OwnerReference& owner = *claim.controller;
  const bool is_group = owner.kind == "PodGroup" && !pod.scheduling_group.empty() &&
                        owner.api_version.starts_with("scheduling.k8s.io/");
  return owner.uid == pod.meta.uid || (is_group && owner.name == pod.scheduling_group);
}

bool IsLeftover(const dra::ResourceClaim& claim, const cluster::Pod& pod) {
  return dra::IsExtendedClaim(claim) &&
         std::ranges::all_of(claim.reserved_for,
                             [&](const auto& user) { return user.uid == pod.meta.uid; });
}

std::shared_ptr<const dra::ResourceClaim> FindExtendedClaim(
    const cluster::Pod& pod, const cluster::ClusterContext& context) {
  if (auto claim = context.device_claims.Share(dra::ExtendedClaimKey(pod))) return claim;
  if (pod.extended_claim.empty()) return nullptr;
  return context.device_claims.Share(pod.meta.ns + "/" + pod.extended_claim);
}

namespace {

// The devices of such a claim were chosen for a node that may no longer be the right one.
Verdict VerdictOnLeftover(const cluster::Pod& pod, const cluster::ClusterContext& context) {
  const auto claim = FindExtendedClaim(pod, context);
  if (claim == nullptr) return Verdict::Fits();
  if (IsLeftover(*claim, pod)) {
    return Verdict::Unresolvable(
        codes::kResourceClaimDeleted,
        fmt::format("resourceclaim \"{}\" of an earlier attempt is being deleted", claim->Key()));
  }
  return Verdict::Unresolvable(
      codes::kResourceClaimInUse,
      fmt::format("resourceclaim \"{}\" has the name that is needed for a claim for the pod's "
                  "extended resources, and belongs to others",
                  claim->Key()));
}

}  // namespace

std::variant<WantedClaims, Verdict> FindWantedClaims(const cluster::Pod& pod,
                                                     const cluster::ClusterContext& context) {
  WantedClaims wanted;
  for (const std::string& key : dra::SpecClaimKeysOf(pod)) {
    const auto& claim = context.device_claims.Share(key);
    if (claim == nullptr) {
      return Verdict::Unresolvable(codes::kResourceClaimNotFound,
                                   fmt::format("resourceclaim \"{}\" not found", key));
    }
    if (claim->deleted) {
      return Verdict::Unresolvable(codes::kResourceClaimDeleted,
                                   fmt::format("resourceclaim \"{}\" is being deleted", key));
    }
    if (!IsMadeFor(*claim, pod)) {
      return Verdict::Unresolvable(
          codes::kResourceClaimOfAnother,
          fmt::format("ResourceClaim {} was not created for pod {} (pod is not owner)", key,
                      pod.Key()));
    }
    if (!claim->allocation) {
      wanted.open.push_back(claim);
      continue;
    }
    if (claim->reserved_for.size() >= kMaxUsers && !dra::IsReservedFor(*claim, pod)) {
      return Verdict::Unresolvable(
          codes::kResourceClaimInUse,
          fmt::format("resourceclaim \"{}\" is in use by {} pods, the most that can share it", key,
                      claim->reserved_for.size()));
    }
    wanted.allocated.push_back(claim);
  }
  wanted.extended = ExtendedResourcesOf(pod, context);
  if (wanted.extended.empty()) return wanted;
  wanted.leftover = VerdictOnLeftover(pod, context);
  return wanted;
}

bool ReachDevices(const WantedClaims& wanted, const cluster::Node& node) {
  return std::ranges::all_of(wanted.allocated, [&](const auto& claim) {
    const auto& selector = claim->allocation->node_selector;
    return !selector || cluster::MatchesAny(*selector, node);
  });
}

}  // namespace nos::scheduling
