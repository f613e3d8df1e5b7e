#include "reconcile/runner.h"

#include <algorithm>

#include "base/log.h"

namespace nos::reconcile {
namespace {

kube::ReflectorOptions CacheOptions(const RunnerOptions& options, const std::string& selector) {
  kube::ReflectorOptions cache;
  cache.field_selector = selector;
  cache.back_off = options.back_off;
  cache.relist_every = options.relist_every;
  cache.wake = options.wake;
  return cache;
}

}  // namespace

RunnerOptions ForNode(const std::string& node) {
  RunnerOptions options;
  options.key = node;
  options.pod_field_selector = "spec.nodeName=" + node;
  options.node_field_selector = "metadata.name=" + node;
  return options;
}

Runner::Runner(kube::Transport& transport, RunnerOptions options)
    : options_(std::move(options)),
      client_(transport),
      pods_(kube::kPods, cluster::ReadPod, CacheOptions(options_, options_.pod_field_selector)),
      nodes_(kube::kNodes, cluster::ReadNode, CacheOptions(options_, options_.node_field_selector)),
      queue_(options_.back_off) {
  if (options_.watch_context) {
    context_ = std::make_unique<ContextCaches>(CacheOptions(options_, ""), options_.context_kinds,
                                               options_.watch_devices);
  }
  view_.context = context_.get();
  pods_.AddHandler([this](const std::string&, const auto& before, const auto& after) {
    if (!changes_.everything) changes_.pods.push_back({before, after});
  });
  nodes_.AddHandler([this](const std::string&, const auto& before, const auto& after) {
    if (!changes_.everything) changes_.nodes.push_back({before, after});
  });
}

void Runner::Use(Reconciler* reconciler) {
  reconciler_ = reconciler;
  news_ = reconciler != nullptr;
  changes_ = Changes();
}

bool Runner::Step(const Clock& clock) {
  const Time now = clock.Now();
  const bool pods_changed = pods_.Pump(client_, now);
  const bool nodes_changed = nodes_.Pump(client_, now);
  const bool context_changed = context_ != nullptr && context_->Pump(client_, now);
  const bool changed = pods_changed || nodes_changed || context_changed;
  if (!synced()) return changed;
  if (reconciler_ == nullptr) {
    if (context_ != nullptr) (void)context_->Take();  // the next reconciler reads everything
    return changed;
  }
  if (changed || news_) queue_.Add(options_.key, now);
  news_ = false;
  const std::optional<std::string> key = queue_.Take(now);
  if (!key) return changed;
  if (context_ != nullptr) changes_.context = context_->Take();
  const ReconcileResult outcome = reconciler_->Reconcile(*key, view_, client_, clock);
  changes_ = Changes();
  changes_.everything = false;
  Schedule(*key, outcome, clock.Now());
  queue_.Done(*key);
  return true;
}

void Runner::Schedule(const std::string& key, const ReconcileResult& outcome, Time now) {
  last_error_ = outcome.error;
  if (outcome.again) queue_.Add(key, now + *outcome.again);
  if (outcome.error.ok()) {
    queue_.Forget(key);
    return;
  }
  queue_.Retry(key, now);
  Log(LogLevel::kDebug, "failed to reconcile object",
      {{"key", key}, {"error", outcome.error.ToString()}});
}

std::optional<Time> Runner::NextDue() const {
  Time due = std::min(pods_.reflector().NextDue(), nodes_.reflector().NextDue());
  if (context_ != nullptr) due = std::min(due, context_->NextDue());
  if (const std::optional<Time> queued = queue_.NextDue()) due = std::min(due, *queued);
  return due;
}

Status Runner::ReadError() const {
  const Status& pods = pods_.reflector().last_error();
  if (!pods.ok()) return pods;
  const Status& nodes = nodes_.reflector().last_error();
  return nodes.ok() && context_ != nullptr ? context_->ReadError() : nodes;
}

void RunUntil(const std::function<bool()>& stop, Runner& runner, WakeSignal& bell,
              const Clock& clock, const std::function<void()>& each) {
  // An upper limit, in case a change does not wake the loop.
  constexpr Duration kMaxWait = std::chrono::minutes(1);
  while (!stop()) {
    each();
    if (runner.Step(clock)) continue;
    const Duration wait = runner.NextDue().value_or(Time::max()) - clock.Now();
    bell.Wait(std::clamp<Duration>(wait, std::chrono::milliseconds(1), kMaxWait));
  }
}

}  // namespace nos::reconcile
