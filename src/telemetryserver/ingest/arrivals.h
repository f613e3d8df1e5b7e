// When records arrived, by the hour that they are about: results computed from stored history are
// outdated if a record about their time arrived since.
//
//   const uint64_t mark = arrivals.Mark();        // before the computation
//   if (arrivals.Changed(hour, mark)) ...         // compute it again
//
// Bounded: the oldest hours are merged. Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>

#include "telemetry/records.h"

namespace nos::telemetryserver {

class Arrivals {
 public:
  static constexpr size_t kMaxHours = 20'000;  // two years

  // Samples of `at` became visible.
  void AddSamples(telemetry::Millis at);
  // A change of the state from `at` on is on disk.
  void AddChange(telemetry::Millis at);
  uint64_t Mark() const;
  // Since `mark`, samples of this hour arrived, or a change of its state. REQUIRES: `hour` is the
  // beginning of an hour.
  bool Changed(telemetry::Millis hour, uint64_t mark) const;

 private:
  using Hours = std::map<telemetry::Millis, uint64_t>;  // number of the last arrival
  void Add(telemetry::Millis at, Hours& hours);

  mutable std::mutex mutex_;
  uint64_t number_ = 0;
  Hours samples_, changes_;
  telemetry::Millis merged_until_ = -1;  // hours up to this one, with their last arrival
  uint64_t merged_ = 0;
};

}  // namespace nos::telemetryserver
