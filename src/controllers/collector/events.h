// Events of Kubernetes on their way to telemetry: each is told when it is new, and again when it
// has happened twice as often as was told or an hour has passed, so that one that repeats for days
// costs little; never faster than a rate, and what waits longest is dropped, and counted, when too
// many do.
//
//   EventTally events;
//   events.Put(event);
//   for (JsonObject& record : events.Take(now)) ...   // "event", without its time: it has its own
//
// Pure.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "cluster/work.h"
#include "codec/json.h"

namespace nos::controllers {

// The decision that an Event of the autoscaler tells of, as a record with its time: "scale" or
// "move". Nothing: it is no such Event.
std::optional<JsonObject> ScalingRecord(const cluster::KubernetesEvent& event);

class EventTally {
 public:
  static constexpr size_t kMostWaiting = 2000, kMostKnown = 20'000;
  static constexpr double kPerSecond = 20, kBurst = 200;

  // Whether it is to be told.
  bool Put(const cluster::KubernetesEvent& event);
  // What may be told now, the first that came first.
  std::vector<JsonObject> Take(Time now);
  // Since the start.
  uint64_t dropped() const { return dropped_; }

 private:
  struct Told {
    int32_t count = 0;
    Time last{};
    bool waits = false;
  };

  std::unordered_map<std::string, Told> told_;  // by uid
  std::deque<std::string> order_;               // of told_, the oldest first
  std::deque<std::pair<std::string, JsonObject>> waiting_;
  double tokens_ = kBurst;
  Time filled_{};
  uint64_t dropped_ = 0;
};

}  // namespace nos::controllers
