#include "controllers/scheduler/status_reporter.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <utility>

#include "controllers/events.h"
#include "controllers/scheduler/post.h"
#include "kube/event_recorder.h"
#include "reconcile/condition.h"
#include "scheduling/explain.h"
#include "scheduling/pod_kind.h"
#include "scheduling/remedies.h"

namespace nos::controllers {
namespace {

// Back-off of a condition that could not be written.
constexpr BackOff kRetries{std::chrono::seconds(1), std::chrono::minutes(5)};

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

// True if the condition has this message with any remedy. A new remedy alone is not published at
// once, because it changes with every pod that comes or leaves.
bool HasConditionWithRemedy(const cluster::Pod& pod, const std::string& message) {
  const cluster::Condition* known = pod.FindCondition("PodScheduled");
  return known != nullptr && known->status == "False" && known->reason == "Unschedulable" &&
         known->message.starts_with(message + std::string(scheduling::kRemedySeparator));
}

}  // namespace

struct StatusReporter::Written {
  PodNotice notice;
  bool done = true;
};

struct StatusReporter::Results {
  kube::Inbox<std::vector<Written>> written;
  kube::EventRecorder events{"nos-scheduler"};  // used by calls
  std::function<void()> wake;
};

StatusReporter::StatusReporter(const scheduling::Engine& engine, const Profiles& profiles,
                               kube::Workers* workers, std::function<void()> wake, Options options)
    : engine_(engine),
      profiles_(profiles),
      workers_(workers),
      options_(options),
      queue_(kRetries),
      results_(std::make_shared<Results>()) {
  results_->wake = std::move(wake);
}

void StatusReporter::Report(PodNotice notice, Time now) {
  const std::string key = notice.pod->Key();
  SetAsideEvent(key, notice.pod->meta.uid, now);
  const bool is_condition = !notice.event;
  if (is_condition && notice.explain && HasConditionWithRemedy(*notice.pod, notice.message)) {
    return RefreshLater(std::move(notice), now);
  }
  unexplained_.erase(key);
  if (is_condition) to_refresh_.erase(key);
  if (is_condition && reconcile::HasCondition(
                          *notice.pod, {"PodScheduled", "False", notice.reason, notice.message})) {
    return ExplainLater(std::move(notice));
  }
  if (notices_.size() >= options_.max_pending && !notices_.contains(key)) return;
  notices_[key] = std::move(notice);
  queue_.Add(key, now);
}

void StatusReporter::OnNotPending(const std::string& pod_key) {
  unexplained_.erase(pod_key);
  to_refresh_.erase(pod_key);
  refused_.erase(pod_key);
}

void StatusReporter::OnDeleted(const std::string& pod_key) {
  const auto notice = notices_.find(pod_key);
  if (notice != notices_.end() && !notice->second.event) notices_.erase(notice);
}

void StatusReporter::CollectResults(Time now) {
  for (auto& portion : results_->written.TakeAll()) {
    in_flight_ = false;
    for (Written& written : portion) {
      const std::string key = written.notice.pod->Key();
      if (written.done) {
        queue_.Forget(key);
      } else if (notices_.try_emplace(key, std::move(written.notice)).second) {
        queue_.Retry(key, now);
      }
    }
  }
}

// Publishes one portion at a time, so that decisions and bindings come first.
void StatusReporter::Publish(kube::Client& client, Load load, Time now) {
  if (in_flight_) return;
  std::vector<PodNotice> portion = TakePortion(load, now);
  if (portion.empty()) portion = ExplainSome(load, now);
  for (PodNotice& notice : portion) DecideOnWarning(notice, now);
  AddDueWarnings(portion, now);
  if (portion.empty()) return;
  in_flight_ = true;
  auto call = [results = results_, portion = std::move(portion), now](kube::Client& with) {
    std::vector<kube::NamedPatch> conditions;
    std::vector<kube::EventNote> notes;
    for (const PodNotice& notice : portion) {
      const cluster::Pod& pod = *notice.pod;
      if (notice.event) {
        notes.push_back(*notice.event);
        continue;
      }
      conditions.push_back(reconcile::ConditionPatch(
          pod, {"PodScheduled", "False", notice.reason, notice.message}, now));
      if (notice.warns) notes.push_back(events::FailedScheduling(pod, notice.message));
    }
    std::vector<Written> written;
    for (const PodNotice& notice : portion) written.push_back({notice});
    const auto answers =
        with.PatchAll(kube::kPods, kube::PatchType::kStrategic, conditions, "status");
    size_t next = 0;
    for (size_t i = 0; i < portion.size(); ++i) {
      if (portion[i].event) continue;
      const Status& status = answers[next++].status();
      // The name may belong to another pod now.
      const bool conflict = status.code() == Code::kConflict;
      written[i].notice.conflicts += conflict ? 1 : 0;
      written[i].done = status.ok() || status.code() == Code::kNotFound ||
                        written[i].notice.conflicts > kMaxConflicts;
    }
    (void)results->events.RecordAll(with, notes, now);  // best effort
    results->written.Put(std::move(written));
    if (results->wake) results->wake();
  };
  Post(workers_, client, std::move(call));
  CollectResults(now);  // the result of a call made on this thread
}

std::optional<Time> StatusReporter::NextDue(Load load, Time now) const {
  if (in_flight_) return std::nullopt;
  std::optional<Time> next = queue_.NextDue();
  if (const auto warning = warnings_.NextDue()) next = next ? std::min(*next, *warning) : warning;
  const Time explain = WhenToExplain(load, now);
  if (explain == Time::max()) return next;
  return next ? std::min(*next, explain) : explain;
}

// Keeps the Event of an earlier pod of the same name.
void StatusReporter::SetAsideEvent(const std::string& key, const std::string& successor, Time now) {
  OnDeleted(key);
  const auto event = notices_.find(key);
  if (event == notices_.end() || event->second.pod->meta.uid == successor) return;
  auto other = notices_.extract(event);
  other.key() += " " + other.mapped().pod->meta.uid;
  queue_.Add(other.key(), now);
  notices_.insert(std::move(other));
}

void StatusReporter::ExplainLater(PodNotice notice) {
  const bool never = !notice.explain || options_.remedies_per_call == 0;
  if (never || unexplained_.size() >= options_.max_pending) return;
  const std::string key = notice.pod->Key();
  unexplained_.insert_or_assign(key, std::move(notice));
}

void StatusReporter::RefreshLater(PodNotice notice, Time now) {
  const std::string key = notice.pod->Key();
  const bool never = options_.remedies_per_call == 0;
  if (never || (to_refresh_.size() >= options_.max_pending && !to_refresh_.contains(key))) return;
  notice.only_remedy = true;
  to_refresh_.insert_or_assign(key, std::move(notice));
  refreshes_.Add(key, now + options_.refresh_remedies_after);
}

void StatusReporter::TakeRefreshes(std::vector<PodNotice>& to, Time now) {
  while (to.size() < options_.per_call) {
    const std::optional<std::string> key = refreshes_.Take(now);
    if (!key) return;
    refreshes_.Done(*key);
    auto found = to_refresh_.extract(*key);
    if (!found.empty() && !engine_.IsAssumed(*key)) to.push_back(std::move(found.mapped()));
  }
}

// Beyond the limit of pods that are remembered, an Event comes with every condition.
void StatusReporter::DecideOnWarning(PodNotice& notice, Time now) {
  if (notice.event) return;
  const std::string key = notice.pod->Key();
  notice.warns = notice.reason != kPartitioningGpus;
  if (refused_.size() >= options_.max_pending && !refused_.contains(key)) return;
  Refused& refused = refused_[key];
  if (refused.uid != notice.pod->meta.uid) {
    refused = {notice.pod->meta.uid, now + options_.warn_after, std::nullopt};
  }
  const bool early = refused.warn_from > now;
  refused.notice = early && notice.warns ? std::optional(notice) : std::nullopt;
  notice.warns = notice.warns && !early && !notice.only_remedy;
  if (refused.notice) warnings_.Add(key, refused.warn_from);
}

void StatusReporter::AddDueWarnings(std::vector<PodNotice>& portion, Time now) {
  while (portion.size() < options_.per_call) {
    const std::optional<std::string> key = warnings_.Take(now);
    if (!key) break;
    warnings_.Done(*key);
    const auto refused = refused_.find(*key);
    if (refused == refused_.end() || !refused->second.notice) continue;
    if (refused->second.warn_from > now) {  // of a later pod of the same name
      warnings_.Add(*key, refused->second.warn_from);
      continue;
    }
    const PodNotice notice = *std::exchange(refused->second.notice, std::nullopt);
    if (engine_.IsAssumed(*key)) continue;
    PodNotice warning{notice.pod};
    warning.event = events::FailedScheduling(*notice.pod, notice.message);
    portion.push_back(std::move(warning));
  }
}

// Bindings and decisions come first, but remedies are searched at least at each remedies_due_.
Time StatusReporter::WhenToExplain(Load load, Time now) const {
  const std::optional<Time> due = unexplained_.empty() ? refreshes_.NextDue() : now;
  if (!due) return Time::max();
  return !load.scheduling && !load.binding ? *due : std::max(*due, remedies_due_);
}

// Searches remedies for pending pods whose condition has none, or one that may be out of date.
// Returns the conditions that change.
std::vector<PodNotice> StatusReporter::ExplainSome(Load load, Time now) {
  if (WhenToExplain(load, now) > now) return {};
  std::vector<PodNotice> some;
  while (some.size() < options_.per_call && !unexplained_.empty()) {
    PodNotice next = std::move(unexplained_.extract(unexplained_.begin()).mapped());
    if (!engine_.IsAssumed(next.pod->Key())) some.push_back(std::move(next));
  }
  TakeRefreshes(some, now);
  remedies_due_ = now + options_.busy_remedies_interval;
  std::vector<std::string> messages;
  messages.reserve(some.size());
  for (const PodNotice& notice : some) messages.push_back(notice.message);
  AddRemedies(some);
  std::vector<PodNotice> explained;
  for (size_t i = 0; i < some.size(); ++i) {
    PodNotice& one = some[i];
    if (one.explain) {
      one.only_remedy ? RefreshLater(std::move(one), now - options_.refresh_remedies_after)
                      : ExplainLater(std::move(one));
      continue;
    }
    const bool known =
        one.only_remedy
            ? reconcile::HasCondition(*one.pod, {"PodScheduled", "False", one.reason, one.message})
            : one.message == messages[i];
    if (!known) explained.push_back(std::move(one));
  }
  return explained;
}

// Pods of one kind with the same refusal get the same remedy. Kinds beyond remedies_per_call keep
// `explain` and are handled later.
void StatusReporter::AddRemedies(std::vector<PodNotice>& notices) const {
  std::map<std::pair<std::string, std::string>, std::string> known;
  for (PodNotice& notice : notices) {
    const SchedulerProfile* profile = profiles_.Find(*notice.pod);
    if (!std::exchange(notice.explain, false) || profile == nullptr) continue;
    if (TermsOf(*notice.pod) > kMaxTerms) continue;
    // Victims are being evicted for it.
    if (!engine_.NomineeNode(notice.pod->Key()).empty()) continue;
    const std::pair key(fmt::format("{} {}", notice.pod->priority, scheduling::KindOf(*notice.pod)),
                        notice.message);
    auto found = known.find(key);
    if (found == known.end()) {
      notice.explain = known.size() >= options_.remedies_per_call;
      if (notice.explain) continue;
      found = known.emplace(key, RemedyFor(*notice.pod, *profile)).first;
    }
    if (!found->second.empty())
      notice.message += fmt::format("{}{}.", scheduling::kRemedySeparator, found->second);
  }
}

// Empty: none is known, or the pod can already be placed.
std::string StatusReporter::RemedyFor(const cluster::Pod& pending,
                                      const SchedulerProfile& profile) const {
  const auto snapshot = engine_.WithPromises(pending);
  const quota::Balance balance = engine_.BalanceFor(pending);
  cluster::Pod pod = pending;
  pod.nominated_node.clear();  // the watch may show an older value
  const scheduling::Explanation why =
      scheduling::Explain({*profile.framework, profile.partitioning(), snapshot, pod,
                           profile.preemption, "", false, pod.meta.ns, &balance});
  return why.place || why.preemption ? "" : why.remedy;
}

std::vector<PodNotice> StatusReporter::TakePortion(Load load, Time now) {
  std::vector<PodNotice> portion;
  const size_t limit = load.binding ? options_.per_call_while_binding : options_.per_call;
  while (portion.size() < limit) {
    const std::optional<std::string> key = queue_.Take(now);
    if (!key) break;
    queue_.Done(*key);
    auto found = notices_.extract(*key);
    if (!found.empty()) portion.push_back(std::move(found.mapped()));
  }
  if (!load.scheduling && !load.binding) AddRemedies(portion);
  for (const PodNotice& notice : portion) ExplainLater(notice);
  return portion;
}

}  // namespace nos::controllers
