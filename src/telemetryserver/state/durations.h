// Run times of ended pods and pending times of scheduled pods, the inputs of estimates for pending
// pods.
//
//   durations.AddRun(RunsKeys(pod), pod.finished - pod.started);
//   const std::deque<Millis>* runs = durations.RunsOf("team-a/Job/train");
//
// Bounded: keys without recent additions are removed first.
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
  static constexpr size_t kMaxRuns = 200;  // per key
  static constexpr size_t kMaxKeys = 50'000, kMaxRunsInAll = 1'000'000, kMaxWaits = 100'000;
  static constexpr telemetry::Millis kWaitsKept = 3'600'000;  // across restarts

  void AddRun(const std::vector<std::string>& keys, telemetry::Millis took);
  void AddWait(telemetry::Millis scheduled, telemetry::Millis waited);
  // In order of addition; null: none.
  const std::deque<telemetry::Millis>* RunsOf(const std::string& key) const;
  // Pending times of pods scheduled since `from`.
  std::vector<telemetry::Millis> WaitsSince(telemetry::Millis from) const;

  // Record of a checkpoint made at `at`: {"kind":"durations", "runs":[[key, took..]..],
  // "waits":[[scheduled, waited]..]}. Reporters cannot send such a record.
  Json ToJson(telemetry::Millis at) const;
  // True if `record` is such a record. Read replaces all content.
  static bool IsRecord(const Json& record);
  void Read(const Json& record);

 private:
  struct Runs {
    std::deque<telemetry::Millis> took;
    uint64_t added = 0;  // sequence number of the last addition
  };
  void ForgetHalf();

  std::unordered_map<std::string, Runs> runs_;
  size_t in_all_ = 0;
  uint64_t added_ = 0;
  std::deque<std::pair<telemetry::Millis, telemetry::Millis>> waits_;  // (scheduled, waited)
};

}  // namespace nos::telemetryserver
