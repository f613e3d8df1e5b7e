// Metrics of the scheduler (docs/metrics.md). Metrics with the meaning of a kube-scheduler metric
// have its name and labels, so that its dashboards and alerts work here, too.
#pragma once

#include <string>
#include <unordered_map>

#include "controllers/metrics.h"
#include "scheduling/queue.h"

namespace nos::controllers {

class SchedulerMetrics {
 public:
  // Null: no metrics are kept.
  explicit SchedulerMetrics(Metrics* metrics) : metrics_(metrics) {}

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
