#include "controllers/gangs.h"

#include <fmt/core.h>

#include <algorithm>
#include <tuple>

namespace nos::controllers {

using cluster::PodGroupOf;

namespace {

GangSize SizeByWorkload(const std::string& ns, const cluster::WorkloadRef& ref,
                        const cluster::ClusterContext& context) {
  const std::string key = ns + "/" + ref.name;
  const cluster::Workload* workload = context.workloads.Find(key);
  if (workload == nullptr) return {1, fmt::format("there is no Workload {}", key)};
  for (const cluster::Workload::Group& group : workload->groups) {
    if (group.name == ref.pod_group) return {group.min_count.value_or(1), ""};
  }
  return {1, fmt::format("Workload {} has no group \"{}\"", key, ref.pod_group)};
}

}  // namespace

GangSize SizeOfGang(const cluster::Pod& pod, const cluster::ClusterContext& context) {
  if (!pod.scheduling_group.empty()) {
    const std::string key = pod.meta.ns + "/" + pod.scheduling_group;
    const cluster::SchedulingGroup* found = context.scheduling_groups.Find(key);
    if (found == nullptr) {
      return {1, fmt::format("there is no PodGroup {} of scheduling.k8s.io", key)};
    }
    return {found->min_count.value_or(1), ""};
  }
  if (pod.workload) return SizeByWorkload(pod.meta.ns, *pod.workload, context);
  const std::string group = PodGroupOf(pod);
  if (group.empty()) return {};
  const std::string key = pod.meta.ns + "/" + group;
  const cluster::PodGroup* found = context.pod_groups.Find(key);
  if (found == nullptr) return {1, fmt::format("there is no PodGroup {}", key)};
  return {found->min_member, ""};
}

bool KnowsGroups(const cluster::Pod& pod, const cluster::ClusterContext& context) {
  if (!pod.scheduling_group.empty()) return !context.scheduling_groups.rows().empty();
  return pod.workload ? !context.workloads.rows().empty() : !context.pod_groups.rows().empty();
}

bool CountsInGang(const cluster::Pod& pod) { return pod.phase != "Failed" && !pod.meta.deleted; }

bool IsPlacedInGang(const cluster::Pod& pod) { return !pod.node_name.empty() && CountsInGang(pod); }

void Gangs::Set(const Pod& before, const Pod& after) {
  if (before != nullptr) {
    const auto gang = members_.find(GangOf(*before));
    if (gang != members_.end()) {
      gang->second.erase(before->Key());
      if (gang->second.empty()) members_.erase(gang);
    }
  }
  if (after == nullptr || !CountsInGang(*after)) return;
  const std::string gang = GangOf(*after);
  if (!gang.empty()) members_[gang][after->Key()] = after;
}

std::vector<Gangs::Pod> Gangs::Of(const std::string& gang) const {
  std::vector<Pod> pods;
  const auto found = members_.find(gang);
  if (found == members_.end()) return pods;
  for (const auto& [key, pod] : found->second) pods.push_back(pod);
  std::ranges::stable_sort(pods, [](const Pod& a, const Pod& b) {
    return std::tuple(-int64_t{a->priority}, a->meta.created) <
           std::tuple(-int64_t{b->priority}, b->meta.created);
  });
  return pods;
}

// A new pod is tried on its own and takes the other members along. A member bound elsewhere counts
// as placed, so fewer are missing.
bool GangScheduling::MayHelp(const scheduling::ClusterEvent& event, const cluster::Pod& pod) const {
  using Kind = scheduling::ClusterEvent::Kind;
  if (event.kind == Kind::kPodBound || event.kind == Kind::kPodChanged) {
    const std::string gang = GangOf(*event.pod);
    return !gang.empty() && gang == GangOf(pod);
  }
  if (event.kind != Kind::kContext) return false;
  if (event.context_kind == "PodGroup") return !pod.workload;
  return event.context_kind == "Workload" && pod.workload.has_value();
}

}  // namespace nos::controllers
