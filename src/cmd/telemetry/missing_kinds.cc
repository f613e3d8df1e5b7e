#include "cmd/telemetry/missing_kinds.h"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>

#include "base/text.h"
#include "cluster/volumes.h"
#include "controllers/gangs.h"

namespace nos::cmd {
namespace {

using cluster::ClusterContext;
using cluster::Pod;

void AddVolumeKinds(const Pod& pod, const ClusterContext& context,
                    std::vector<std::string>& kinds) {
  if (context.claims.rows().empty()) kinds.emplace_back("PersistentVolumeClaim");
  bool volumes = false, classes = false;
  for (const cluster::Volume& volume : pod.volumes) {
    if (!cluster::IsClaim(volume)) continue;
    const auto* claim = context.claims.Find(pod.meta.ns + "/" + cluster::ClaimName(pod, volume));
    if (claim == nullptr) continue;
    volumes = volumes || !claim->volume_name.empty();
    classes = classes || (!cluster::IsBound(*claim) && !cluster::ClassOf(*claim).empty());
  }
  if (volumes && context.volumes.rows().empty()) kinds.emplace_back("PersistentVolume");
  if (classes && context.storage_classes.rows().empty()) kinds.emplace_back("StorageClass");
}

bool SelectsNamespaces(const Pod& pod) {
  const auto selects = [](const cluster::PodAffinityTerm& term) {
    return term.namespace_selector && (!term.namespace_selector->match_labels.empty() ||
                                       !term.namespace_selector->match_expressions.empty());
  };
  return std::ranges::any_of(pod.pod_affinity.required, selects) ||
         std::ranges::any_of(pod.pod_anti_affinity.required, selects);
}

bool IsAboutVolumes(const std::string& kind) {
  return kind.starts_with("Persistent") || kind == "StorageClass";
}

}  // namespace

bool MissesGroups(const Pod& pod, const ClusterContext& context) {
  return !controllers::GangOf(pod).empty() && !controllers::KnowsGroups(pod, context);
}

std::vector<std::string> MissingKinds(const Pod& pod, const ClusterContext& context) {
  std::vector<std::string> kinds;
  if (cluster::UsesClaims(pod)) AddVolumeKinds(pod, context, kinds);
  if (MissesGroups(pod, context)) kinds.emplace_back(pod.workload ? "Workload" : "PodGroup");
  if (SelectsNamespaces(pod) && context.namespaces.rows().empty()) kinds.emplace_back("Namespace");
  return kinds;
}

std::shared_ptr<const Pod> LeaveOutMissing(const std::shared_ptr<const Pod>& pod,
                                           const std::optional<ClusterContext>& context) {
  const auto kinds = MissingKinds(*pod, context.value_or(ClusterContext()));
  if (kinds.empty()) return pod;
  std::vector<std::string> names;
  for (const std::string& kind : kinds) {
    cluster::ForEachContextKind([&](const cluster::ContextKind& known, auto, auto) {
      const bool named = std::ranges::find(names, known.plural) != names.end();
      if (known.kind == kind && !named) names.emplace_back(known.plural);
    });
  }
  std::cerr << fmt::format(
      "note: ignoring objects that the pod refers to and the dump does not contain: {}; add them "
      "with: "
      "kubectl get nodes,pods,{} -A -o yaml\n",
      Join(kinds, ", "), Join(names, ","));
  if (std::ranges::none_of(kinds, IsAboutVolumes)) return pod;
  auto known = std::make_shared<Pod>(*pod);
  std::erase_if(known->volumes, cluster::IsClaim);
  return known;
}

}  // namespace nos::cmd
