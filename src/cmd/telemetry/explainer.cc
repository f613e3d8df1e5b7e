#include "cmd/telemetry/explainer.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "cluster/gpu_requirements.h"
#include "controllers/gangs.h"
#include "planning/slice_choice.h"
#include "scheduling/engine.h"
#include "scheduling/explain_gang.h"
#include "scheduling/explain_promises.h"
#include "scheduling/framework.h"
#include "scheduling/pod_state.h"
#include "scheduling/quota_plugin.h"
#include "scheduling/reclaim.h"
#include "scheduling/remedies.h"
#include "scheduling/summary.h"

namespace nos::cmd {
namespace {

// The gang that the scheduler places together with the pod; nullopt if there is none. `problem`:
// why the gang is not known.
std::optional<scheduling::Together> GroupOf(const ClusterObjects& objects, const cluster::Pod& pod,
                                            const Deciders& deciders, std::string& problem) {
  const std::string gang = controllers::GangOf(pod);
  if (gang.empty() || !objects.context) return std::nullopt;
  const bool known = controllers::KnowsGroups(pod, *objects.context);
  if (objects.is_dump && !known) return std::nullopt;  // LeaveOutMissing has reported it already
  const controllers::GangSize size = controllers::SizeOfGang(pod, *objects.context);
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
    const bool gated = scheduling::IsPending(*member) && !member->scheduling_gates.empty();
    if (gated && deciders.AreServedTogether(*member, pod)) group.gated.push_back(member);
  }
  return group;
}

// The pod and all members of its gang that are bound. A pod that is being deleted counts no more in
// its gang.
scheduling::EvictionUnit UnitOf(const SharedPod& pod, const ClusterObjects& objects) {
  const std::string gang = controllers::GangOf(*pod);
  if (gang.empty() || !objects.context || pod->meta.deleted) return {pod};
  if (controllers::SizeOfGang(*pod, *objects.context).least <= 1) return {pod};
  scheduling::EvictionUnit unit{pod};
  for (const SharedPod& other : objects.pods) {
    const bool counts = !other->node_name.empty() && !other->Finished() && !other->meta.deleted;
    if (counts && other != pod && controllers::GangOf(*other) == gang) unit.push_back(other);
  }
  return unit;
}

// Victims of a reclaim that the pod's quota guarantees. `others`: charge of members of its gang
// that have a node in the snapshot.
std::optional<scheduling::Preemption> FindReclaim(const ClusterObjects& objects,
                                                  const SharedPod& pod, scheduling::Engine& engine,
                                                  cluster::ClusterSnapshot snapshot,
                                                  const scheduling::Profile& profile,
                                                  const quota::Amounts& others) {
  std::vector<SharedPod> leaving;
  for (const SharedPod& other : objects.pods) {
    if (!scheduling::EndsByPreemption(*other)) continue;
    if (snapshot.Vacate(*other, other->node_name).ok()) leaving.push_back(other);
  }
  const auto sees_to_it = [&](const std::string&) { return leaving.empty(); };
  const auto balance = [&](std::string_view node) {
    quota::Balance with = engine.BalanceToReclaim(*pod, {}, sees_to_it, node);
    if (const auto account = with.AccountOf(pod->meta.ns)) with.Add(*account, others);
    return with;
  };
  scheduling::Reclaim reclaim(engine.ledger(), balance, profile.framework->quotas()->options(),
                              [&](const SharedPod& victim) { return UnitOf(victim, objects); });
  reclaim.SetPromises(engine.PromisesFor(*pod));
  reclaim.CountGone(leaving);
  auto found = reclaim.Find(*profile.framework, snapshot, pod, pod->nominated_node);
  return found ? found : reclaim.Find(profile.Partitioning(), snapshot, pod, pod->nominated_node);
}

}  // namespace

void FillIn(scheduling::Engine& engine, const ClusterObjects& objects,
            const scheduling::Profile& profile, const std::set<std::string>& members) {
  const auto* quotas = profile.framework->quotas();
  if (quotas != nullptr) engine.SetChargeRules(quotas->options().charges);
  if (quotas != nullptr && objects.context) {
    engine.ChangeContext([&](cluster::ClusterContext& context) { context = *objects.context; });
  }
  for (const auto& node : objects.nodes) engine.SetNode(node);
  for (const SharedPod& pod : objects.pods) {
    engine.SetPod(pod);
    if (scheduling::EndsByPreemption(*pod)) engine.SetLeaving(pod->Key(), true);
  }
  for (const SharedPod& pod : objects.pods) {
    const bool counts = scheduling::IsPending(*pod) && !members.contains(pod->Key()) &&
                        engine.snapshot().Find(pod->nominated_node) != nullptr;
    if (counts) engine.Nominate(pod, pod->nominated_node);
  }
}

