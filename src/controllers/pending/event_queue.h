// Publishes Events, and the partitioner's decisions as conditions of pending pods (verdicts.h).
// It writes in portions and at a pace (pace.h) that leaves the thread to planning while the API
// server is slow. Owned by one thread.
#pragma once

#include <deque>
#include <map>
#include <string>

#include "controllers/verdicts.h"
#include "kube/event_recorder.h"
#include "reconcile/pace.h"
#include "reconcile/reconciler.h"

namespace nos::controllers {

class EventQueue {
 public:
  EventQueue(std::string component, size_t writes_per_portion)
      : writes_(writes_per_portion), events_(std::move(component)), verdicts_(writes_) {}

  // Queues an Event. If there are too many, the oldest are dropped.
  void Add(kube::EventNote note);
  // Drops the queued Events.
  void Clear() { notes_.clear(); }
  Verdicts& verdicts() { return verdicts_; }
  const Verdicts& verdicts() const { return verdicts_; }

  // When the next portion is due. Time::max(): nothing is queued.
  Time Due() const;
  // Publishes the next portion. REQUIRES: it is due.
  void Publish(const reconcile::Listers& view, kube::Client& client, const Clock& clock);

 private:
  void PublishNotes(kube::Client& client, Time now);

  const size_t writes_;
  kube::EventRecorder events_;
  std::deque<kube::EventNote> notes_;
  bool notes_published_last_ = false;  // else verdicts were
  Verdicts verdicts_;
  reconcile::Pace pace_;
};

}  // namespace nos::controllers
