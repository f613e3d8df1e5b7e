#include "controllers/scheduler/preemption/evictor.h"

#include <fmt/core.h>

#include <atomic>
#include <utility>

#include "base/log.h"
#include "cluster/pod_end.h"
#include "controllers/events.h"
#include "controllers/scheduler/post.h"
#include "reconcile/condition.h"
#include "scheduling/pod_names.h"

namespace nos::controllers {

struct Evictor::Eviction {
  Pod victim, preemptor;
  std::string node;  // of the victim
  bool for_quota;
  Time time;
  std::optional<int64_t> grace;  // in seconds; absent: the victim's own
};

// Evictions that wait for nominations to be written.
struct Evictor::Batch {
  std::string preemptor;  // keys, also of the victims
  std::vector<std::string> victims;
  std::vector<kube::Workers::Call> evictions;
  std::atomic<size_t> unwritten = 0;
  std::atomic<bool> refused = false;
};

struct Evictor::Results {
  struct Failure {
    std::string victim, preemptor;  // keys
    bool uncertain = false;         // the call was not answered, so it may have taken effect
  };
  kube::Inbox<Failure> failures;
  kube::Inbox<PodNotice> events;
  std::function<void()> wake;

  void Wake() const {
    if (wake) wake();
  }
};

Evictor::Evictor(scheduling::Engine& engine, BindingCycle& bindings, TerminatingPods& terminating,
                 Nominations& nominations, SchedulerMetrics& metrics, kube::Workers* workers,
                 std::function<void()> wake)
    : engine_(engine),
      bindings_(bindings),
      terminating_(terminating),
      nominations_(nominations),
      metrics_(metrics),
      workers_(workers),
      results_(std::make_shared<Results>()) {
  results_->wake = std::move(wake);
}

void Evictor::Start(const Places& places, const std::vector<Pod>& victims, bool for_quota,
                    kube::Client& client, Time now) {
  // 1. Reserve in the engine at once, so that no other pod takes the capacity meanwhile.
  const Pod& preemptor = places.front().first;
  auto batch = std::make_shared<Batch>();
  batch->preemptor = preemptor->Key();
  if (!victims.empty()) metrics_.Preempted(victims.size());
  for (const auto& [pod, node] : places) {
    nominations_.Set(pod, node, now);
    nominations_.MarkEvicting(pod->Key());
  }

  // 2. Prepare the evictions. They count as terminating from here on.
  for (const Pod& victim : victims) {
    auto eviction = Evict(victim, preemptor, for_quota, now);
    if (!eviction) continue;
    batch->victims.push_back(victim->Key());
    batch->evictions.push_back(*std::move(eviction));
  }

  // 3. Write the nominations. The last write sends the evictions, or drops them if one failed.
  const auto go_on = [results = results_, workers = workers_, batch](kube::Client& with) {
    if (batch->refused) {
      for (const std::string& victim : batch->victims) {
        results->failures.Put({victim, batch->preemptor});
      }
      return results->Wake();
    }
    for (kube::Workers::Call& eviction : batch->evictions) Post(workers, with, std::move(eviction));
  };
  Places unwritten = places;
  std::erase_if(unwritten,
                [](const auto& place) { return place.first->nominated_node == place.second; });
  if (unwritten.empty()) return go_on(client);
  batch->unwritten = unwritten.size();
  for (const auto& place : unwritten) {
    Post(workers_, client,
         [pod = place.first, node = place.second, batch, go_on](kube::Client& with) {
           const Status written = PatchNominatedNode(*pod, node, with);
           if (!written.ok()) {
             Log(LogLevel::kWarn, "failed to patch nominated node of Pod, evicting no victims",
                 {{"pod", pod->Key()}, {"error", written.ToString()}});
             batch->refused = true;
           }
           if (--batch->unwritten == 0) go_on(with);
         });
  }
}

void Evictor::Retry(const Pod& preemptor, bool for_quota, kube::Client& client, Time now) {
  const auto unanswered = unanswered_.extract(preemptor->Key());
  if (unanswered.empty()) return;
  for (const Pod& victim : unanswered.mapped()) {
    const auto* placed = engine_.FindPlaced(victim->Key());
    if (placed == nullptr || placed->pod->meta.uid != victim->meta.uid) continue;
    if (auto eviction = Evict(placed->pod, preemptor, for_quota, now)) {
      Post(workers_, client, *std::move(eviction));
    }
  }
}

Evictor::Outcome Evictor::CollectResults() {
  Outcome outcome;
  for (auto& [victim, preemptor, uncertain] : results_->failures.TakeAll()) {
    const auto* placed = engine_.FindPlaced(victim);
    if (uncertain && terminating_.IsEvicted(victim) && placed != nullptr) {
      unanswered_[preemptor].push_back(placed->pod);
    }
    terminating_.EvictionFailed(victim);
    nominations_.UnmarkEvicting(preemptor);
    outcome.failed.push_back(std::move(preemptor));
  }
  outcome.events = results_->events.TakeAll();
  return outcome;
}

// Returns the call to make, if any.
std::optional<kube::Workers::Call> Evictor::Evict(const Pod& victim, const Pod& preemptor,
                                                  bool for_quota, Time now) {
  const std::string key = victim->Key();
  const BindingCycle::Binding* binding = bindings_.Find(key);
  if (binding != nullptr && binding->stage == BindingCycle::Stage::kPreparing &&
      binding->writes == 0) {
    bindings_.Release(
        key,
        fmt::format("its place is taken by {}, {}",
                    scheduling::NamesOf({preemptor->Key()}, victim->meta.ns),
                    for_quota ? "to which its elastic quota guarantees it" : "of higher priority"),
        now);
    return std::nullopt;
  }
  const bool ends_late =
      for_quota && victim->meta.deleted.value_or(Time()) > terminating_.LatestEnd(now);
  if (scheduling::EndsByPreemption(*victim) && !ends_late) return std::nullopt;
  if (!terminating_.MarkEvicted(victim, for_quota, now)) return std::nullopt;
  const auto max_grace = std::chrono::floor<std::chrono::seconds>(terminating_.max_grace());
  const bool shortens = for_quota && (ends_late || victim->grace_seconds > max_grace.count());
  const auto* placed = engine_.FindPlaced(key);
  const std::string node = placed == nullptr ? victim->node_name : placed->node;
  const std::optional<int64_t> grace =
      shortens ? std::optional<int64_t>(max_grace.count()) : cluster::GraceOfEviction(*victim);
  const Eviction eviction{victim, preemptor, node, for_quota, now, grace};
  return [results = results_, eviction](kube::Client& with) { Send(eviction, *results, with); };
}

void Evictor::Send(const Eviction& eviction, Results& results, kube::Client& client) {
  const cluster::Pod& victim = *eviction.victim;
  const cluster::Pod& preemptor = *eviction.preemptor;
  std::string why = eviction.for_quota
                        ? reconcile::ReclaimMessage(preemptor.scheduler_name)
                        : fmt::format("{}: preempting to accommodate a higher priority pod",
                                      preemptor.scheduler_name);
  const reconcile::WantedCondition condition{
      "DisruptionTarget", "True", "PreemptionByScheduler",
      reconcile::WithPreemptor(std::move(why), preemptor.meta.uid)};
  Json options = {{"preconditions", {{"uid", victim.meta.uid}}}};
  if (eviction.grace) options.get_object()["gracePeriodSeconds"] = *eviction.grace;
  Status deleted = reconcile::WriteCondition(client, victim, condition, eviction.time);
  if (deleted.ok()) {
    deleted = client.Delete(kube::kPods, victim.meta.ns, victim.meta.name, options);
  }
  if (deleted.ok() || deleted.code() == Code::kNotFound) {
    Log(LogLevel::kInfo, "evicting Pod for a Pod of higher priority or with a quota guarantee",
        {{"pod", victim.Key()}, {"for", preemptor.Key()}, {"node", eviction.node}});
    results.events.Put(
        {.pod = eviction.victim,
         .event = events::Preempted(victim, preemptor, eviction.node, eviction.for_quota)});
  } else {
    // A conflict may come from an earlier attempt of this scheduler that was not answered.
    const bool uncertain = deleted.code() == Code::kDeadline || deleted.code() == Code::kConflict;
    results.failures.Put({victim.Key(), preemptor.Key(), uncertain});
  }
  results.Wake();
}

}  // namespace nos::controllers