namespace {

scheduling::Explanation ExplainAsking(const ClusterObjects& objects, const SharedPod& pod,
                                      const Deciders& deciders, const gpu::Catalogue& catalogue,
                                      const std::string& reader);

// No slice meets the pod's GPU requirements.
scheduling::Explanation Unmet(const ClusterObjects& objects, const cluster::Pod& pod,
                              const std::string& refusal) {
  scheduling::Explanation why;
  why.pod = pod.Key();
  why.demand = scheduling::DemandText(pod);
  why.priority = pod.priority;
  why.diagnosis.nodes = static_cast<int>(objects.nodes.size());
  why.impossible.emplace(scheduling::codes::kNoModelHasProfile, refusal);
  why.remedy_code = scheduling::remedies::kRequestLess;
  why.remedy = "require less in the annotations nos.nebuly.com/need-*: " + refusal;
  return why;
}

}  // namespace

scheduling::Explanation ExplainWaiting(const ClusterObjects& objects, const SharedPod& pod,
                                       const Deciders& deciders, const gpu::Catalogue& catalogue,
                                       const std::string& reader) {
  if (!pod->meta.annotations.contains(cluster::kNeedMemory)) {
    return ExplainAsking(objects, pod, deciders, catalogue, reader);
  }
  // The pod is explained as if it requested the slice that meets its GPU requirements.
  auto snapshot = cluster::ClusterSnapshot::Build(objects.nodes, objects.pods, catalogue);
  if (objects.context) snapshot.ChangeContext() = *objects.context;
  const planning::NeedAnswer answer =
      planning::AnswerNeed(*pod, snapshot, deciders.frameworks().For(*pod), {});
  if (!answer.refusal.empty()) return Unmet(objects, *pod, answer.refusal);
  if (!answer.choice) return ExplainAsking(objects, pod, deciders, catalogue, reader);
  cluster::Pod asks = planning::WithSlice(*pod, answer);
  asks.promised.clear();
  const auto asking = std::make_shared<const cluster::Pod>(std::move(asks));
  ClusterObjects with = objects;
  std::ranges::replace(with.pods, pod, asking);
  scheduling::Explanation why = ExplainAsking(with, asking, deciders, catalogue, reader);
  why.requirements = fmt::format("met by {}: {}", answer.choice->resource, answer.choice->Reason());
  return why;
}

namespace {

scheduling::Explanation ExplainAsking(const ClusterObjects& objects, const SharedPod& pod,
                                      const Deciders& deciders, const gpu::Catalogue& catalogue,
                                      const std::string& reader) {
  // 1. Build the snapshot and find the members of the gang, which are placed together with the pod.
  auto snapshot = cluster::ClusterSnapshot::Build(objects.nodes, objects.pods, catalogue);
  if (objects.context) snapshot.ChangeContext() = *objects.context;
  std::string problem;
  auto group = GroupOf(objects, *pod, deciders, problem);
  std::set<std::string> members;
  if (group) {
    for (const SharedPod& member : group->waiting) members.insert(member->Key());
  }
  // 2. Restore nominations and evictions, as a running scheduler remembers them. Nominations of
  //    pods that precede this one take their capacity.
  const scheduling::Profile& profile = deciders.of_pod();
  scheduling::Engine engine(catalogue);
  FillIn(engine, objects, profile, members);
  std::set<std::string> first;
  for (const auto& [node, others] : engine.PromisesFor(*pod)) {
    for (const SharedPod& other : others) first.insert(other->Key());
  }
  const auto goes_first = [&](const cluster::Pod& other) { return first.contains(other.Key()); };
  const auto with = scheduling::WithPromises(snapshot, objects.pods, *pod, goes_first, members);
  // 3. Explain with the quota as it is after current evictions.
  const quota::Balance balance = engine.WithoutLeaving(engine.BalanceFor(*pod), *pod);
  scheduling::ExplainInput input{*profile.framework,
                                 profile.Partitioning(),
                                 with,
                                 *pod,
                                 profile.preemption,
                                 problem,
                                 false,
                                 reader,
                                 &balance};
  input.alternatives = true;
  const bool reclaims = profile.reclaims && balance.AccountOf(pod->meta.ns).has_value();
  const auto reclaim_beside = [&](const SharedPod& member, const cluster::ClusterSnapshot& beside,
                                  const quota::Amounts& others) {
    const bool may = reclaims && member->preemption_policy != "Never";
    return may ? FindReclaim(objects, member, engine, beside, profile, others) : std::nullopt;
  };
  const bool alone = !group || !members.contains(pod->Key());
  if (alone) {
    if (reclaims) input.reclaim = [&] { return reclaim_beside(pod, with, {}); };
    return scheduling::Explain(input);
  }
  if (reclaims) group->reclaim = reclaim_beside;
  return scheduling::ExplainTogether(input, *group);
}

}  // namespace

}  // namespace nos::cmd
