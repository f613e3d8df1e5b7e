// Places gangs (gangs.h). All pending members are decided at once, and kept only if enough of them
// find a node. A pending gang holds nothing, so two gangs cannot block each other. Placed members
// are bound when enough of them are ready, and released when too few are left for any reason.
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "controllers/scheduler/internal.h"
#include "scheduling/explain_promises.h"
#include "scheduling/pod_state.h"

namespace nos::controllers {

namespace {

// Larger gangs get no count in the message: each new member would rewrite the conditions of all.
constexpr int kMaxCounted = 100;

std::string WhyTooFew(size_t there, int least) {
  if (least > kMaxCounted) {
    return fmt::format("fewer than the {} pods that are placed together are there", least);
  }
  return fmt::format("{} of the {} pods that are placed together are there", there, least);
}

size_t AtLeast(const GangSize& size) { return static_cast<size_t>(std::max(size.least, 1)); }

}  // namespace

// False: the pod belongs to no gang and is decided alone.
bool Scheduler::DecideWithGang(const Pod& pod, kube::Client& client, Time now) {
  const std::string gang = GangOf(*pod);
  const auto around = engine_.snapshot().ShareContext();
  if (gang.empty() || around == nullptr) return false;
  const GangSize size = SizeOfGang(*pod, *around);
  if (size.problem.empty() && size.least <= 1) return false;
  size_t placed = 0;
  std::vector<Pod> waiting;
  for (const Pod& member : gangs_.Of(gang)) {
    const std::string key = member->Key();
    if (IsPlacedInGang(*member) || bindings_.contains(key)) {
      ++placed;
    } else if (const auto taken = queue_.TakeThis(key)) {
      waiting.push_back(*taken);
    }
  }
  const size_t there = placed + waiting.size();
  if (size.problem.empty() && there >= AtLeast(size)) {
    PlaceGang({gang, AtLeast(size), placed, std::move(waiting)}, client, now);
    return true;
  }
  const std::string why = size.problem.empty() ? WhyTooFew(there, size.least) : size.problem;
  LetSleep(waiting, {&gang_scheduling_}, now);
  TakeBackPromises(waiting, client, now);
  RefuseGang(waiting, fmt::format("{}: {}", gang, why), now);
  return true;
}

void Scheduler::PlaceGang(const Gang& gang, kube::Client& client, Time now) {
  GangTry tried;
  const auto place = [&](const Pod& member, scheduling::Diagnosis& diagnosis) {
    measures_.Begin(*member);
    return Place(member, diagnosis, now);
  };
  TryEach(gang, gang.waiting, place, tried);
  if (!tried.refusals.empty()) TryFurther(gang, tried, now);
  if (!IsEnough(gang, tried)) {
    TakeBackAll(tried);
    return RefuseWhole(gang, gang.placed + tried.chosen.size(), tried.refusals, client, now);
  }
  for (const auto& [member, diagnosis] : tried.refusals) {
    Refuse(*ProfileFor(*member), member, diagnosis, client, now);
  }
  for (const std::string& key : tried.chosen) {
    const auto binding = bindings_.find(key);
    if (binding != bindings_.end()) Commit(binding->second, client, now);
  }
}

void Scheduler::TryEach(const Gang& gang, const std::vector<Pod>& members, Placer place,
                        GangTry& tried) {
  for (const Pod& member : members) TryOne(gang, member, place, tried);
}

void Scheduler::TryOne(const Gang& gang, const Pod& member, Placer place, GangTry& tried) {
  scheduling::Diagnosis diagnosis;
  if (!place(member, diagnosis)) {
    tried.refusals.emplace_back(member, std::move(diagnosis));
    return;
  }
  const auto binding = bindings_.find(member->Key());
  if (binding == bindings_.end()) {
    tried.gave_up = true;
    return;
  }
  binding->second.gang = gang.name;
  binding->second.least = gang.least;
  binding->second.held_back = true;
  tried.chosen.push_back(member->Key());
}

void Scheduler::TakeBackAll(const GangTry& tried) {
  for (auto key = tried.chosen.rbegin(); key != tried.chosen.rend(); ++key) TakeBack(*key);
}

// Only `found` of its pods have a node.
void Scheduler::RefuseWhole(const Gang& gang, size_t found, const Refusals& refusals,
                            kube::Client& client, Time now) {
  // The minimum size may shrink, or the guaranteed quota may grow.
  std::set<const scheduling::Plugin*> by{&gang_scheduling_, &quota_terms_};
  bool by_nobody = false;  // no node was available, so no plugin refused one
  for (const auto& [member, diagnosis] : refusals) {
    by.insert(diagnosis.by.begin(), diagnosis.by.end());
    by_nobody = by_nobody || diagnosis.by.empty();
  }
  if (by_nobody) by.clear();  // anything may help
  LetSleep(gang.waiting, {by.begin(), by.end()}, now);
  std::string why = fmt::format("{}: {} of its pods find a node together, and {} must", gang.name,
                                found, gang.least);
  if (!refusals.empty()) {
    const auto& [member, diagnosis] = refusals.front();
    why += fmt::format("; {}: {}", member->Key(), diagnosis.ToString());
  }
  const std::string preemption = PreemptForGang(gang, client, now);
  if (!preemption.empty()) why += " preemption: " + preemption;
  RefuseGang(gang.waiting, why, now);
}

// Must precede evictions for these pods, because evictions may wake them.
void Scheduler::LetSleep(const std::vector<Pod>& pods,
                         const std::vector<const scheduling::Plugin*>& by, Time now) {
  for (const Pod& pod : pods) queue_.Refused(pod, by, now);
}

void Scheduler::RefuseGang(const std::vector<Pod>& pods, const std::string& why, Time now) {
  for (const Pod& pod : pods) {
    measures_.End(*pod, SchedulerMeasures::Result::kUnschedulable);
    Tell({pod, "Unschedulable", why, ""}, now);
  }
}

// Evicts for all required members or for none. In the second case nominations are removed, too.
std::string Scheduler::PreemptForGang(const Gang& gang, kube::Client& client, Time now) {
  for (const Pod& member : gang.waiting) EvictAgain(member, client, now);
  const GangRoom room = FindRoom(gang, now);
  if (!room.why_not.empty()) return room.why_not;
  const bool waits = room.victims.empty() && room.waits;
  if ((room.victims.empty() && !waits) || gang.placed + room.places.size() < gang.least) {
    const Pod& first = gang.waiting.front();
    const bool unseen = std::ranges::any_of(gang.waiting, [&](const Pod& member) {
      return MayNotBeSeenYet(engine_.NomineeNode(member->Key()));
    });
    if (unseen && HasPatience(first->Key(), now)) return std::string(scheduling::kAwaitsAgent);
    TakeBackPromises(gang.waiting, client, now);
    return WhyNeverTakes(*gang.waiting.front());
  }
  for (const auto& [member, node] : room.places) patience_.erase(member->Key());
  MakeRoom(room.places, room.victims, client, now);
  std::set<std::string> nodes;
  for (const auto& [member, node] : room.places) nodes.insert(node);
  for (const std::string& node : nodes) {
    TakeBackPromises(LesserNominated(*gang.waiting.front(), node), client, now);
  }
  if (waits) return "the pods in its way are being evicted.";
  return fmt::format("{} pods of lower priority are evicted.", room.victims.size());
}

void Scheduler::TakeInMember(const Pod& before, const Pod& after, Time now) {
  gangs_.Set(before, after);
  if (before == nullptr) return;
  const std::string gang = GangOf(*before);
  if (gang.empty()) return;
  const std::string key = before->Key();
  const bool stays = after != nullptr && CountsInGang(*after) && GangOf(*after) == gang;
  const bool had_place = IsPlacedInGang(*before), has_place = stays && IsPlacedInGang(*after);
  const auto found = bindings_.find(key);
  const bool was_chosen = found != bindings_.end() && found->second.gang == gang &&
                          found->second.stage == Binding::Stage::kPreparing;
  if (!stays && was_chosen) {
    GiveUp(key, fmt::format("it has left {}", gang), now);
  } else if (!stays || had_place != has_place) {
    MarkGangDirty(gang, has_place ? "" : fmt::format("{} has left it", key));
  }
}

void Scheduler::MarkGangDirty(const std::string& gang, const std::string& why) {
  std::string& reason = dirty_gangs_[gang];
  if (reason.empty()) reason = why;
}

void Scheduler::LookAtGangs(kube::Client& client, Time now) {
  while (!dirty_gangs_.empty()) {
    const auto next = dirty_gangs_.extract(dirty_gangs_.begin());
    LookAtGang(next.key(), next.mapped(), client, now);
  }
}

// Volumes are written only when enough members have their instances: from then on no failed
// partitioning can take the place of the others. Ready members are bound if they are enough, and
// all are released if too few members are left.
void Scheduler::LookAtGang(const std::string& gang, const std::string& why, kube::Client& client,
                           Time now) {
  size_t placed = 0, least = 0;
  std::vector<std::string> preparing, cut, ready;
  for (const Pod& member : gangs_.Of(gang)) {
    const std::string key = member->Key();
    const auto found = bindings_.find(key);
    if (found == bindings_.end()) {
      placed += IsPlacedInGang(*member) ? 1 : 0;
      continue;
    }
    const Binding& binding = found->second;
    if (binding.stage != Binding::Stage::kPreparing || binding.gang != gang) {
      ++placed;
      continue;
    }
    least = std::max(least, binding.least);
    preparing.push_back(key);
    if (!binding.cuts) cut.push_back(key);
    if (binding.ready) ready.push_back(key);
  }
  if (placed + preparing.size() < least) {
    for (const std::string& key : preparing) {
      // Avoids the recursion through GiveUp: the other members are given up in this loop.
      bindings_.at(key).gang.clear();
      GiveUp(key, fmt::format("{} is placed together or not at all: {}", gang, why), now);
    }
    return;
  }
  if (placed + cut.size() < least) return;
  for (const std::string& key : cut) {
    Binding& binding = bindings_.at(key);
    if (std::exchange(binding.held_back, false)) Prepare(binding, client, now);
  }
  if (placed + ready.size() < least) return;
  for (const std::string& key : ready) Send(bindings_.at(key), client);
}

}  // namespace nos::controllers
