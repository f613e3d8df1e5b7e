// How the scheduler says what became of pods: conditions and Events, after decisions and bindings.
#include <fmt/core.h>

#include <utility>

#include "controllers/condition.h"
#include "controllers/scheduler_internal.h"

namespace nos::controllers {
namespace {

kube::ObjectReference Reference(const cluster::Pod& pod) {
  return {"Pod", pod.meta.ns, pod.meta.name, pod.meta.uid};
}

}  // namespace

void Scheduler::Tell(Telling telling, Time now) {
  const std::string key = telling.pod->Key();
  if (telling.node.empty() &&
      HasCondition(*telling.pod, {"PodScheduled", "False", telling.reason, telling.message})) {
    tellings_.erase(key);
    return;
  }
  if (tellings_.size() >= config_.most_tellings && !tellings_.contains(key)) return;
  tellings_[key] = std::move(telling);
  untold_.Add(key, now);
}

// One portion at a time, so that decisions and bindings go first.
void Scheduler::TellSome(kube::Client& client, Time now) {
  if (telling_) return;
  std::vector<Telling> portion;
  const size_t most = IsQuiet() ? config_.tellings_per_call : config_.tellings_beside_bindings;
  while (portion.size() < most) {
    const std::optional<std::string> key = untold_.Take(now);
    if (!key) break;
    untold_.Done(*key);
    auto found = tellings_.extract(*key);
    if (!found.empty()) portion.push_back(std::move(found.mapped()));
  }
  if (portion.empty()) return;
  telling_ = true;
  auto call = [shared = shared_, portion = std::move(portion), now](kube::Client& with) {
    std::vector<kube::NamedPatch> conditions;
    std::vector<kube::EventNote> notes;
    for (const Telling& telling : portion) {
      const cluster::Pod& pod = *telling.pod;
      if (!telling.node.empty()) {
        notes.push_back({Reference(pod), kube::EventType::kNormal, "Scheduled",
                         fmt::format("Successfully assigned {} to {}", pod.Key(), telling.node)});
        continue;
      }
      conditions.push_back(
          ConditionPatch(pod, {"PodScheduled", "False", telling.reason, telling.message}, now));
      notes.push_back(
          {Reference(pod), kube::EventType::kWarning, "FailedScheduling", telling.message});
    }
    std::vector<Shared::Told> told;
    for (const Telling& telling : portion) told.push_back({telling});
    const auto written =
        with.PatchAll(kube::kPods, kube::PatchType::kStrategic, conditions, "status");
    size_t next = 0;
    for (size_t i = 0; i < portion.size(); ++i) {
      if (!portion[i].node.empty()) continue;
      const Status& status = written[next++].status();
      told[i].ok = status.ok() || status.code() == Code::kNotFound ||
                   status.code() == Code::kConflict;  // it is gone
    }
    (void)shared->events.RecordAll(with, notes, now);  // best effort
    shared->told.Put(std::move(told));
    shared->Wake();
  };
  Post(threads_.teller, client, std::move(call));
  TakeAnswers(now);
}

}  // namespace nos::controllers
