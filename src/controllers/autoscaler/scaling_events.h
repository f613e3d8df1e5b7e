// Publishes Events of the autoscaler, and keeps the log of its decisions.
//
//   ScalingEvents events(config.remembered_decisions, metrics);
//   events.Add(events::NodeRemoved("gpu-7", "a100"));
//   events.Record({.action = "grow", .pool = "a100", .count = 1}, now);
//   if (events.Due() <= now) events.Publish(view, client, clock);
//
// Events are queued and published in portions, at a pace that suits the API server; if there are
// too many, the oldest are dropped. Owned by one thread.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "base/metrics.h"
#include "cluster/node_pool.h"
#include "controllers/autoscaler.h"
#include "controllers/pending/event_queue.h"
#include "controllers/relocations.h"

namespace nos::controllers {

class ScalingEvents {
 public:
  // `remembered`: decisions kept. `metrics` must outlive this; null: no metrics.
  ScalingEvents(size_t remembered, Metrics* metrics);

  void Add(kube::EventNote event) { queue_.Add(std::move(event)); }
  // Queues an Event for what relocations have done; records those that were called off.
  void OfRelocations(const std::vector<RelocationNote>& notes, const reconcile::Listers& view,
                     Time now);

  // Sets time and sequence of the decision, logs and counts it. Long messages are shortened.
  void Record(ScalingDecision decision, Time now);
  const std::deque<ScalingDecision>& decisions() const { return decisions_; }

  // When the next portion is due. Time::max(): nothing is queued.
  Time Due() const { return queue_.Due(); }
  // Publishes the next portion. REQUIRES: it is due.
  void Publish(const reconcile::Listers& view, kube::Client& client, const Clock& clock);

 private:
  void OfCalledOff(const RelocationNote& note, Time now);

  const size_t remembered_;
  Metrics* const metrics_;
  EventQueue queue_{kAutoscalerName, 50};
  std::deque<ScalingDecision> decisions_;
  uint64_t last_sequence_ = 0;
};

}  // namespace nos::controllers
