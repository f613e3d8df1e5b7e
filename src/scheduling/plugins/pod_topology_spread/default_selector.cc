#include "scheduling/plugins/pod_topology_spread/default_selector.h"

#include <algorithm>

#include "cluster/selectors.h"

namespace nos::scheduling {
namespace {

using cluster::LabelSelector;
using cluster::Pod;
using cluster::PodOwner;

void AddServices(const Pod& pod, const cluster::ClusterContext& context, LabelSelector& to) {
  const std::string prefix = pod.meta.ns + "/";
  const auto& services = context.services.rows();
  for (auto it = services.lower_bound(prefix);
       it != services.end() && it->first.starts_with(prefix); ++it) {
    const std::optional<LabelSelector>& selector = it->second->selector;
    if (!selector || !cluster::Matches(*selector, pod.meta.labels)) continue;
    // All selectors match the pod, so a key never has two values.
    to.match_labels.insert(selector->match_labels.begin(), selector->match_labels.end());
  }
}

const PodOwner* ControllerOf(const Pod& pod, const cluster::ClusterContext& context) {
  const auto owner = std::ranges::find_if(pod.meta.owners, &cluster::OwnerReference::controller);
  if (owner == pod.meta.owners.end()) return nullptr;
  const std::string key = pod.meta.ns + "/" + owner->name;
  const auto is = [&](std::string_view version, std::string_view kind) {
    return owner->api_version == version && owner->kind == kind;
  };
  if (is("v1", "ReplicationController")) return context.replication_controllers.Find(key);
  if (is("apps/v1", "ReplicaSet")) return context.replica_sets.Find(key);
  if (is("apps/v1", "StatefulSet")) return context.stateful_sets.Find(key);
  return nullptr;
}

}  // namespace

LabelSelector DefaultSelector(const Pod& pod, const cluster::ClusterContext& context) {
  LabelSelector all;
  AddServices(pod, context, all);
  const PodOwner* controller = ControllerOf(pod, context);
  if (controller == nullptr || !controller->selector) return all;
  for (const auto& [key, value] : controller->selector->match_labels) {
    // Added as an expression, so that it may contradict a Service's selector.
    all.match_expressions.push_back({key, "In", {value}});
  }
  const auto& expressions = controller->selector->match_expressions;
  all.match_expressions.insert(all.match_expressions.end(), expressions.begin(), expressions.end());
  return all;
}

}  // namespace nos::scheduling
