// Publishes to other autoscalers how many nodes are missing in pools with a signal
// (scaling_signal.h), and keeps an error with the pool.
//
//   SignalPublisher signals(config, events, schedule);
//   signals.Publish(cycle, cluster);
//
// Owned by one thread.
#pragma once

#include "controllers/autoscaler.h"
#include "controllers/autoscaler/cycle.h"
#include "controllers/autoscaler/decision_schedule.h"
#include "controllers/autoscaler/pools/observed.h"
#include "controllers/autoscaler/scaling_events.h"
#include "controllers/autoscaler/scaling_signal.h"

namespace nos::controllers {

class SignalPublisher {
 public:
  // All must outlive this.
  SignalPublisher(const AutoscalerConfig& config, ScalingEvents& events, DecisionSchedule& schedule)
      : config_(config), events_(events), schedule_(schedule), signal_(config.signal) {}

  // Failures are logged. Failures that a retry does not resolve are also kept in the pool's memory.
  void Publish(const ScalingCycle& cycle, const ObservedCluster& cluster);

 private:
  void NoteResult(const ObservedPool& pool, int missing, const Status& shown, Time now);

  const AutoscalerConfig& config_;
  ScalingEvents& events_;
  DecisionSchedule& schedule_;
  ScalingSignal signal_;
};

}  // namespace nos::controllers
