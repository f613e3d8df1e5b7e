// Finds nodes for the members of a gang and the victims to evict for them. It simulates, member by
// member, the decisions after the evictions, in the same order and by the same rules.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "controllers/pending/assumed.h"
#include "controllers/scheduler/internal.h"
#include "scheduling/gang_domains.h"
#include "scheduling/rehearsal.h"

namespace nos::controllers {

using scheduling::Preemption;

namespace {

bool AskForSlices(const std::vector<std::shared_ptr<const cluster::Pod>>& pods,
                  const cluster::ClusterSnapshot& snapshot) {
  const bool whole = GivesWhole(snapshot);
  return std::ranges::any_of(pods, [&](const auto& pod) { return AsksForSlices(*pod, whole); });
}

}  // namespace

class Scheduler::RoomSearch {
 public:
  // `as_cut`: all plans are done and free GPUs are partitioned as needed, but nothing is evicted.
  RoomSearch(Scheduler& scheduler, const Gang& gang, Time now, bool as_cut)
      : scheduler_(scheduler),
        gang_(gang),
        now_(now),
        as_cut_(as_cut),
        rehearsal_(scheduler.engine_.Rehearse(SnapshotFor(scheduler, as_cut))) {
    for (const Pod& member : scheduler.gangs_.Of(gang.name)) members_.insert(member->Key());
    for (const Pod& member : gang.waiting) waiting_.insert(member->Key());
  }

  GangRoom Run() {
    for (const Pod& member : gang_.waiting) {
      room_.why_not = WhatItAwaits(member);
      if (!room_.why_not.empty()) return std::move(room_);
    }
    if (std::ranges::none_of(gang_.waiting, [&](const Pod& member) { return MayTake(member); })) {
      return std::move(room_);
    }
    if (AskForSlices(gang_.waiting, scheduler_.engine_.snapshot())) {
      for (const std::string& name : scheduler_.SilentNodes()) rehearsal_.RemoveNode(name);
    }
    if (!as_cut_) scheduler_.measures_.LooksForVictims();
    std::vector<Pod> left = gang_.waiting;
    size_t before = 0;
    do {
      before = room_.places.size();
      left = FindForEach(left);
    } while (room_.places.size() > before);
    return std::move(room_);
  }

 private:
  // Members that are alike, and the search result for them.
  struct Kind {
    bool hopeless = false;
    // Nominations of other pods that must stay possible.
    std::optional<scheduling::Promises> promises = {};
    std::vector<Preemption> candidates = {};
  };

  const SchedulerProfile& ProfileOf(const Pod& member) const {
    return *scheduler_.ProfileFor(*member);
  }
  bool HasQuota(const Pod& member) const {
    return scheduler_.HasQuota(*ProfileOf(member).framework, *member);
  }
  // The framework that places the member.
  const Framework& FrameworkOf(const Pod& member) const {
    const SchedulerProfile& profile = ProfileOf(member);
    return as_cut_ && profile.cutting != nullptr ? *profile.cutting : *profile.framework;
  }
  static cluster::ClusterSnapshot SnapshotFor(const Scheduler& scheduler, bool as_cut) {
    cluster::ClusterSnapshot snapshot = scheduler.engine_.snapshot();
    if (as_cut) FinishPlans(snapshot);
    return snapshot;
  }
  // Some pod may be a victim for it.
  bool MayTake(const Pod& member) const {
    return scheduler_.MayMakeRoom(ProfileOf(member), *member);
  }

  std::string WhatItAwaits(const Pod& member) {
    if (!HasQuota(member)) {
      return scheduler_.WhatItAwaits(*ProfileOf(member).framework, member, now_);
    }
    return scheduler_.WhatItAwaits(member, Leaving(), now_);
  }

