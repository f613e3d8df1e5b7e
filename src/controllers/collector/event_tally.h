// Limits the Kubernetes Events that are reported to telemetry. An Event is reported when it is new,
// and again when its count has doubled or an hour has passed, so that an Event that repeats for
// days costs little. A rate limit applies. If too many Events are queued, the oldest is dropped and
// counted.
//
//   EventTally events;
//   events.Put(event);
//   for (JsonObject& record : events.Take(now)) ...   // "event", with the time of the Event itself
//
// No I/O.
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

// The decision that an Event of the autoscaler describes, as a record with its time: "scale" or
// "move". No value: the Event does not describe a decision.
std::optional<JsonObject> ScalingRecord(const cluster::KubernetesEvent& event);

class EventTally {
 public:
  static constexpr size_t kMaxWaiting = 2000, kMaxKnown = 20'000;
  static constexpr double kPerSecond = 20, kBurst = 200;

  // Returns true if the Event will be reported.
  bool Put(const cluster::KubernetesEvent& event);
  // The records that the rate limit allows now, in order of arrival.
  std::vector<JsonObject> Take(Time now);
  // Since the start.
  uint64_t dropped() const { return dropped_; }

 private:
  struct Reported {
    int32_t count = 0;
    Time last{};
    bool waits = false;
  };

  std::unordered_map<std::string, Reported> reported_;  // by UID
  std::deque<std::string> order_;                       // keys of reported_, oldest first
  std::deque<std::pair<std::string, JsonObject>> waiting_;
  double tokens_ = kBurst;
  Time filled_{};
  uint64_t dropped_ = 0;
};

}  // namespace nos::controllers
