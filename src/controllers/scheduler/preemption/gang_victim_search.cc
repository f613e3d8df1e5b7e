#include "controllers/scheduler/preemption/gang_victim_search.h"

#include <algorithm>
#include <iterator>

#include "controllers/pending/assumed.h"
#include "controllers/scheduler/pods.h"
#include "scheduling/gang_domains.h"

namespace nos::controllers {
namespace {

cluster::ClusterSnapshot Start(const scheduling::Engine& engine, bool partitioned) {
  cluster::ClusterSnapshot snapshot = engine.snapshot();
  if (partitioned) FinishPlans(snapshot);
  return snapshot;
}

}  // namespace

bool AskForSlices(const std::vector<std::shared_ptr<const cluster::Pod>>& pods,
                  const cluster::ClusterSnapshot& snapshot) {
  const bool whole = GivesWhole(snapshot);
  return std::ranges::any_of(pods, [&](const auto& pod) { return AsksForSlices(*pod, whole); });
}

GangVictimSearch::GangVictimSearch(scheduling::Engine& engine, const Profiles& profiles,
                                   const EvictionPolicy& policy, const TerminatingPods& terminating,
                                   const ForeignNominations& foreign, AgentWaits& waits,
                                   VictimSearch& victims, Input input)
    : engine_(engine),
      profiles_(profiles),
      policy_(policy),
      terminating_(terminating),
      foreign_(foreign),
      waits_(waits),
      victims_(victims),
      input_(std::move(input)),
      rehearsal_(engine.Rehearse(Start(engine, input_.partitioned))) {
  for (const Pod& member : input_.gang.waiting) waiting_.insert(member->Key());
}

GangPlan GangVictimSearch::Run() {
  const std::vector<Pod>& waiting = input_.gang.waiting;
  for (const Pod& member : waiting) {
    plan_.why_not = WhyWait(member);
    if (!plan_.why_not.empty()) return std::move(plan_);
  }
  if (std::ranges::none_of(waiting, [&](const Pod& member) { return MayPreempt(member); })) {
    return std::move(plan_);
  }
  if (AskForSlices(waiting, engine_.snapshot())) {
    for (const std::string& name : waits_.SilentNodes(*waiting.front()))
      rehearsal_.RemoveNode(name);
  }
  plan_.searched = true;
  std::vector<Pod> left = waiting;
  size_t before = 0;
  do {
    before = plan_.places.size();
    left = FindForEach(left);
  } while (plan_.places.size() > before);
  return std::move(plan_);
}

bool GangVictimSearch::HasQuota(const Pod& member) const {
  return policy_.HasQuota(*profiles_.Of(*member).framework, *member);
}

// The framework that places the member.
const scheduling::Framework& GangVictimSearch::FrameworkOf(const Pod& member) const {
  const SchedulerProfile& profile = profiles_.Of(*member);
  return input_.partitioned ? profile.partitioning() : *profile.framework;
}

// Some pod may be a victim for it.
bool GangVictimSearch::MayPreempt(const Pod& member) const {
  return policy_.MayPreempt(profiles_.Of(*member), *member);
}

std::string GangVictimSearch::WhyWait(const Pod& member) {
  if (!HasQuota(member)) return victims_.WhyWait(member, input_.now);
  return victims_.WhyWait(member, Leaving(), input_.now);
}

// Evicted pods. The first call removes them from the simulated cluster.
const std::vector<GangVictimSearch::Pod>& GangVictimSearch::Leaving() {
  if (leaving_) return *leaving_;
  leaving_ = terminating_.All();
  for (const Pod& pod : *leaving_) {
    rehearsal_.Vacate(pod, engine_.FindPlaced(pod->Key())->node);
  }
  plan_.waits = !leaving_->empty();
  return *leaving_;
}

// Adds the rest of their gangs, which is useless without them and is evicted, too.
std::vector<GangVictimSearch::Pod> GangVictimSearch::WithRestOfGangs() {
  std::vector<Pod> leaving = Leaving();
  if (input_.partitioned) return leaving;
  for (const Pod& pod : terminating_.RestOfGangs(leaving)) {
    if (input_.members.contains(pod->Key())) continue;
    rehearsal_.Evict(pod, engine_.FindPlaced(pod->Key())->node);
    plan_.victims.push_back(pod);
    leaving.push_back(pod);
  }
  return leaving;
}

// False: a Reserve plugin fails for it.
bool GangVictimSearch::Take(const Pod& member, const Preemption& place) {
  const cluster::ClusterSnapshot before = rehearsal_.snapshot();
  const scheduling::Framework& framework = FrameworkOf(member);
  for (const Pod& victim : place.victims) {
    const auto* placed = engine_.FindPlaced(victim->Key());
    if (placed != nullptr) rehearsal_.Evict(victim, placed->node);
  }
  if (reclaim_) reclaim_->Carry(place, before, member);
  std::ranges::copy(place.victims, std::back_inserter(plan_.victims));
  if (!rehearsal_.Place(framework, member, place.node)) return false;
  plan_.places.emplace_back(member, place.node);
  return true;
}

// Returns members without a node that may find one after others have theirs. Empty if continuing is
// pointless.
std::vector<GangVictimSearch::Pod> GangVictimSearch::FindForEach(const std::vector<Pod>& members) {
  std::vector<Pod> refused;
  size_t left = members.size();
  for (const Pod& member : members) {
    const size_t found = input_.gang.placed + plan_.places.size();
    const size_t may_find = left-- + refused.size();
    if (found >= input_.gang.least || found + may_find < input_.gang.least) return {};
    const bool may_follow = scheduling::MayFollow(*member);
    const auto place = may_follow ? FindUnlessInVain(member) : FindFor(member);
    if (place && !Take(member, *place)) return {};
    if (!place && may_follow) refused.push_back(member);
  }
  return refused;
}

// Skips members like one that found nothing, until another member is placed.
std::optional<scheduling::Preemption> GangVictimSearch::FindUnlessInVain(const Pod& member) {
  std::string kind = KindOfPreemptor(*member);
  const auto last = in_vain_.find(kind);
  if (last != in_vain_.end() && last->second == plan_.places.size()) return std::nullopt;
  auto place = FindFor(member);
  if (!place) in_vain_.insert_or_assign(std::move(kind), plan_.places.size());
  return place;
}

std::optional<scheduling::Preemption> GangVictimSearch::FindFor(const Pod& member) {
  if (HasQuota(member)) return FindByQuota(member);
  Kind& kind = kinds_[KindOfPreemptor(*member)];
  if (kind.hopeless) return std::nullopt;
  const scheduling::Promises& promises =
      kind.promises ? *kind.promises
                    : kind.promises.emplace(engine_.PromisesFor(*member, waiting_));
  const cluster::NodeInfo* node = rehearsal_.FindNode(FrameworkOf(member), member, promises,
                                                      engine_.NomineeNode(member->Key()));
  if (node != nullptr) return Preemption{node->node->meta.name, {}, 0};
  std::optional<Preemption> found;
  if (!input_.partitioned && MayPreempt(member)) found = FindVictims(member, kind, promises);
  kind.hopeless = !found && HasNoPositiveInterPodConstraints(*member);
  return found;
}

std::optional<scheduling::Preemption> GangVictimSearch::FindByQuota(const Pod& member) {
  const SchedulerProfile& profile = profiles_.Of(*member);
  if (!reclaim_) {
    reclaim_.emplace(
        victims_.MakeReclaim(*profile.framework, *member, WithRestOfGangs(), waiting_, input_.now));
    reclaim_->Spare(input_.members);
  }
  reclaim_->SetPromises(foreign_.ToRespect(*member, waiting_));
  const std::string nominee = engine_.NomineeNode(member->Key());
  const cluster::ClusterSnapshot& snapshot = rehearsal_.snapshot();
  if (input_.partitioned) {
    auto found = reclaim_->Find(FrameworkOf(member), snapshot, member, nominee);
    return found && found->victims.empty() ? std::move(found) : std::nullopt;
  }
  ReclaimResult result = RunReclaim(profile, *reclaim_, snapshot, member, nominee);
  if (result.found && !result.found->victims.empty() && !MayPreempt(member)) return std::nullopt;
  if (result.found && result.awaits_partitioning) {
    plan_.awaits_partitioning.insert(result.found->node);
  }
  return std::move(result.found);
}

// Uses the candidates found for the last member of this kind while they hold, else searches again.
std::optional<scheduling::Preemption> GangVictimSearch::FindVictims(
    const Pod& member, Kind& kind, const scheduling::Promises& promises) {
  while (!kind.candidates.empty()) {
    const auto best = std::ranges::min_element(kind.candidates, scheduling::IsGentler);
    auto again = Candidates(member, promises, best->node);
    if (again.empty()) {
      kind.candidates.erase(best);
    } else if (scheduling::IsGentler(*best, again.front())) {
      *best = std::move(again.front());
    } else {
      return std::move(again.front());
    }
  }
  kind.candidates = Candidates(member, promises, "");
  const auto best = std::ranges::min_element(kind.candidates, scheduling::IsGentler);
  return best == kind.candidates.end() ? std::nullopt : std::optional(*best);
}

// Candidates on this node. Empty: on any node.
std::vector<scheduling::Preemption> GangVictimSearch::Candidates(
    const Pod& member, const scheduling::Promises& promises, const std::string& node) const {
  const SchedulerProfile& profile = profiles_.Of(*member);
  if (!profile.preemption) return {};
  const auto may_go = [&](const cluster::Pod& other) {
    return policy_.MayEvict(profile, *member, other);
  };
  scheduling::EachThat rule(may_go, node);
  return scheduling::PreemptionCandidates(*profile.framework, rehearsal_.snapshot(), *member,
                                          *profile.preemption, &rule, promises);
}

}  // namespace nos::controllers
