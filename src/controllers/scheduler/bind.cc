// The binding cycle, from the choice of a node until the watch shows the bound pod: PreBind, the
// Bind call and the handling of its result.
#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "controllers/scheduler/internal.h"

namespace nos::controllers {

using scheduling::ClusterEvent;

namespace {

// True if the request may have taken effect although it was not answered.
bool IsUncertain(const Status& status) {
  return status.code() == Code::kDeadline || status.code() == Code::kUnavailable;
}

// The node to which the API server has bound the pod, "" if none. It lists, because the scheduler's
// role may not get pods. Error: kNotFound.
Result<std::string> NodeOf(const cluster::Pod& pod, kube::Client& client) {
  kube::ListOptions options;
  options.field_selector = "metadata.name=" + pod.meta.name;
  NOS_ASSIGN(const kube::ObjectList list, client.List(kube::kPods, pod.meta.ns, options));
  for (const Json& item : list.items) {
    if (FindString(item, "metadata", "uid") != pod.meta.uid) continue;
    return std::string(FindString(item, "spec", "nodeName"));
  }
  return NotFound(fmt::format("pod {} is gone", pod.Key()));
}

}  // namespace

void Scheduler::SetUntil(Binding& binding, Time until) {
  const std::string key = binding.pod->Key();
  if (binding.until != Time::max()) deadlines_.erase({binding.until, key});
  binding.until = until;
  if (until != Time::max()) deadlines_.emplace(until, key);
}

void Scheduler::SetStage(Binding& binding, Binding::Stage stage) {
  binding.stage = stage;
  const bool asked = stage == Binding::Stage::kSent || stage == Binding::Stage::kDoubtful;
  const std::string key = binding.pod->Key();
  asked ? void(asked_.insert(key)) : void(asked_.erase(key));
}

void Scheduler::BeginPreparing(Binding& binding) {
  const std::string key = binding.pod->Key();
  preparing_.insert(key);
  preparing_on_[binding.node].insert(key);
}

void Scheduler::EndPreparing(const Binding& binding) {
  const std::string key = binding.pod->Key();
  if (preparing_.erase(key) == 0) return;
  due_.erase(key);
  due_around_.erase(key);
  const auto on = preparing_on_.find(binding.node);
  on->second.erase(key);
  if (on->second.empty()) preparing_on_.erase(on);
}

// Re-runs PreBind only for pods whose node or volumes changed; the others would give the same
// answer.
void Scheduler::PrepareDue(kube::Client& client, Time now) {
  while (!due_.empty()) {
    const std::string key = due_.extract(due_.begin()).value();
    Prepare(bindings_.at(key), client, now);
  }
}

// Partitioning comes before the other PreBind plugins, because it may fail and what they write for
// volumes cannot be undone. The pod is bound when nothing is left to be done.
void Scheduler::Prepare(Binding& binding, kube::Client& client, Time now) {
  if (binding.writes > 0) return;
  const std::string key = binding.pod->Key();
  binding.seen = engine_.snapshot().Share(binding.node);
  if (binding.seen == nullptr) return GiveUp(key, "the node is gone", now);
  SetUntil(binding, Time::max());
  scheduling::Progress progress = LookAtCuts(binding, now);
  if (progress.kind == scheduling::Progress::Kind::kReady) {
    if (binding.held_back) return MarkGangDirty(binding.gang, "");
    due_around_.insert(key);
    progress = AskPreBinders(binding, now);
  }
  if (progress.kind == scheduling::Progress::Kind::kFailed) {
    const bool is_cut = binding.cuts;  // a later plan may succeed on the same node
    return GiveUp(key, progress.message, now,
                  is_cut ? AfterThat::kSamePlace : AfterThat::kAnyPlace);
  }
  if (progress.until) SetUntil(binding, *progress.until);
  const bool writes = !progress.writes.empty();
  binding.ready = progress.kind == scheduling::Progress::Kind::kReady && !writes;
  const std::string why = binding.ready || writes ? WhyNotThere(binding) : "";
  if (!why.empty()) return GiveUp(key, why, now);
  if (!binding.ready && preparing_.size() > config_.most_preparing) {
    return GiveUp(key, "too many pods wait for their volumes or for GPUs to be cut", now,
                  AfterThat::kSamePlace);
  }
  if (binding.ready && binding.gang.empty()) return Send(binding, client);
  if (binding.ready) MarkGangDirty(binding.gang, "");
  SendWrites(binding, std::move(progress.writes), client);
}

// Combines the answers of all plugins: failed if one failed, ready if all are ready.
scheduling::Progress Scheduler::AskPreBinders(Binding& binding, Time now) const {
  scheduling::Progress all;
  for (const scheduling::PreBindPlugin* plugin : binding.framework->pre_binders()) {
    scheduling::Progress progress =
        plugin->PreBind(*binding.pod, binding.node, engine_.snapshot(), now, binding.state);
    if (progress.kind == scheduling::Progress::Kind::kFailed) return progress;
    std::ranges::move(progress.writes, std::back_inserter(all.writes));
    if (progress.kind == scheduling::Progress::Kind::kReady) continue;
    all.kind = progress.kind;
    if (progress.until) all.until = std::min(all.until.value_or(Time::max()), *progress.until);
  }
  return all;
}

void Scheduler::SendWrites(Binding& binding, std::vector<kube::ApiRequest> writes,
                           kube::Client& client) {
  for (kube::ApiRequest& write : writes) {
    ++binding.writes;
    auto call = [shared = shared_, key = binding.pod->Key(), attempt = binding.attempt,
                 write = std::move(write)](kube::Client& with) {
      shared->answers.Put({key, attempt, Answer::Of::kPreBind, with.Send(write).status(), {}});
      shared->Wake();
    };
    Post(threads_.binders, client, std::move(call));
  }
}

scheduling::Progress Scheduler::LookAtCuts(Binding& binding, Time now) {
  if (!binding.cuts) return {};
  scheduling::Progress progress = cuts_.Look(*binding.pod, *binding.seen, now);
  if (progress.kind == scheduling::Progress::Kind::kReady) {
    binding.cuts = false;
    cuts_.Drop(binding.node, *binding.pod, Cuts::End::kServed);
  } else {
    TellOfCut(binding, progress, now);
  }
  return progress;
}

// The node may have filled up since the decision, so filters run again. Plugins that reserved
// something for this pod are skipped: they would count its own reservation against it.
std::string Scheduler::WhyNotThere(Binding& binding) const {
  if (binding.seen == binding.fits) return "";
  cluster::ClusterSnapshot without = engine_.snapshot();
  if (!without.Vacate(*binding.pod, binding.node).ok()) return "";
  const scheduling::Cycle cycle = binding.framework->PreFilter(*binding.pod, without);
  if (!cycle.verdict.fits()) return cycle.verdict.message;
  for (const scheduling::FilterPlugin* plugin : binding.framework->filters()) {
    if (dynamic_cast<const scheduling::ReservePlugin*>(plugin) != nullptr ||
        plugin->PartitionsGpus()) {
      continue;
    }
    const scheduling::Verdict verdict =
        plugin->Filter(cycle.state, *binding.pod, *without.Find(binding.node));
    if (!verdict.fits()) return verdict.message;
  }
  binding.fits = binding.seen;
  return "";
}

void Scheduler::Send(Binding& binding, kube::Client& client) {
  EndPreparing(binding);
  SetStage(binding, Binding::Stage::kSent);
  SetUntil(binding, Time::max());
  auto call = [shared = shared_, pod = binding.pod, node = binding.node,
               attempt = binding.attempt](kube::Client& with) {
    Status bound = with.Bind(pod->meta.ns, pod->meta.name, node, pod->meta.uid);
    shared->answers.Put({pod->Key(), attempt, Answer::Of::kBind, std::move(bound), {}});
    shared->Wake();
  };
  Post(threads_.binders, client, std::move(call));
}

void Scheduler::TakeAnswers(Time now) {
  for (const Answer& answer : shared_->answers.TakeAll()) {
    const auto found = bindings_.find(answer.key);
    if (found == bindings_.end() || found->second.attempt != answer.attempt) continue;
    if (answer.of == Answer::Of::kBind) {
      TakeBindAnswer(found->second, answer.status, now);
    } else if (answer.of == Answer::Of::kAsk) {
      TakeAskAnswer(found->second, answer, now);
    } else {
      --found->second.writes;
      answered_ = true;
      if (preparing_.contains(answer.key)) due_.insert(answer.key);
      if (!answer.status.ok()) GiveUp(answer.key, answer.status.ToString(), now);
    }
  }
  for (const auto& [write, status] : shared_->cut.TakeAll()) {
    cuts_.Written(write, status);
    answered_ = true;
    for (const std::string& key : write.pods) {
      if (preparing_.contains(key)) due_.insert(key);
    }
  }
  for (const auto& [victim, preemptor, perhaps] : shared_->not_evicted.TakeAll()) {
    const auto* placed = engine_.FindPlaced(victim);
    if (perhaps && going_.contains(victim) && placed != nullptr) {
      unsure_[preemptor].push_back(placed->pod);
    }
    going_.erase(victim);
    engine_.SetLeaving(victim, ending_.contains(victim));
    has_preempted_for_.erase(preemptor);
    if (bindings_.contains(preemptor)) continue;
    if (const auto pod = queue_.TakeThis(preemptor)) queue_.Failed(*pod, now);
  }
  for (EventQueue& telling : shared_->evicted.TakeAll()) Tell(std::move(telling), now);
  for (auto& portion : shared_->told.TakeAll()) {
    telling_ = false;
    for (Shared::Told& told : portion) {
      const std::string key = told.telling.pod->Key();
      if (told.ok) {
        untold_.Forget(key);
      } else if (tellings_.try_emplace(key, std::move(told.telling)).second) {
        untold_.Retry(key, now);
      }
    }
  }
}

// A conflict may come from an earlier binding of this scheduler that was not answered.
void Scheduler::TakeBindAnswer(Binding& binding, const Status& answer, Time now) {
  const std::string key = binding.pod->Key();
  if (answer.ok()) {
    SetStage(binding, Binding::Stage::kBound);
    Arrived(binding, now);
  } else if (IsUncertain(answer) || answer.code() == Code::kConflict) {
    SetStage(binding, Binding::Stage::kDoubtful);
    binding.why = answer.ToString();
    const bool answered = answer.code() == Code::kConflict;
    SetUntil(binding, answered ? now : now + config_.asks.After(++binding.asked));
  } else if (answer.code() == Code::kNotFound) {
    queue_.Remove(key);
    DropBinding(key, true, now);
  } else {
    GiveUp(key, answer.ToString(), now);
  }
}

void Scheduler::TakeAskAnswer(Binding& binding, const Answer& answer, Time now) {
  const std::string key = binding.pod->Key();
  const bool gone = answer.status.code() == Code::kNotFound;
  if (!answer.status.ok() && !gone) {  // the outcome is unknown, so the reservation is kept
    Log(LogLevel::kWarn, "failed to read Pod after unanswered binding",
        {{"pod", key}, {"node", binding.node}, {"error", answer.status.ToString()}});
    SetUntil(binding, now + config_.asks.After(++binding.asked));
  } else if (!gone && answer.node == binding.node) {
    SetStage(binding, Binding::Stage::kBound);
    Arrived(binding, now);
  } else if (!gone && answer.node.empty()) {
    GiveUp(key, std::string(binding.why), now, AfterThat::kSamePlace);
  } else {  // it is deleted or bound elsewhere, which the watch will show
    queue_.Remove(key);
    DropBinding(key, true, now);
  }
}

// Reads the pod back after a binding that was not answered.
void Scheduler::Ask(Binding& binding, kube::Client& client) {
  auto call = [shared = shared_, pod = binding.pod, attempt = binding.attempt](kube::Client& with) {
    Answer answer{pod->Key(), attempt, Answer::Of::kAsk, {}, {}};
    const Result<std::string> node = NodeOf(*pod, with);
    node.ok() ? void(answer.node = *node) : void(answer.status = node.status());
    shared->answers.Put(std::move(answer));
    shared->Wake();
  };
  Post(threads_.binders, client, std::move(call));
}

void Scheduler::Expire(kube::Client& client, Time now) {
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
    Binding& binding = bindings_.at(deadlines_.begin()->second);
    SetUntil(binding, Time::max());
    const bool doubtful = binding.stage == Binding::Stage::kDoubtful;
    doubtful ? Ask(binding, client) : void(due_.insert(binding.pod->Key()));
  }
}

