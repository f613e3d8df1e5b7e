// Limits the time spent on slow work that is not urgent on a thread with other duties, for example
// on publishing Events while a webhook makes each write wait.
//
//   if (now < pace.next()) return;
//   const std::vector<Status> written = Write(portion, client.Within(pace.patience()));
//   pace.Took(clock.Now() - now, clock.Now());
//
// Portions that take longer than a moment use at most a tenth of the time. Each portion has a time
// limit, which starts short and grows while portions use it up. Owned by one thread.
#pragma once

#include <algorithm>

#include "base/clock.h"

namespace nos::reconcile {

class Pace {
 public:
  // Time limit of each request in the next portion.
  Duration patience() const { return patience_; }
  bool most_patient() const { return patience_ == kMaxPatience; }
  // Earliest start of the next portion.
  Time next() const { return next_; }

  void Took(Duration time, Time now) {
    patience_ = std::clamp<Duration>(2 * time, kMinPatience, kMaxPatience);
    next_ = time < kMoment ? now : now + 10 * time;
  }

 private:
  static constexpr Duration kMoment = std::chrono::seconds(1);
  static constexpr Duration kMinPatience = std::chrono::seconds(3);
  // Longer than the default timeout of admission webhooks (timeoutSeconds: 10).
  static constexpr Duration kMaxPatience = std::chrono::seconds(15);

  Duration patience_ = kMinPatience;
  Time next_{};
};

}  // namespace nos::reconcile
