// Samples received since the last flush to chunks: by subject, one column per metric.
//
// For equal times of a subject the last value is valid. Not thread-safe.
#pragma once

#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "codec/samples.h"
#include "telemetry/records.h"

namespace nos::telemetryserver {

// Maximum number of metric names of a cluster beyond those in units.h, because names are never
// removed.
inline constexpr size_t kMaxClusterMetrics = 150;

struct Head {
  int64_t subject = 0;  // its ID in the store; 0: not known yet
  std::vector<std::string> metrics;
  SampleBlock block;  // times in order of arrival
  size_t filled = 0;  // number of earlier, full blocks of the subject
};
using HeadsBySubject = std::unordered_map<std::string, Head>;

struct Sample {
  telemetry::Millis at = 0;
  double value = 0;
};

class Heads {
 public:
  // Returns the number of values not stored because the subject or cluster has too many metrics.
  size_t Add(telemetry::Millis at, const telemetry::Readings& readings);
  // Samples in the range, in order.
  std::vector<Sample> Read(const std::string& subject, const std::string& metric,
                           telemetry::Millis from, telemetry::Millis to) const;
  const HeadsBySubject& all() const { return heads_; }
  HeadsBySubject& all() { return heads_; }
  // Full blocks: the first one of each subject, the second one, ... A reporter that was offline for
  // hours delivers more at once than one block takes.
  const std::vector<HeadsBySubject>& full() const { return full_; }
  // Number of values in memory.
  size_t samples() const { return samples_; }
  telemetry::Millis oldest() const { return oldest_; }  // 0: empty
  // Call after all samples are written. Removes subjects without samples since the last call.
  void Clear();

 private:
  void PutAside(const std::string& subject, Head& head);

  HeadsBySubject heads_;
  std::vector<HeadsBySubject> full_;
  std::set<std::string> others_;  // names of metrics not in units.h
  size_t samples_ = 0;
  telemetry::Millis oldest_ = 0;
};

// Sorted by time; of equal times the last sample is kept.
SampleBlock Ordered(const SampleBlock& block);

}  // namespace nos::telemetryserver