// The watch shows the outcome.
void Scheduler::Settle(const Pod& pod, Time now) {
  const auto found = bindings_.find(pod->Key());
  if (found == bindings_.end()) return;
  const bool there = RunsSomewhere(pod) && pod->node_name == found->second.node &&
                     pod->meta.uid == found->second.pod->meta.uid;
  // The answer to the Bind call may come later than the watch event.
  if (there && found->second.stage != Binding::Stage::kPreparing) Arrived(found->second, now);
  DropBinding(pod->Key(), !there, now);
}

void Scheduler::Arrived(Binding& binding, Time now) {
  if (std::exchange(binding.arrived, true)) return;
  measures_.End(*binding.pod, SchedulerMeasures::Result::kScheduled);
  Tell({binding.pod, "Scheduled",
        fmt::format("Successfully assigned {} to {}", binding.pod->Key(), binding.node),
        binding.node},
       now);
}

void Scheduler::DropBinding(const std::string& key, bool unreserve, Time now) {
  const auto found = bindings_.find(key);
  if (found == bindings_.end()) return;
  EndPreparing(found->second);
  asked_.erase(key);
  SetUntil(found->second, Time::max());
  Binding binding = std::move(found->second);
  bindings_.erase(found);
  if (binding.cuts) {
    cuts_.Drop(binding.node, *binding.pod, unreserve ? Cuts::End::kGivenUp : Cuts::End::kServed);
  }
  if (!unreserve) return;
  engine_.Unreserve(*binding.framework, *binding.pod, binding.node, binding.state);
  engine_.Forget(key);
  OnClusterEvent({ClusterEvent::Kind::kPodLeft, {}, {}, binding.pod, {}, {}}, now);
  if (!binding.gang.empty()) MarkGangDirty(binding.gang, fmt::format("{} lost its place", key));
}

// A pod for which others were evicted keeps its nomination if the node itself is not the cause.
void Scheduler::GiveUp(const std::string& key, const std::string& why, Time now,
                       AfterThat after_that) {
  const auto found = bindings_.find(key);
  if (found == bindings_.end()) return;
  const Pod pod = found->second.pod;
  Log(LogLevel::kWarn, "failed to bind Pod, releasing its reservation",
      {{"pod", key}, {"node", found->second.node}, {"error", why}});
  measures_.End(*pod, SchedulerMeasures::Result::kError);
  Tell({pod, "SchedulerError", fmt::format("{}: {}", found->second.node, why), ""}, now);
  const bool keeps =
      after_that == AfterThat::kSamePlace && engine_.NomineeNode(key) == found->second.node;
  if (!pod->promised.empty() && !keeps) unpromised_.push_back(pod);
  DropBinding(key, true, now);
  if (!keeps) Promise(pod, "", now);
  queue_.Failed(pod, now);
}

}  // namespace nos::controllers
