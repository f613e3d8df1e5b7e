// How long pods ran until they ended, and how long they had waited until they were scheduled: what
// estimates of those that wait are made of.
//
//   durations.AddRun(RunsKeys(pod), pod.finished - pod.started);
//   const std::deque<Millis>* runs = durations.RunsOf("team-a/Job/train");
//
// Bounded: what has not been added to for longest is forgotten.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "telemetry/records.h"

namespace nos::telemetryserver {

class Durations {
 public:
  static constexpr size_t kMostRuns = 200;  // of one key
  static constexpr size_t kMostKeys = 50'000, kMostRunsInAll = 1'000'000, kMostWaits = 100'000;
  static constexpr telemetry::Millis kWaitsKept = 3'600'000;  // over restarts

  void AddRun(const std::vector<std::string>& keys, telemetry::Millis took);
  void AddWait(telemetry::Millis scheduled, telemetry::Millis waited);
  // In order; null: none.
  const std::deque<telemetry::Millis>* RunsOf(const std::string& key) const;
  // Of those that were scheduled since `from`: how long they had waited.
  std::vector<telemetry::Millis> WaitsSince(telemetry::Millis from) const;

  // A record of a checkpoint that was made at `at`: {"kind":"durations", "runs":[[key, took..]..],
  // "waits":[[scheduled, waited]..]}. Others that tell such a record are not believed.
  Json ToJson(telemetry::Millis at) const;
  // Whether `record` is one. Takes the place of all that is known.
  static bool IsRecord(const Json& record);
  void Read(const Json& record);

 private:
  struct Runs {
    std::deque<telemetry::Millis> took;
    uint64_t added = 0;  // the last one, of all
  };
  void ForgetHalf();

  std::unordered_map<std::string, Runs> runs_;
  size_t in_all_ = 0;
  uint64_t added_ = 0;
  std::deque<std::pair<telemetry::Millis, telemetry::Millis>> waits_;  // (scheduled, waited)
};

}  // namespace nos::telemetryserver
