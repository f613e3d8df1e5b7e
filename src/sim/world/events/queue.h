// Actions of a world with virtual time, ordered by time and then by insertion. One thread.
//
//   queue.At(now + std::chrono::seconds(5), [&] { node.Reboot(); });
//   while (queue.Due(now)) queue.RunNext();
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "base/clock.h"

namespace nos::sim {

class EventQueue {
 public:
  using Action = std::function<void()>;

  void At(Time when, Action action) {
    actions_.emplace(std::pair{when, next_sequence_++}, std::move(action));
  }
  // Makes time stop at `when` without an action, for actors that check the clock themselves.
  void WakeAt(Time when) {
    At(when, [] {});
  }

  bool Due(Time now) const { return !actions_.empty() && actions_.begin()->first.first <= now; }
  std::optional<Time> NextTime() const {
    if (actions_.empty()) return std::nullopt;
    return actions_.begin()->first.first;
  }
  // Removes the earliest action, then runs it; the action may add more. REQUIRES: not empty.
  void RunNext() {
    auto earliest = actions_.extract(actions_.begin());
    earliest.mapped()();
  }
  size_t size() const { return actions_.size(); }

 private:
  uint64_t next_sequence_ = 0;
  std::map<std::pair<Time, uint64_t>, Action> actions_;
};

}  // namespace nos::sim
