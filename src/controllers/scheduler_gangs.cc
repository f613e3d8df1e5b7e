// How the scheduler places gangs (gangs.h): all members that wait are decided in one go, and kept
// only if enough of them find a node. Nothing is held while a gang waits, so that no two of them
// can wait for each other. Those that were placed are bound when enough of them are ready to be.
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "controllers/scheduler_internal.h"
#include "scheduling/pod_state.h"

namespace nos::controllers {

namespace {

size_t AtLeast(const GangSize& size) { return static_cast<size_t>(std::max(size.least, 1)); }

}  // namespace

// False: it belongs to no gang, and is decided by itself.
bool Scheduler::DecideWithGang(const Pod& pod, kube::Client& client, Time now) {
  const std::string gang = GangOf(*pod);
  const auto around = engine_.snapshot().ShareAround();
  if (gang.empty() || around == nullptr) return false;
  const GangSize size = SizeOfGang(*pod, *around);
  if (!size.problem.empty()) {
    RefuseGang({pod}, fmt::format("{}: {}", gang, size.problem), {&gang_scheduling_}, now);
    return true;
  }
  if (size.least <= 1) return false;
  size_t placed = 0;
  std::vector<Pod> waiting;
  for (const Pod& member : gangs_.Of(gang)) {
    const std::string key = member->Key();
    if (RunsSomewhere(member) || bindings_.contains(key)) {
      ++placed;
    } else if (const auto taken = queue_.TakeThis(key)) {
      waiting.push_back(*taken);
    }
  }
  const size_t there = placed + waiting.size();
  if (there < AtLeast(size)) {
    RefuseGang(waiting,
               fmt::format("{}: {} of the {} pods that are placed together are there", gang, there,
                           size.least),
               {&gang_scheduling_}, now);
    return true;
  }
  PlaceGang({gang, AtLeast(size), placed, std::move(waiting)}, client, now);
  return true;
}

void Scheduler::PlaceGang(const Gang& gang, kube::Client& client, Time now) {
  std::vector<std::string> chosen;
  std::vector<std::pair<Pod, scheduling::Diagnosis>> refused;
  for (const Pod& member : gang.waiting) {
    measures_.Begin(*member);
    scheduling::Diagnosis diagnosis;
    if (!Place(member, diagnosis, now)) {
      refused.emplace_back(member, std::move(diagnosis));
      continue;
    }
    const auto binding = bindings_.find(member->Key());
    if (binding == bindings_.end()) continue;  // a plugin could not reserve: tried again later
    binding->second.gang = gang.name;
    binding->second.least = gang.least;
    chosen.push_back(member->Key());
  }
  if (gang.placed + chosen.size() >= gang.least) {
    for (const auto& [member, diagnosis] : refused) {
      Refuse(*ProfileFor(*member), member, diagnosis, client, now);
    }
    for (const std::string& key : chosen) {
      const auto binding = bindings_.find(key);
      if (binding != bindings_.end()) Commit(binding->second, client, now);
    }
    return;
  }
  for (auto key = chosen.rbegin(); key != chosen.rend(); ++key) TakeBack(*key);
  std::string why = fmt::format("{}: {} of its pods find a node together, and {} must; {}: {}",
                                gang.name, gang.placed + chosen.size(), gang.least,
                                refused.front().first->Key(), refused.front().second.ToString());
  if (const std::string preemption = PreemptForGang(gang, client, now); !preemption.empty()) {
    why += " preemption: " + preemption;
  }
  std::set<const scheduling::Plugin*> by{&gang_scheduling_};  // fewer may be asked for
  for (const auto& [member, diagnosis] : refused)
    by.insert(diagnosis.by.begin(), diagnosis.by.end());
  RefuseGang(gang.waiting, why, {by.begin(), by.end()}, now);
}

void Scheduler::RefuseGang(const std::vector<Pod>& pods, const std::string& why,
                           const std::vector<const scheduling::Plugin*>& by, Time now) {
  for (const Pod& pod : pods) {
    measures_.End(*pod, SchedulerMeasures::Result::kUnschedulable);
    Tell({pod, "Unschedulable", why, ""}, now);
    queue_.Refused(pod, by, now);
  }
}

// Room for all that are needed, or none at all.
std::string Scheduler::PreemptForGang(const Gang& gang, kube::Client& client, Time now) {
  const SchedulerProfile& profile = *ProfileFor(*gang.waiting.front());
  if (!profile.preemption) return "";
  const Framework& framework = *profile.framework;
  cluster::ClusterSnapshot snapshot = engine_.WithPromises(*gang.waiting.front());
  std::vector<std::pair<Pod, std::string>> places;
  std::map<std::string, std::pair<Pod, std::string>> victims;  // with their node
  for (const Pod& member : gang.waiting) {
    if (gang.placed + places.size() >= gang.least) break;
    if (const std::string why = WhyNotMakeRoom(framework, member, now); !why.empty()) return why;
    std::string node;
    if (const auto fits = framework.Schedule(*member, snapshot, {}); fits.node != nullptr) {
      node = fits.node->node->meta.name;
    } else if (const auto found =
                   scheduling::FindPreemption(framework, snapshot, *member, *profile.preemption)) {
      node = found->node;
      for (const Pod& victim : found->victims) {
        victims[victim->Key()] = {victim, node};
        (void)snapshot.Vacate(*victim, node);  // it is there
      }
    } else {
      continue;
    }
    (void)snapshot.Bind(member, node);
    places.emplace_back(member, node);
  }
  if (victims.empty() || gang.placed + places.size() < gang.least) return "";
  measures_.Preempted(victims.size());
  for (const auto& [key, victim] : victims) {
    Evict(victim.first, gang.waiting.front(), victim.second, client, now);
  }
  for (const auto& [member, node] : places) {
    made_room_[member->Key()] = std::nullopt;
    SetNominee(member, node, client, now);
  }
  return fmt::format("{} pods of lower priority are evicted.", victims.size());
}

// Whether enough of the gang are bound, or about to be.
bool Scheduler::MayBindWithGang(const Binding& binding) const {
  size_t ready = 0;
  for (const Pod& member : gangs_.Of(binding.gang)) {
    const auto other = bindings_.find(member->Key());
    const bool here = other != bindings_.end() &&
                      (other->second.ready || other->second.stage != Binding::Stage::kPreparing);
    if (here || RunsSomewhere(member)) ++ready;
  }
  return ready >= binding.least;
}

void Scheduler::BindGang(const std::string& gang, kube::Client& client) {
  for (const Pod& member : gangs_.Of(gang)) {
    const auto found = bindings_.find(member->Key());
    if (found == bindings_.end() || !found->second.ready) continue;
    if (found->second.stage == Binding::Stage::kPreparing) Send(found->second, client);
  }
}

// One of its members has lost its place: too few are left, unless others are bound already.
void Scheduler::GiveUpGang(const std::string& gang, size_t least, const std::string& why,
                           Time now) {
  std::vector<std::string> preparing;
  size_t left = 0;
  for (const Pod& member : gangs_.Of(gang)) {
    const auto found = bindings_.find(member->Key());
    if (found != bindings_.end() || RunsSomewhere(member)) ++left;
    if (found != bindings_.end() && found->second.stage == Binding::Stage::kPreparing) {
      preparing.push_back(member->Key());
    }
  }
  if (left >= least) return;
  for (const std::string& key : preparing) {
    const auto found = bindings_.find(key);
    if (found == bindings_.end()) continue;
    found->second.gang.clear();  // the others are given up right here
    GiveUp(key, fmt::format("{} is placed together or not at all: {}", gang, why), now);
  }
}

}  // namespace nos::controllers
