// Metrics of the scheduler (docs/metrics.md). Metrics with the meaning of a kube-scheduler metric
// have its name and labels, so that its dashboards and alerts work here, too.
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
    "Latency of an attempt, including the binding, by result and profile."};
inline constexpr MetricFamily kSchedulingDuration{
    MetricFamily::Kind::kDuration, "scheduler_pod_scheduling_sli_duration_seconds",
    "Time from a pod's first attempt to its binding, by number of attempts."};
inline constexpr MetricFamily kPendingPods{
    MetricFamily::Kind::kGauge, "scheduler_pending_pods",
    "Number of pending pods, by queue: active, backoff, unschedulable, gated."};
inline constexpr MetricFamily kPreemptions{
    MetricFamily::Kind::kCounter, "scheduler_preemption_attempts_total",
    "Total number of preemption attempts for unschedulable pods."};
inline constexpr MetricFamily kVictims{MetricFamily::Kind::kSize, "scheduler_preemption_victims",
                                       "Number of victims per preemption."};

class SchedulerMeasures {
 public:
  // Null: no metrics are kept.
  explicit SchedulerMeasures(Metrics* metrics) : metrics_(metrics) {}

  enum class Result { kScheduled, kUnschedulable, kError };
  void Begin(const cluster::Pod& pod);
  void End(const cluster::Pod& pod, Result result);
  // The pod is no longer pending, for whatever reason.
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