  // Evicted pods. The first call removes them from the simulated cluster.
  const std::vector<Pod>& Leaving() {
    if (leaving_) return *leaving_;
    leaving_ = scheduler_.Leaving();
    for (const Pod& pod : *leaving_) {
      rehearsal_.Vacate(pod, scheduler_.engine_.FindPlaced(pod->Key())->node);
    }
    room_.waits = !leaving_->empty();
    return *leaving_;
  }

  // Adds the rest of their gangs, which is useless without them and is evicted, too.
  std::vector<Pod> WithRestOfGangs() {
    std::vector<Pod> leaving = Leaving();
    if (as_cut_) return leaving;
    for (const Pod& pod : scheduler_.RestOfGangs(leaving)) {
      if (members_.contains(pod->Key())) continue;
      rehearsal_.Evict(pod, scheduler_.engine_.FindPlaced(pod->Key())->node);
      room_.victims.push_back(pod);
      leaving.push_back(pod);
    }
    return leaving;
  }

  // False: a Reserve plugin fails for it.
  bool Take(const Pod& member, const Preemption& place) {
    const cluster::ClusterSnapshot before = rehearsal_.snapshot();
    const Framework& framework = FrameworkOf(member);
    for (const Pod& victim : place.victims) {
      const auto* placed = scheduler_.engine_.FindPlaced(victim->Key());
      if (placed != nullptr) rehearsal_.Evict(victim, placed->node);
    }
    if (reclaim_) reclaim_->Carry(place, before, member);
    std::ranges::copy(place.victims, std::back_inserter(room_.victims));
    if (!rehearsal_.Place(framework, member, place.node)) return false;
    room_.places.emplace_back(member, place.node);
    return true;
  }

  // Returns members without a node that may find one after others have theirs. Empty if continuing
  // is pointless.
  std::vector<Pod> FindForEach(const std::vector<Pod>& members) {
    std::vector<Pod> refused;
    size_t left = members.size();
    for (const Pod& member : members) {
      const size_t found = gang_.placed + room_.places.size();
      const size_t may_find = left-- + refused.size();
      if (found >= gang_.least || found + may_find < gang_.least) return {};
      const bool may_follow = scheduling::MayFollow(*member);
      const auto place = may_follow ? FindUnlessInVain(member) : FindFor(member);
      if (place && !Take(member, *place)) return {};
      if (!place && may_follow) refused.push_back(member);
    }
    return refused;
  }

  // Skips members like one that found nothing, until another member is placed.
  std::optional<Preemption> FindUnlessInVain(const Pod& member) {
    std::string kind = KindOfPreemptor(*member);
    const auto last = in_vain_.find(kind);
    if (last != in_vain_.end() && last->second == room_.places.size()) return std::nullopt;
    auto place = FindFor(member);
    if (!place) in_vain_.insert_or_assign(std::move(kind), room_.places.size());
    return place;
  }

  std::optional<Preemption> FindFor(const Pod& member) {
    if (HasQuota(member)) return FindByQuota(member);
    Kind& kind = kinds_[KindOfPreemptor(*member)];
    if (kind.hopeless) return std::nullopt;
    if (!kind.promises) kind.promises = scheduler_.engine_.PromisesFor(*member, waiting_);
    const cluster::NodeInfo* node = rehearsal_.FindNode(
        FrameworkOf(member), member, *kind.promises, scheduler_.engine_.NomineeNode(member->Key()));
    if (node != nullptr) return Preemption{node->node->meta.name, {}, 0};
    std::optional<Preemption> found;
    if (!as_cut_ && MayTake(member)) found = FindVictims(member, kind);
    kind.hopeless = !found && HasNoPositiveInterPodConstraints(*member);
    return found;
  }

