// Events on quotas, published in portions at a pace that suits the API server.
//
//   QuotaEvents events(config.writes_per_call);
//   events.Add(quota, kube::EventType::kNormal, "Borrowing", "Using beyond min: 2 of cpu");
//   events.Publish(client, clock);
//
// Best effort: the oldest are dropped if there are too many, and a failed write is not repeated.
// Owned by one thread.
#pragma once

#include <deque>
#include <string>

#include "base/clock.h"
#include "cluster/elastic_quota.h"
#include "kube/event_recorder.h"
#include "reconcile/pace.h"

namespace nos::controllers {

class QuotaEvents {
 public:
  explicit QuotaEvents(size_t writes_per_call) : writes_per_call_(writes_per_call) {}

  void Add(const cluster::ElasticQuota& quota, kube::EventType type, std::string reason,
           std::string message);
  void Clear() { queue_.clear(); }
  // Publishes the next portion if it is due.
  void Publish(kube::Client& client, const Clock& clock);
  // Time::max(): nothing is queued.
  Time Due() const { return queue_.empty() ? Time::max() : pace_.next(); }

 private:
  const size_t writes_per_call_;
  kube::EventRecorder recorder_{"nos-operator"};
  std::deque<kube::EventNote> queue_;
  reconcile::Pace pace_;
};

}  // namespace nos::controllers
