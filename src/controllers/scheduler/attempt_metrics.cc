#include "controllers/scheduler/attempt_metrics.h"

namespace nos::controllers {
namespace {

constexpr int kManyAttempts = 15;  // reported as "15+"

std::string NameOf(SchedulerMetrics::Result result) {
  switch (result) {
    case SchedulerMetrics::Result::kScheduled:
      return "scheduled";
    case SchedulerMetrics::Result::kUnschedulable:
      return "unschedulable";
    case SchedulerMetrics::Result::kError:
      break;
  }
  return "error";
}

}  // namespace

void SchedulerMetrics::Begin(const cluster::Pod& pod) {
  if (metrics_ == nullptr) return;
  Attempts& attempts = attempts_[pod.Key()];
  attempts.last = watch_.Now();
  if (++attempts.count == 1) attempts.first = attempts.last;
}

void SchedulerMetrics::End(const cluster::Pod& pod, Result result) {
  const auto found = attempts_.find(pod.Key());
  if (found == attempts_.end()) return;
  const Attempts& attempts = found->second;
  const Time now = watch_.Now();
  const MetricLabels labels{{"result", NameOf(result)}, {"profile", pod.scheduler_name}};
  metrics_->Count(kAttempts, labels);
  metrics_->Observe(kAttemptDuration, labels, now - attempts.last);
  if (result != Result::kScheduled) return;
  const bool many = attempts.count > kManyAttempts;
  metrics_->Observe(kSchedulingDuration,
                    {{"attempts", many ? "15+" : std::to_string(attempts.count)}},
                    now - attempts.first);
  attempts_.erase(found);
}

void SchedulerMetrics::Forget(const std::string& key) { attempts_.erase(key); }

void SchedulerMetrics::LooksForVictims() {
  if (metrics_ != nullptr) metrics_->Count(kPreemptions, {});
}

void SchedulerMetrics::Preempted(size_t victims) {
  if (metrics_ == nullptr) return;
  metrics_->ObserveSize(kVictims, {}, victims);
}

void SchedulerMetrics::Pending(const scheduling::SchedulingQueue& queue) {
  if (metrics_ == nullptr) return;
  const auto set = [&](const char* name, size_t pods) {
    metrics_->Set(kPendingPods, {{"queue", name}}, static_cast<double>(pods));
  };
  set("active", queue.ready());
  set("backoff", queue.paused());
  set("unschedulable", queue.asleep());
  set("gated", queue.gated());
}

}  // namespace nos::controllers
