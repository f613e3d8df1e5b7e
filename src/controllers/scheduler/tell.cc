// Publishes conditions and Events of pods after decisions and bindings.
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <utility>

#include "controllers/scheduler/internal.h"
#include "reconcile/condition.h"
#include "scheduling/explain.h"
#include "scheduling/pod_kind.h"

namespace nos::controllers {
namespace {

kube::ObjectReference Reference(const cluster::Pod& pod) {
  return {"Pod", pod.meta.ns, pod.meta.name, pod.meta.uid};
}

constexpr int kMaxConflicts = 3;

// Limit of constraints of a pod: searching a remedy for more would take seconds.
constexpr size_t kMaxTerms = 100;

size_t TermsOf(const cluster::NodeSelectorTerm& term) {
  return term.match_expressions.size() + term.match_fields.size();
}

size_t TermsOf(const cluster::Pod& pod) {
  size_t terms = pod.pod_affinity.required.size() + pod.pod_affinity.preferred.size() +
                 pod.pod_anti_affinity.required.size() + pod.pod_anti_affinity.preferred.size() +
                 pod.spread.size() + pod.tolerations.size() + pod.node_selector.size();
  if (!pod.node_affinity) return terms;
  if (const auto& required = pod.node_affinity->required) {
    for (const auto& term : *required) terms += 1 + TermsOf(term);
  }
  for (const auto& preferred : pod.node_affinity->preferred) terms += 1 + TermsOf(preferred.term);
  return terms;
}

// Separates kube-scheduler's wording from the remedy.
constexpr std::string_view kRemedy = " Remedy: ";

// The reason of PodScheduled while a pod waits for its instances. It differs from Unschedulable,
// because an autoscaler must not add a node for a pod that has one.
constexpr std::string_view kCuttingGpus = "CuttingGpus";

// True if the condition has this message with any remedy. A new remedy alone is not published,
// because it changes with every pod that comes or leaves.
bool IsToldWithRemedy(const cluster::Pod& pod, const std::string& message) {
  const cluster::Condition* known = pod.FindCondition("PodScheduled");
  return known != nullptr && known->status == "False" && known->reason == "Unschedulable" &&
         known->message.starts_with(message + std::string(kRemedy));
}

}  // namespace

// Drops the condition of a deleted pod. The Event about its eviction is still published.
void Scheduler::ForgetCondition(const std::string& key) {
  const auto telling = tellings_.find(key);
  if (telling != tellings_.end() && telling->second.node.empty()) tellings_.erase(telling);
}

// Keeps the Event of an earlier pod of the same name.
void Scheduler::PutAside(const std::string& key, const std::string& successor, Time now) {
  ForgetCondition(key);
  const auto event = tellings_.find(key);
  if (event == tellings_.end() || event->second.pod->meta.uid == successor) return;
  auto other = tellings_.extract(event);
  other.key() += " " + other.mapped().pod->meta.uid;
  untold_.Add(other.key(), now);
  tellings_.insert(std::move(other));
}

void Scheduler::Tell(EventQueue telling, Time now) {
  const std::string key = telling.pod->Key();
  PutAside(key, telling.pod->meta.uid, now);
  const bool of_condition = telling.node.empty();
  if (of_condition && telling.explain && IsToldWithRemedy(*telling.pod, telling.message)) {
    return;
  }
  unexplained_.erase(key);
  if (of_condition && reconcile::HasCondition(*telling.pod, {"PodScheduled", "False",
                                                             telling.reason, telling.message})) {
    return ExplainLater(std::move(telling));
  }
  if (tellings_.size() >= config_.most_tellings && !tellings_.contains(key)) return;
  tellings_[key] = std::move(telling);
  untold_.Add(key, now);
}

void Scheduler::ExplainLater(EventQueue telling) {
  const bool never = !telling.explain || config_.remedies_per_call == 0;
  if (never || unexplained_.size() >= config_.most_tellings) return;
  const std::string key = telling.pod->Key();
  unexplained_.insert_or_assign(key, std::move(telling));
}

// Bindings and decisions come first, but remedies are searched at least at each remedies_due_.
Time Scheduler::WhenToExplain(Time now) const {
  if (unexplained_.empty()) return Time::max();
  return queue_.ready() == 0 && !IsBinding() ? now : remedies_due_;
}

// Searches remedies for pending pods whose condition has none.
std::vector<Scheduler::EventQueue> Scheduler::ExplainSome(Time now) {
  if (WhenToExplain(now) > now) return {};
  std::vector<EventQueue> some;
  while (some.size() < config_.tellings_per_call && !unexplained_.empty()) {
    EventQueue next = std::move(unexplained_.extract(unexplained_.begin()).mapped());
    if (!bindings_.contains(next.pod->Key())) some.push_back(std::move(next));
  }
  remedies_due_ = now + config_.remedies_beside_bindings_every;
  std::vector<std::string> words;
  for (const EventQueue& telling : some) words.push_back(telling.message);
  AddRemedies(some);
  std::vector<EventQueue> explained;
  for (size_t i = 0; i < some.size(); ++i) {
    if (some[i].explain) {
      ExplainLater(std::move(some[i]));
    } else if (some[i].message != words[i]) {
      explained.push_back(std::move(some[i]));
    }
  }
  return explained;
}

// Reports once why a pod waits whose instances take longer than usual. Before that, sets the time
// to report it.
void Scheduler::TellOfCut(Binding& binding, scheduling::Progress& progress, Time now) {
  const bool waits = progress.kind == scheduling::Progress::Kind::kWaits && progress.until;
  if (!waits || binding.told_of_cuts) return;
  const Time due = *progress.until - config_.cuts.deadline + config_.tell_of_cuts_after;
  if (now < due) {
    progress.until = std::min(*progress.until, due);
    return;
  }
  binding.told_of_cuts = true;
  Tell({binding.pod, std::string(kCuttingGpus),
        fmt::format("waits for node {}: {}", binding.node, progress.message), ""},
       now);
}

// Pods of one kind with the same refusal get the same remedy. Kinds beyond remedies_per_call keep
// `explain` and are handled later.
void Scheduler::AddRemedies(std::vector<EventQueue>& tellings) const {
  std::map<std::pair<std::string, std::string>, std::string> known;
  for (EventQueue& telling : tellings) {
    const SchedulerProfile* profile = ProfileFor(*telling.pod);
    if (!std::exchange(telling.explain, false) || profile == nullptr) continue;
    if (TermsOf(*telling.pod) > kMaxTerms) continue;
    // Victims are being evicted for it.
    if (!engine_.NomineeNode(telling.pod->Key()).empty()) continue;
    const std::pair key(
        fmt::format("{} {}", telling.pod->priority, scheduling::KindOf(*telling.pod)),
        telling.message);
    auto found = known.find(key);
    if (found == known.end()) {
      telling.explain = known.size() >= config_.remedies_per_call;
      if (telling.explain) continue;
      const auto with = engine_.WithPromises(*telling.pod);
      const quota::Balance balance = engine_.BalanceFor(*telling.pod);
      cluster::Pod pod = *telling.pod;
      pod.nominated_node.clear();  // the watch may show an older value
      const Framework& framework = *profile->framework;
      const Framework& cutting = profile->cutting != nullptr ? *profile->cutting : framework;
      const scheduling::Explanation why = scheduling::Explain(
          {framework, cutting, with, pod, profile->preemption, "", false, pod.meta.ns, &balance});
      const bool helps = !why.place && !why.preemption;  // else the pod can already be placed
      found = known.emplace(key, helps ? why.remedy : "").first;
    }
    if (!found->second.empty()) telling.message += fmt::format("{}{}.", kRemedy, found->second);
  }
}

// Publishes one portion at a time, so that decisions and bindings come first.
void Scheduler::TellSome(kube::Client& client, Time now) {
  if (telling_) return;
  std::vector<EventQueue> portion;
  const size_t most = IsBinding() ? config_.tellings_beside_bindings : config_.tellings_per_call;
  while (portion.size() < most) {
    const std::optional<std::string> key = untold_.Take(now);
    if (!key) break;
    untold_.Done(*key);
    auto found = tellings_.extract(*key);
    if (!found.empty()) portion.push_back(std::move(found.mapped()));
  }
  // Only while no pod waits for a decision.
  if (queue_.ready() == 0 && !IsBinding()) AddRemedies(portion);
  for (const EventQueue& telling : portion) ExplainLater(telling);
  if (portion.empty()) portion = ExplainSome(now);
  if (portion.empty()) return;
  telling_ = true;
  auto call = [shared = shared_, portion = std::move(portion), now](kube::Client& with) {
    std::vector<kube::NamedPatch> conditions;
    std::vector<kube::EventNote> notes;
    for (const EventQueue& telling : portion) {
      const cluster::Pod& pod = *telling.pod;
      if (!telling.node.empty()) {
        notes.push_back(
            {Reference(pod), kube::EventType::kNormal, telling.reason, telling.message});
        continue;
      }
      conditions.push_back(reconcile::ConditionPatch(
          pod, {"PodScheduled", "False", telling.reason, telling.message}, now));
      if (telling.reason == kCuttingGpus) continue;  // not a failure
      notes.push_back(
          {Reference(pod), kube::EventType::kWarning, "FailedScheduling", telling.message});
    }
    std::vector<Shared::Told> told;
    for (const EventQueue& telling : portion) told.push_back({telling});
    const auto written =
        with.PatchAll(kube::kPods, kube::PatchType::kStrategic, conditions, "status");
    size_t next = 0;
    for (size_t i = 0; i < portion.size(); ++i) {
      if (!portion[i].node.empty()) continue;
      const Status& status = written[next++].status();
      // The name may belong to another pod now.
      const bool conflict = status.code() == Code::kConflict;
      told[i].telling.conflicts += conflict ? 1 : 0;
      told[i].ok = status.ok() || status.code() == Code::kNotFound ||
                   told[i].telling.conflicts > kMaxConflicts;
    }
    (void)shared->events.RecordAll(with, notes, now);  // best effort
    shared->told.Put(std::move(told));
    shared->Wake();
  };
  Post(threads_.teller, client, std::move(call));
  TakeAnswers(now);
}

}  // namespace nos::controllers
