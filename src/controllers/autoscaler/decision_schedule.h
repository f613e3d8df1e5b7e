// Decides when the autoscaler decides again: after a change in the caches, or when a deadline
// passes, but never sooner than a pause after the last decision.
//
//   DecisionSchedule schedule(config.pool_sync_interval);
//   if (schedule.IsDue(view, now)) {
//     schedule.Begin(view, begin);
//     schedule.DecideBy(pod_is_settled_at);   // any number of deadlines
//     schedule.End(begin, clock.Now());
//   }
//   next = schedule.Next(view);
//
// The pause is a multiple of the time that the decision took, so that decisions use a bounded share
// of the time. Owned by one thread.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/clock.h"
#include "reconcile/reconciler.h"

namespace nos::controllers {

class DecisionSchedule {
 public:
  // `longest`: a decision is due this long after the last one even if nothing changes.
  explicit DecisionSchedule(Duration longest) : longest_(longest) {}

  bool IsDue(const reconcile::Listers& view, Time now) const;
  // Starts a decision from the current caches. Drops all deadlines.
  void Begin(const reconcile::Listers& view, Time begin);
  void End(Time begin, Time end);
  // Sets a deadline. The earliest one counts.
  void DecideBy(Time time) { decide_by_ = std::min(decide_by_, time); }
  // The time of the next decision if the caches stay as they are.
  Time Next(const reconcile::Listers& view) const;

 private:
  bool HasNews(const reconcile::Listers& view) const;

  const Duration longest_;
  Time rest_until_{}, decide_by_{};
  // Cache versions of the last decision.
  uint64_t pods_version_ = 0, nodes_version_ = 0, context_version_ = 0;
};

}  // namespace nos::controllers
