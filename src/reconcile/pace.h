// How fast to go on with what may take long and is not urgent, on a thread that has better to do:
// telling people, for instance, when each Event waits for a webhook that does not answer.
//
//   if (now < pace.next()) return;
//   const std::vector<Status> written = Write(portion, client.Within(pace.patience()));
//   pace.Took(clock.Now() - now, clock.Now());
//
// No more than a tenth of the time is spent on portions that take longer than a moment, and none of
// them takes for ever: first patience is short, and grows as long as it is used up. One owner
// thread.
#pragma once

#include <algorithm>

#include "base/clock.h"

namespace nos::reconcile {

class Pace {
 public:
  // For each request of the next portion.
  Duration patience() const { return patience_; }
  bool most_patient() const { return patience_ == kMostPatience; }
  // When the next portion may begin.
  Time next() const { return next_; }

  void Took(Duration time, Time now) {
    patience_ = std::clamp<Duration>(2 * time, kLeastPatience, kMostPatience);
    next_ = time < kMoment ? now : now + 10 * time;
  }

 private:
  static constexpr Duration kMoment = std::chrono::seconds(1);
  static constexpr Duration kLeastPatience = std::chrono::seconds(3);
  // Longer than webhooks are waited for, unless they ask for it (timeoutSeconds: 10 by default).
  static constexpr Duration kMostPatience = std::chrono::seconds(15);

  Duration patience_ = kLeastPatience;
  Time next_{};
};

}  // namespace nos::reconcile
