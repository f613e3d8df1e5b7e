#include "planning/mobility.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/text.h"
#include "cluster/host_ports.h"
#include "cluster/selectors.h"

namespace nos::planning {
namespace {

// Source: k8s.io/kubernetes pkg/kubelet/types, ConfigMirrorAnnotationKey.
constexpr std::string_view kMirror = "kubernetes.io/config.mirror";
// Source: sigs.k8s.io/scheduler-plugins, coscheduling.
constexpr std::string_view kPodGroupLabel = "scheduling.x-k8s.io/pod-group";

std::string_view Lookup(const cluster::StringMap& map, std::string_view key) {
  const auto found = map.find(key);
  return found == map.end() ? std::string_view() : std::string_view(found->second);
}

bool GoesWithItsNode(const cluster::Pod& pod) {
  return pod.meta.deleted.has_value() || pod.Finished() || pod.meta.annotations.contains(kMirror) ||
         std::ranges::any_of(pod.meta.owners, [](const cluster::OwnerReference& owner) {
           return owner.kind == "DaemonSet" || owner.kind == "Node";
         });
}

// The reason that forbids a move whatever else the pod says; "" if there is none.
std::string WhyForbidden(const cluster::Pod& pod) {
  const cluster::StringMap& annotations = pod.meta.annotations;
  if (pod.priority >= kSystemCritical) return "is the system's, by its priority";
  const std::string_view movable = Lookup(annotations, kMovable);
  if (movable == "false") return fmt::format("{} is false", kMovable);
  if (!movable.empty() && movable != "true") {
    return fmt::format("{} is '{}': say true or false", kMovable, Shortened(movable, 40));
  }
  if (Lookup(annotations, kSafeToEvict) == "false") return fmt::format("{} is false", kSafeToEvict);
  if (Lookup(annotations, kDoNotDisrupt) == "true") return fmt::format("{} is true", kDoNotDisrupt);
  return "";
}

bool IsOfGang(const cluster::Pod& pod) {
  return pod.workload.has_value() || !pod.scheduling_group.empty() ||
         pod.meta.labels.contains(kPodGroupLabel);
}

}  // namespace

Mobility MobilityOf(const cluster::Pod& pod, const MobilityRules& rules) {
  if (GoesWithItsNode(pod)) return {Mobility::kGoes, ""};
  if (std::string why = WhyForbidden(pod); !why.empty()) return {Mobility::kStays, std::move(why)};
  if (!rules.host_ports && !cluster::HostPortsOf(pod).empty()) {
    return {Mobility::kStays, "has host ports, which the namespace of placeholders does not admit"};
  }
  const cluster::StringMap& annotations = pod.meta.annotations;
  if (Lookup(annotations, kMovable) == "true" || Lookup(annotations, kSafeToEvict) == "true") {
    return {};
  }
  const auto stays = [](std::string_view why) {
    return Mobility{Mobility::kStays, fmt::format("{} ({}: \"true\" lets it move)", why, kMovable)};
  };
  if (!std::ranges::any_of(pod.meta.owners, &cluster::OwnerReference::controller)) {
    return stays("has no controller that would make it anew");
  }
  if (IsOfGang(pod)) return stays("is of a gang, whose others would wait for it");
  const bool local = std::ranges::any_of(pod.volumes, &cluster::Volume::local);
  if (local && !rules.local_storage) return stays("has data on its node");
  return {};
}

EvictionBudgets::EvictionBudgets(const cluster::ClusterSnapshot& snapshot) {
  const auto context = snapshot.ShareContext();
  known_ = context != nullptr;
  Table table;
  if (known_) {
    const auto budgets = context->budgets;
    for (const auto& [key, budget] : budgets.rows()) {
      if (!budget->selector) continue;
      table[budget->meta.ns].push_back({budget, allowed_.size()});
      allowed_.push_back(budget->disruptions_allowed);
    }
  }
  table_ = std::make_shared<const Table>(std::move(table));
}

std::vector<const EvictionBudgets::Budget*> EvictionBudgets::Of(const cluster::Pod& pod) const {
  std::vector<const Budget*> found;
  const auto own = table_->find(pod.meta.ns);
  if (own == table_->end()) return found;
  for (const Budget& one : own->second) {
    const auto& selector = one.budget->selector;
    if (selector && cluster::Matches(*selector, pod.meta.labels)) found.push_back(&one);
  }
  return found;
}

std::string EvictionBudgets::WhyNot(const cluster::Pod& pod) const {
  if (!known_) return "PodDisruptionBudgets are not known";
  const std::vector<const Budget*> budgets = Of(pod);
  if (budgets.empty()) return "";
  if (budgets.size() > 1) {
    return fmt::format(
        "belongs to more than one PodDisruptionBudget ({}, {}), so the API server refuses to evict "
        "it",
        budgets[0]->budget->meta.name, budgets[1]->budget->meta.name);
  }
  if (allowed_[budgets[0]->number] > 0) return "";
  return fmt::format("PodDisruptionBudget {} allows no further disruption",
                     budgets[0]->budget->meta.name);
}

void EvictionBudgets::Take(const cluster::Pod& pod) {
  for (const Budget* one : Of(pod)) --allowed_[one->number];
}

}  // namespace nos::planning
