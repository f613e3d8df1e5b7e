// When to plan: one plan for many pods, soon after the last of them has come, and never so often
// that planning is all there is.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "base/clock.h"

namespace nos::controllers {

struct BatchTimes {
  Duration idle{};     // since the last pod has joined
  Duration timeout{};  // since the first one has
};

class Batch {
 public:
  explicit Batch(BatchTimes times) : times_(times) {}

  // The pods that wait now; any stable names.
  void Update(std::set<std::string> waiting, Time now);
  // The next plan may be made from then on.
  Time Due(Time now) const;
  // No plan before, whoever comes.
  Time RestsUntil() const { return rest_until_; }
  // All that wait have been planned for. Rests ten times as long as it took.
  void Planned(Time begin, Time end);

 private:
  BatchTimes times_;
  std::set<std::string> waiting_, planned_;
  std::optional<Time> first_, last_;  // of those that no plan has seen
  Time rest_until_{};
};

}  // namespace nos::controllers
