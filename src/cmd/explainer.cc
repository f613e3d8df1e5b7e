#include "cmd/explainer.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "controllers/gangs.h"
#include "quota/ledger.h"
#include "scheduling/explain_gang.h"
#include "scheduling/explain_promises.h"
#include "scheduling/plugins/capacity_scheduling/capacity_scheduling.h"
#include "scheduling/pod_state.h"
#include "scheduling/reclaim.h"

namespace nos::cmd {
namespace {

// The group that the pod is placed together with, as far as its scheduler sees it; none: there is
// none. `problem`: why that cannot be told.
std::optional<scheduling::Together> GroupOf(const ClusterObjects& objects, const cluster::Pod& pod,
                                            const Deciders& deciders, std::string& problem) {
  const std::string gang = controllers::GangOf(pod);
  if (gang.empty() || !objects.around) return std::nullopt;
  const bool told = pod.workload ? !objects.around->workloads.rows().empty()
                                 : !objects.around->pod_groups.rows().empty();
  if (objects.is_dump && !told) return std::nullopt;  // and that was said
  const controllers::GangSize size = controllers::SizeOfGang(pod, *objects.around);
  if (!size.problem.empty()) problem = gang + ": " + size.problem;
  if (!size.problem.empty() || size.least <= 1) return std::nullopt;
  controllers::Gangs gangs;
  for (const SharedPod& other : objects.pods) gangs.Set(nullptr, other);
  scheduling::Together group{gang, static_cast<size_t>(size.least), 0, {}, &deciders.frameworks()};
  for (const SharedPod& member : gangs.Of(gang)) {
    if (controllers::IsPlacedInGang(*member)) ++group.placed;
    const bool waits =
        scheduling::IsSchedulable(*member) && deciders.AreServedTogether(*member, pod);
    if (waits) group.waiting.push_back(member);
  }
  return group;
}

// All of its gang that have a node.
scheduling::EvictionUnit UnitOf(const SharedPod& pod, const ClusterObjects& objects) {
  const std::string gang = controllers::GangOf(*pod);
  if (gang.empty() || !objects.around) return {pod};
  if (controllers::SizeOfGang(*pod, *objects.around).least <= 1) return {pod};
  scheduling::EvictionUnit unit{pod};
  for (const SharedPod& other : objects.pods) {
    const bool has_node = !other->node_name.empty() && !other->Finished();
    if (has_node && other != pod && controllers::GangOf(*other) == gang) unit.push_back(other);
  }
  return unit;
}

// Who has to go for what the pod's quota gives it a right to.
std::optional<scheduling::Preemption> FindReclaim(const ClusterObjects& objects,
                                                  const SharedPod& pod, quota::Ledger& ledger,
                                                  cluster::ClusterSnapshot snapshot,
                                                  const scheduling::Profile& profile) {
  scheduling::Reclaim reclaim(ledger, ledger.balance(), profile.framework.quotas()->options(),
                              [&](const SharedPod& victim) { return UnitOf(victim, objects); });
  std::vector<SharedPod> leaving;
  for (const SharedPod& other : objects.pods) {
    if (!scheduling::EndsByPreemption(*other)) continue;
    if (snapshot.Vacate(*other, other->node_name).ok()) leaving.push_back(other);
  }
  reclaim.CountGone(leaving);
  auto found = reclaim.Find(profile.framework, snapshot, pod, pod->nominated_node);
  return found ? found : reclaim.Find(profile.Cutting(), snapshot, pod, pod->nominated_node);
}

}  // namespace

scheduling::Explanation ExplainWaiting(const ClusterObjects& objects, const SharedPod& pod,
                                       const Deciders& deciders, const gpu::Catalogue& catalogue,
                                       const std::string& reader) {
  auto snapshot = cluster::ClusterSnapshot::Build(objects.nodes, objects.pods, catalogue);
  if (objects.around) snapshot.ChangeAround() = *objects.around;
  std::string problem;
  const auto group = GroupOf(objects, *pod, deciders, problem);
  std::set<std::string> members;
  if (group) {
    for (const SharedPod& member : group->waiting) members.insert(member->Key());
  }
  const auto with = scheduling::WithPromises(snapshot, objects.pods, *pod, members);
  const scheduling::Profile& profile = deciders.of_pod();
  quota::Ledger ledger;
  if (const auto* quotas = profile.framework.quotas()) {
    ledger = quota::LedgerOf(quota::QuotasOf(with.around()), with, objects.pods,
                             quotas->options().charges);
  }
  scheduling::ExplainInput input{profile.framework,  profile.Cutting(), with,  *pod,
                                 profile.preemption, problem,           false, reader,
                                 &ledger.balance()};
  const bool alone = !group || !members.contains(pod->Key());
  const bool covered = ledger.balance().AccountOf(pod->meta.ns).has_value();
  if (alone && covered && profile.reclaims && pod->preemption_policy != "Never") {
    input.reclaim = [&] { return FindReclaim(objects, pod, ledger, with, profile); };
  }
  return alone ? scheduling::Explain(input) : scheduling::ExplainTogether(input, *group);
}

}  // namespace nos::cmd
