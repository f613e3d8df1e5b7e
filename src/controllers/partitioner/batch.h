// Decides when to plan: one plan serves many pods, soon after the last pod has joined, and planning
// never takes up most of the time.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "base/clock.h"

namespace nos::controllers {

struct BatchTimes {
  Duration idle{};     // since the last pod joined
  Duration timeout{};  // since the first pod joined
};

class Batch {
 public:
  explicit Batch(BatchTimes times) : times_(times) {}

  // The pending pods, under any stable names.
  void Update(std::set<std::string> waiting, Time now);
  // The earliest time of the next plan.
  Time Due(Time now) const;
  // No plan before this time, whatever pods join.
  Time RestsUntil() const { return rest_until_; }
  // All pending pods have been planned for. The next plan waits at least ten times as long as this
  // one took.
  void Planned(Time begin, Time end);

 private:
  BatchTimes times_;
  std::set<std::string> waiting_, planned_;
  std::optional<Time> first_, last_;  // of the pods that no plan has included
  Time rest_until_{};
};

}  // namespace nos::controllers
