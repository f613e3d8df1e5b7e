#include "controllers/planned_gangs.h"

#include <map>
#include <set>
#include <utility>

#include "controllers/gangs.h"
#include "dra/context.h"
#include "scheduling/pod_state.h"

namespace nos::controllers {
namespace {

using Pod = std::shared_ptr<const cluster::Pod>;

Gangs GangsAmong(const std::vector<Pod>& pods) {
  Gangs gangs;
  for (const Pod& pod : pods) gangs.Set(nullptr, pod);
  return gangs;
}

bool IsTakenCareOf(const cluster::Pod& pod, const SliceReservations& reservations) {
  return IsPlacedInGang(pod) || !pod.nominated_node.empty() || reservations.Holds(pod.Key());
}

// Leaves `members` empty.
planning::Gang Describe(const std::string& name, const std::vector<Pod>& members,
                        const cluster::ClusterContext& context,
                        const SliceReservations& reservations) {
  planning::Gang gang;
  gang.name = name;
  for (const Pod& member : members) {
    const GangSize size = SizeOfGang(*member, context);  // the same for all members
    gang.least = size.least;
    gang.problem = size.problem;
    gang.placed += IsTakenCareOf(*member, reservations) ? 1 : 0;
  }
  return gang;
}

template <typename Rows, typename PodOf>
std::set<std::string> NamesOf(const Rows& rows, PodOf pod_of) {
  std::set<std::string> names;
  for (const auto& row : rows) names.insert(GangOf(*pod_of(row)));
  names.erase("");
  return names;
}

}  // namespace

GangedPods WithGangs(std::vector<Pod> waiting, const std::vector<Pod>& all,
                     const cluster::ClusterContext& context, const SliceReservations& reservations,
                     Time now) {
  GangedPods ganged{std::move(waiting), {}};
  const auto names = NamesOf(ganged.pods, [](const Pod& pod) { return pod; });
  if (names.empty()) return ganged;
  const Gangs gangs = GangsAmong(all);
  std::map<std::string, int> at;  // index in ganged.pods
  for (const Pod& pod : ganged.pods) at.emplace(pod->Key(), static_cast<int>(at.size()));
  for (const std::string& name : names) {
    const std::vector<Pod> members = gangs.Of(name);
    planning::Gang gang = Describe(name, members, context, reservations);
    if (gang.problem.empty() && gang.least <= 1) continue;
    for (const Pod& member : members) {
      const std::string key = member->Key();
      if (IsTakenCareOf(*member, reservations) || reservations.Pausing(key, now)) continue;
      if (!scheduling::IsPlannable(*member)) continue;
      const auto [place, fresh] = at.try_emplace(key, static_cast<int>(at.size()));
      if (fresh) ganged.pods.push_back(member);
      gang.members.push_back(place->second);
    }
    ganged.gangs.push_back(std::move(gang));
  }
  return ganged;
}

bool DropReservationsOfBrokenGangs(const std::vector<Pod>& all,
                                   const cluster::ClusterContext& context,
                                   SliceReservations& reservations) {
  const auto names = NamesOf(reservations.all(), [](const auto& item) { return item.second.pod; });
  if (names.empty()) return false;
  const Gangs gangs = GangsAmong(all);
  bool dropped = false;
  for (const std::string& name : names) {
    const std::vector<Pod> members = gangs.Of(name);
    const planning::Gang gang = Describe(name, members, context, reservations);
    if (gang.problem.empty() && gang.Lacking() <= 0) continue;
    for (const Pod& member : members) {
      const std::string key = member->Key();
      if (!reservations.Holds(key) || !member->nominated_node.empty()) continue;
      reservations.Drop(key);
      dropped = true;
    }
  }
  return dropped;
}

reconcile::RunnerOptions WatchingGangs(reconcile::RunnerOptions options) {
  options.watch_context = true;
  options.context_kinds = {"PodGroup", "Workload", cluster::kElasticQuota, cluster::kCompositeQuota,
                           dra::kClaimKind};
  return options;
}

}  // namespace nos::controllers
