// What the scheduler tells of itself in metrics (docs/metrics.md): under kube-scheduler's names and
// with its labels where they mean the same, so that dashboards and alerts for it serve here, too.
#pragma once

#include <string>
#include <unordered_map>

#include "base/metrics.h"
#include "scheduling/queue.h"

namespace nos::controllers {

inline constexpr MetricFamily kAttempts{
    MetricFamily::Kind::kCounter, "scheduler_schedule_attempts_total",
    "Attempts to schedule a pod, by result (scheduled, unschedulable or error) and profile."};
inline constexpr MetricFamily kAttemptDuration{
    MetricFamily::Kind::kDuration, "scheduler_scheduling_attempt_duration_seconds",
    "How long an attempt took, binding included, by result and profile."};
inline constexpr MetricFamily kSchedulingDuration{
    MetricFamily::Kind::kDuration, "scheduler_pod_scheduling_sli_duration_seconds",
    "From a pod's first attempt until it was bound, by the number of attempts."};
inline constexpr MetricFamily kPendingPods{
    MetricFamily::Kind::kGauge, "scheduler_pending_pods",
    "Pods that wait, by queue: active, backoff, unschedulable, gated."};
inline constexpr MetricFamily kPreemptions{
    MetricFamily::Kind::kCounter, "scheduler_preemption_attempts_total",
    "Times that a pod that was refused looked for less important ones in its way."};
inline constexpr MetricFamily kVictims{MetricFamily::Kind::kSize, "scheduler_preemption_victims",
                                       "Pods evicted for a more important one, each time."};

class SchedulerMeasures {
 public:
  // Null: none are kept.
  explicit SchedulerMeasures(Metrics* metrics) : metrics_(metrics) {}

  enum class Result { kScheduled, kUnschedulable, kError };
  void Begin(const cluster::Pod& pod);
  void End(const cluster::Pod& pod, Result result);
  // It waits no longer, for whatever reason.
  void Forget(const std::string& key);
  void LooksForVictims();
  void Preempted(size_t victims);
  void Pending(const scheduling::SchedulingQueue& queue);

 private:
  struct Attempts {
    Time first, last;
    int count = 0;
  };

  Metrics* metrics_;
  const SteadyClock watch_;
  std::unordered_map<std::string, Attempts> attempts_;  // by pod key
};

}  // namespace nos::controllers
