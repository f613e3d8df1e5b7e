// Preemption for pods of higher priority, and the nominations that keep the freed capacity for
// them.
#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/log.h"
#include "cluster/annotations.h"
#include "controllers/pending/assumed.h"
#include "controllers/relocations.h"
#include "controllers/scheduler/internal.h"
#include "reconcile/condition.h"
#include "scheduling/explain_promises.h"
#include "scheduling/pod_kind.h"
#include "scheduling/pod_names.h"

namespace nos::controllers {

using scheduling::ClusterEvent;

namespace {

// True if the agents of both report the same status.
bool SayTheSame(const cluster::Node& a, const cluster::Node& b) {
  const auto status_of = [](const cluster::Node& node) {
    cluster::StringMap status;
    for (const auto& [key, value] : node.meta.annotations) {
      if (key.starts_with("nos.nebuly.com/status-")) status.emplace(key, value);
    }
    return status;
  };
  return status_of(a) == status_of(b);
}

Status PatchNominee(const std::shared_ptr<const cluster::Pod>& pod, const std::string& node,
                    kube::Client& client) {
  const Json patch = {{"metadata", {{"uid", pod->meta.uid}}},
                      {"status", {{"nominatedNodeName", node.empty() ? Json() : Json(node)}}}};
  return client
      .Patch(kube::kPods, pod->meta.ns, pod->meta.name, kube::PatchType::kStrategic, patch,
             "status")
      .status();
}

}  // namespace

std::string KindOfPreemptor(const cluster::Pod& pod) {
  return fmt::format("{}{} {}/{}/{}", scheduling::KindOf(pod), pod.preemption_policy, pod.priority,
                     pod.scheduler_name, GangOf(pod));
}

std::string Scheduler::Preempt(const SchedulerProfile& profile, const Pod& pod,
                               kube::Client& client, Time now) {
  EvictAgain(pod, client, now);
  if (HasQuota(*profile.framework, *pod)) return ReclaimFor(profile, pod, client, now);
  if (profile.preemption) measures_.LooksForVictims();
  std::string why = WhatItAwaits(*profile.framework, pod, now);
  if (!why.empty()) return why;
  const auto found = FindPreemption(profile, *pod);
  if (!found) {
    TakeBackPromises({pod}, client, now);
    return profile.preemption ? WhyNeverTakes(*pod) : "";
  }
  patience_.erase(pod->Key());
  MakeRoom({{pod, found->node}}, found->victims, client, now);
  TakeBackPromises(LesserNominated(*pod, found->node), client, now);
  return fmt::format("{} pods of lower priority are evicted from {}.", found->victims.size(),
                     found->node);
}

bool Scheduler::MayMakeRoom(const SchedulerProfile& profile, const cluster::Pod& pod) const {
  if (pod.preemption_policy == "Never" || IsPlaceholder(pod)) return false;
  if (HasQuota(*profile.framework, pod)) return profile.reclaims;
  const auto least = engine_.LeastPriority();
  return profile.preemption && least && *least < pod.priority;
}

// Pods in namespaces without a quota preempt only each other. A pod never preempts a member of its
// own gang, which is useless without that member.
bool Scheduler::MayEvict(const SchedulerProfile& profile, const cluster::Pod& pod,
                         const cluster::Pod& other) const {
  if (other.priority >= pod.priority || HasQuota(*profile.framework, other)) return false;
  const std::string gang = GangOf(other);
  const auto around = engine_.snapshot().ShareContext();
  return gang.empty() || gang != GangOf(pod) || around == nullptr ||
         SizeOfGang(pod, *around).least <= 1;
}

std::optional<scheduling::Preemption> Scheduler::FindPreemption(const SchedulerProfile& profile,
                                                                const cluster::Pod& pod) {
  if (!profile.preemption || !MayMakeRoom(profile, pod)) return std::nullopt;
  const bool alike =
      HasNoPositiveInterPodConstraints(pod) && engine_.NomineeNode(pod.Key()).empty();
  std::string kind = alike ? KindOfPreemptor(pod) : "";
  if (alike && hopeless_.Contains(kind, engine_.openings())) return std::nullopt;
  const auto may_go = [&](const cluster::Pod& other) { return MayEvict(profile, pod, other); };
  scheduling::EachThat rule(may_go);
  cluster::ClusterSnapshot snapshot = engine_.snapshot();
  LeaveOutSilentNodes(pod, snapshot);
  auto found = scheduling::FindPreemption(*profile.framework, snapshot, pod, *profile.preemption,
                                          &rule, engine_.PromisesFor(pod));
  if (!found && alike) hopeless_.Add(std::move(kind));
  return found;
}

std::string Scheduler::WhatItAwaits(const Framework& framework, const Pod& pod, Time now) {
  // The watch may show an older value.
  cluster::Pod self = *pod;
  self.nominated_node = engine_.NomineeNode(pod->Key());
  self.preemption_policy.clear();  // a policy of Never does not exclude an existing nomination
  const cluster::NodeInfo* nominee = engine_.snapshot().Find(self.nominated_node);
  if (nominee == nullptr) return "";
  const bool waits = std::ranges::any_of(nominee->pods, [&](const Pod& p) {
    return p->priority < pod->priority && going_.contains(p->Key());
  });
  if (waits) return "the pods in its way on the nominated node are being evicted.";
  std::string why = scheduling::WhyNotPreempt(framework, engine_.snapshot(), self);
  if (!why.empty() || !AwaitsAgent(pod, *nominee, {}, now)) return why;
  return std::string(scheduling::kAwaitsAgent);
}

// True while the agent of the nominated node has yet to report freed instances: evicting other pods
// meanwhile would be useless. After agent_patience the node counts as silent until its agent
// reports something.
bool Scheduler::AwaitsAgent(const Pod& pod, const cluster::NodeInfo& nominee,
                            const std::vector<Pod>& leaving, Time now) {
  cluster::Pod self = *pod;
  self.nominated_node = nominee.node->meta.name;
  const SchedulerProfile& profile = *ProfileFor(*pod);
  const bool cut_elsewhere = profile.cutting != nullptr && profile.reclaims;
  const Framework& framework = cut_elsewhere ? *profile.cutting : *profile.framework;
  cluster::ClusterSnapshot without = engine_.WithPromises(*pod);
  bool any_leaves = false;
  for (const Pod& other : leaving) {
    any_leaves |= without.Vacate(*other, self.nominated_node).ok();
  }
  if (!scheduling::AwaitsAgent(framework, self, without)) return false;
  if (any_leaves) return true;
  if (HasPatience(pod->Key(), now)) return true;
  CountAsSilent(nominee.node->meta.name);
  return false;
}

bool Scheduler::HasPatience(const std::string& pod_key, Time now) {
  std::optional<Time>& until = patience_[pod_key];
  // An old wait had another cause.
  if (until && now >= *until + 10 * config_.agent_patience) until.reset();
  if (!until) {
    until = now + config_.agent_patience;
    patience_ends_.emplace(*until, pod_key);
  }
  return now < *until;
}

std::vector<std::string> Scheduler::SilentNodes() {
  std::erase_if(silent_, [&](const auto& entry) {
    const cluster::NodeInfo* info = engine_.snapshot().Find(entry.first);
    return info == nullptr || !SayTheSame(*info->node, *entry.second);
  });
  std::vector<std::string> names;
  names.reserve(silent_.size());
  for (const auto& [name, node] : silent_) names.push_back(name);
  return names;
}

void Scheduler::CountAsSilent(const std::string& node) {
  if (const cluster::NodeInfo* info = engine_.snapshot().Find(node)) {
    silent_.insert_or_assign(node, info->node);
  }
}

void Scheduler::LeaveOutSilentNodes(const cluster::Pod& pod, cluster::ClusterSnapshot& snapshot) {
  if (!AsksForSlices(pod, GivesWhole(snapshot))) return;
  for (const std::string& name : SilentNodes()) snapshot.RemoveNode(name);
}

// Agents that do not report in time. No event announces the end of the wait.
void Scheduler::ExpireAgentTimeouts(Time now) {
  while (!patience_ends_.empty() && patience_ends_.begin()->first <= now) {
    const auto end = patience_ends_.extract(patience_ends_.begin()).value();
    const auto made = patience_.find(end.second);
    if (made == patience_.end() || made->second != end.first) continue;
    TryAgain(end.second, now);
  }
}

// Nominates a node for the pod. An empty node removes the nomination, so other pods may fit.
void Scheduler::Promise(const Pod& pod, const std::string& node, Time now) {
  const std::string before = engine_.NomineeNode(pod->Key());
  engine_.Nominate(pod, node, foreign_.contains(pod->Key()));
  if (before != node) {
    patience_.erase(pod->Key());
    has_preempted_for_.erase(pod->Key());
  }
  if (before.empty() || before == node) return;
  const auto binding = bindings_.find(pod->Key());
  const std::string assumed = binding == bindings_.end() ? "" : binding->second.node;
  if ((RunsSomewhere(pod) ? pod->node_name : assumed) == before) return;  // the pod runs on it
  auto left = std::make_shared<cluster::Pod>(*pod);
  left->node_name = before;
  OnClusterEvent({ClusterEvent::Kind::kPodLeft, {}, {}, std::move(left), {}, {}}, now);
}

void Scheduler::SetNominee(const Pod& pod, const std::string& node, kube::Client& client,
                           Time now) {
  Promise(pod, node, now);
  WriteNominee(pod, node, client);
}

// Removes the nominations of the pods, also in the API server: an earlier removal may have been
// lost.
void Scheduler::TakeBackPromises(const std::vector<Pod>& pods, kube::Client& client, Time now) {
  for (const Pod& pod : pods) {
    const bool written = !pod->nominated_node.empty();
    if (written || !engine_.NomineeNode(pod->Key()).empty()) SetNominee(pod, "", client, now);
  }
}

// Pods of lower priority nominated to the node that no longer fit there beside `pod`.
std::vector<Scheduler::Pod> Scheduler::LesserNominated(const cluster::Pod& pod,
                                                       const std::string& node) const {
  std::vector<Pod> lesser = engine_.NominatedBehind(node, pod);
  std::erase_if(lesser, [&](const Pod& other) { return engine_.IsAssumed(other->Key()); });
  if (lesser.empty()) return lesser;
  cluster::ClusterSnapshot snapshot = engine_.snapshot();
  for (const Pod& other : Leaving()) {
    // Ignored: the snapshot may no longer have it.
    (void)snapshot.Vacate(*other, engine_.FindPlaced(other->Key())->node);
  }
  const cluster::NodeInfo* info = snapshot.Find(node);
  std::erase_if(lesser, [&](const Pod& other) {
    const SchedulerProfile* profile = ProfileFor(*other);
    if (profile == nullptr) return true;  // its own scheduler removes the nomination
    if (info == nullptr) return false;
    const Framework& framework =
        profile->cutting != nullptr ? *profile->cutting : *profile->framework;
    const scheduling::Cycle cycle = framework.PreFilter(*other, snapshot);
    return cycle.verdict.fits() &&
           FilterBeside(framework, snapshot, cycle, *other, *info, engine_.PromisesFor(*other))
               .fits();
  });
  return lesser;
}

void Scheduler::WriteNominee(const Pod& pod, const std::string& node, kube::Client& client) {
  Post(threads_.binders, client, [pod, node](kube::Client& with) {
    const Status written = PatchNominee(pod, node, with);
    if (!written.ok()) {  // this scheduler keeps the nomination
      Log(LogLevel::kWarn, "failed to patch nominated node of Pod",
          {{"pod", pod->Key()}, {"error", written.ToString()}});
    }
  });
}

// The step after the nominations. Evictions start only when all nominations are written: otherwise
// a successor could give the capacity to other pods, and the evictions would be useless.
struct Scheduler::RoomInTheMaking {
  std::string preemptor;  // keys, also of the victims
  std::vector<std::string> victims;
  std::vector<kube::Workers::Call> evictions;
  std::atomic<size_t> unwritten = 0;
  std::atomic<bool> refused = false;
};

void Scheduler::MakeRoom(const Places& places, const std::vector<Pod>& victims,
                         kube::Client& client, Time now) {
  // 1. Reserve in the engine at once, so that no other pod takes the capacity meanwhile.
  const Pod& preemptor = places.front().first;
  auto room = std::make_shared<RoomInTheMaking>();
  room->preemptor = preemptor->Key();
  if (!victims.empty()) measures_.Preempted(victims.size());
  for (const auto& [pod, node] : places) {
    Promise(pod, node, now);
    has_preempted_for_.insert(pod->Key());
  }

  // 2. Prepare the evictions. They count as terminating from here on.
  for (const Pod& victim : victims) {
    auto eviction = Evict(victim, preemptor, now);
    if (!eviction) continue;
    room->victims.push_back(victim->Key());
    room->evictions.push_back(*std::move(eviction));
  }

  // 3. Write the nominations. The last write sends the evictions, or drops them if one failed.
  const auto go_on = [shared = shared_, binders = threads_.binders, room](kube::Client& with) {
    if (room->refused) {
      for (const std::string& victim : room->victims) {
        shared->not_evicted.Put({victim, room->preemptor});
      }
      return shared->Wake();
    }
    for (kube::Workers::Call& eviction : room->evictions) Post(binders, with, std::move(eviction));
  };
  Places unwritten = places;
  std::erase_if(unwritten,
                [](const auto& place) { return place.first->nominated_node == place.second; });
  if (unwritten.empty()) return go_on(client);
  room->unwritten = unwritten.size();
  for (const auto& [pod, node] : unwritten) {
    Post(threads_.binders, client, [pod, node, room, go_on](kube::Client& with) {
      const Status written = PatchNominee(pod, node, with);
      if (!written.ok()) {
        Log(LogLevel::kWarn, "failed to patch nominated node of Pod, evicting no victims",
            {{"pod", pod->Key()}, {"error", written.ToString()}});
        room->refused = true;
      }
      if (--room->unwritten == 0) go_on(with);
    });
  }
}

// Follows the steps of kube-scheduler. A victim still in PreBind loses its node and is requeued.
// Any other victim gets the condition DisruptionTarget, which names the scheduler that evicts it,
// and is then deleted. Returns the calls to make, if any.
std::optional<kube::Workers::Call> Scheduler::Evict(const Pod& victim, const Pod& preemptor,
                                                    Time now) {
  const bool for_quota = HasQuota(*ProfileFor(*preemptor)->framework, *preemptor);
  const std::string key = victim->Key();
  const auto binding = bindings_.find(key);
  if (binding != bindings_.end() && binding->second.stage == Binding::Stage::kPreparing &&
      binding->second.writes == 0) {
    GiveUp(
        key,
        fmt::format("its place is taken by {}, {}",
                    scheduling::NamesOf({preemptor->Key()}, victim->meta.ns),
                    for_quota ? "to which its elastic quota gives a right" : "of higher priority"),
        now);
    return std::nullopt;
  }
  if (scheduling::EndsByPreemption(*victim)) return std::nullopt;
  if (!going_.emplace(key, for_quota).second) return std::nullopt;
  engine_.SetLeaving(key, true);
  const auto* placed = engine_.FindPlaced(key);
  const std::string node = placed == nullptr ? victim->node_name : placed->node;
  // Only pods of its own namespace may see the preemptor's name.
  const bool related = preemptor->meta.ns == victim->meta.ns;
  EventQueue telling{
      victim, "Preempted",
      fmt::format("Preempted by pod {}{} on node {}{}", preemptor->meta.uid,
                  related ? fmt::format(" ({})", preemptor->Key()) : "", node,
                  for_quota ? ": its elastic quota has a right to what is borrowed here" : ""),
      node};
  return [shared = shared_, victim, preemptor, node, key, now, for_quota,
          telling = std::move(telling)](kube::Client& with) {
    const reconcile::WantedCondition condition{
        "DisruptionTarget", "True", "PreemptionByScheduler",
        fmt::format(
            "{}: preempting to accommodate a {}", preemptor->scheduler_name,
            for_quota ? "pod to which its elastic quota gives a right" : "higher priority pod")};
    const Json options = {{"preconditions", {{"uid", victim->meta.uid}}}};
    Status deleted = reconcile::WriteCondition(with, *victim, condition, now);
    if (deleted.ok()) {
      deleted = with.Delete(kube::kPods, victim->meta.ns, victim->meta.name, options);
    }
    if (deleted.ok() || deleted.code() == Code::kNotFound) {
      Log(LogLevel::kInfo, "Evicting Pod for a Pod of higher priority or with a quota guarantee",
          {{"pod", key}, {"for", preemptor->Key()}, {"node", node}});
      shared->evicted.Put(telling);
    } else {
      // A conflict may come from an earlier attempt of this scheduler that was not answered.
      const bool perhaps = deleted.code() == Code::kDeadline || deleted.code() == Code::kConflict;
      shared->not_evicted.Put({key, preemptor->Key(), perhaps});
    }
    shared->Wake();
  };
}

// Repeats evictions whose outcome is unknown. Until it is known, no other victim is chosen.
void Scheduler::EvictAgain(const Pod& preemptor, kube::Client& client, Time now) {
  const auto unsure = unsure_.extract(preemptor->Key());
  if (unsure.empty()) return;
  for (const Pod& victim : unsure.mapped()) {
    const auto* placed = engine_.FindPlaced(victim->Key());
    if (placed == nullptr || placed->pod->meta.uid != victim->meta.uid) continue;
    if (auto eviction = Evict(placed->pod, preemptor, now)) {
      Post(threads_.binders, client, *std::move(eviction));
    }
  }
}

}  // namespace nos::controllers
