// Telling people what the partitioner decided: Events, and verdicts.h for the pods that wait. A
// portion at a time, and at a pace (pace.h) that leaves the thread to planning when the API server
// is slow to take them. One owner thread.
#pragma once

#include <deque>
#include <map>
#include <string>

#include "reconcile/pace.h"
#include "reconcile/reconciler.h"
#include "controllers/verdicts.h"
#include "kube/event_recorder.h"

namespace nos::controllers {

class Telling {
 public:
  Telling(std::string component, size_t writes_per_portion)
      : writes_(writes_per_portion), events_(std::move(component)), verdicts_(writes_) {}

  // An Event, later. The oldest are forgotten when there are too many.
  void Say(kube::EventNote note);
  Verdicts& verdicts() { return verdicts_; }
  const Verdicts& verdicts() const { return verdicts_; }

  // When the next portion is to be told; Time::max(): all is.
  Time Due() const;
  // Tells it. REQUIRES: it is due.
  void Tell(const reconcile::View& view, kube::Client& client, const Clock& clock);

 private:
  void TellNotes(kube::Client& client, Time now);

  const size_t writes_;
  kube::EventRecorder events_;
  std::deque<kube::EventNote> notes_;
  bool notes_told_last_ = false;  // and not verdicts
  Verdicts verdicts_;
  reconcile::Pace pace_;
};

}  // namespace nos::controllers