  std::optional<Preemption> FindByQuota(const Pod& member) {
    const auto& framework = *ProfileOf(member).framework;
    if (!reclaim_) {
      reclaim_.emplace(scheduler_.MakeReclaim(framework, *member, WithRestOfGangs(), waiting_));
      reclaim_->Spare(members_);
    }
    reclaim_->Heed(scheduler_.PromisesToHeed(*member, waiting_));
    const std::string nominee = scheduler_.engine_.NomineeNode(member->Key());
    const cluster::ClusterSnapshot& snapshot = rehearsal_.snapshot();
    if (as_cut_) {
      auto found = reclaim_->Find(FrameworkOf(member), snapshot, member, nominee);
      return found && found->victims.empty() ? std::move(found) : std::nullopt;
    }
    auto [found, awaits_cut] = FindBy(ProfileOf(member), *reclaim_, snapshot, member, nominee);
    if (found && !found->victims.empty() && !MayTake(member)) return std::nullopt;
    if (found && awaits_cut) room_.awaits_cuts.insert(found->node);
    return std::move(found);
  }

  // Uses the candidates found for the last member of this kind while they hold, else searches
  // again.
  std::optional<Preemption> FindVictims(const Pod& member, Kind& kind) {
    while (!kind.candidates.empty()) {
      const auto best = std::ranges::min_element(kind.candidates, scheduling::IsGentler);
      auto again = Candidates(member, *kind.promises, best->node);
      if (again.empty()) {
        kind.candidates.erase(best);
      } else if (scheduling::IsGentler(*best, again.front())) {
        *best = std::move(again.front());
      } else {
        return std::move(again.front());
      }
    }
    kind.candidates = Candidates(member, *kind.promises, "");
    const auto best = std::ranges::min_element(kind.candidates, scheduling::IsGentler);
    return best == kind.candidates.end() ? std::nullopt : std::optional(*best);
  }

  // Candidates on this node. Empty: on any node.
  std::vector<Preemption> Candidates(const Pod& member, const scheduling::Promises& promises,
                                     const std::string& node) const {
    const SchedulerProfile& profile = ProfileOf(member);
    const auto may_go = [&](const cluster::Pod& other) {
      return scheduler_.MayEvict(profile, *member, other);
    };
    scheduling::EachThat rule(may_go, node);
    return scheduling::PreemptionCandidates(*profile.framework, rehearsal_.snapshot(), *member,
                                            *profile.preemption, &rule, promises);
  }

  Scheduler& scheduler_;
  const Gang& gang_;
  const Time now_;
  const bool as_cut_;
  scheduling::Rehearsal rehearsal_;
  std::set<std::string> members_, waiting_;  // keys of all members, and of those without a node
  std::optional<std::vector<Pod>> leaving_;
  std::optional<scheduling::Reclaim> reclaim_;
  std::map<std::string, Kind> kinds_;
  std::map<std::string, size_t> in_vain_;  // by kind: the number of places at the last failure
  GangRoom room_;
};

Scheduler::GangRoom Scheduler::FindRoom(const Gang& gang, Time now) {
  GangRoom room = RoomSearch(*this, gang, now, false).Run();
  const Pod& first = gang.waiting.front();
  const bool for_quota = HasQuota(*ProfileFor(*first)->framework, *first);
  if (!for_quota || !AskForSlices(gang.waiting, engine_.snapshot())) return room;
  const auto is_enough = [&](const GangRoom& found) {
    return gang.placed + found.places.size() >= gang.least;
  };
  const auto awaits_cuts = [&] {
    const bool others_go = !room.victims.empty() || room.waits;
    return !others_go && !room.awaits_cuts.empty() && is_enough(room);
  };
  GangRoom for_cuts;
  for_cuts.why_not = kAwaitsCut;
  for (int i = 0; i < kMaxSilentAtOnce && awaits_cuts(); ++i) {
    if (HasPatience(first->Key(), now)) return for_cuts;
    for (const std::string& node : room.awaits_cuts) CountAsSilent(node);
    room = RoomSearch(*this, gang, now, false).Run();
  }
  if (room.victims.empty()) return room;
  const bool spared = is_enough(RoomSearch(*this, gang, now, true).Run());
  return spared && HasPatience(first->Key(), now) ? std::move(for_cuts) : std::move(room);
}

}  // namespace nos::controllers
