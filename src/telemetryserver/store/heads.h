// The samples that have come since the last ones were written as chunks: by subject, a column a
// metric.
//
// Of one subject at one time the last value counts. Not thread-safe.
#pragma once

#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "codec/samples.h"
#include "telemetry/records.h"

namespace nos::telemetryserver {

// Names that a cluster's metrics may have beyond ours (units.h), all together: each is kept for
// ever.
inline constexpr size_t kMostClusterMetrics = 150;

struct Head {
  int64_t subject = 0;  // its number in the store; 0: not known yet
  std::vector<std::string> metrics;
  SampleBlock block;  // times as they came
  size_t filled = 0;  // earlier blocks of the subject that were full
};
using HeadsBySubject = std::unordered_map<std::string, Head>;

struct Sample {
  telemetry::Millis at = 0;
  double value = 0;
};

class Heads {
 public:
  // Returns how many of the values are not kept: the subject or the cluster has too many metrics.
  size_t Add(telemetry::Millis at, const telemetry::Readings& readings);
  // Of the range, in order.
  std::vector<Sample> Read(const std::string& subject, const std::string& metric, telemetry::Millis from,
                           telemetry::Millis to) const;
  const HeadsBySubject& all() const { return heads_; }
  HeadsBySubject& all() { return heads_; }
  // Blocks that were full before: of each subject the first of them, the second, ... A reporter
  // that was offline for hours delivers more at once than one block takes.
  const std::vector<HeadsBySubject>& full() const { return full_; }
  // So many values are in here.
  size_t samples() const { return samples_; }
  telemetry::Millis oldest() const { return oldest_; }  // 0: empty
  // All has been written. Those of whom nothing came since the last time are forgotten.
  void Clear();

 private:
  void PutAside(const std::string& subject, Head& head);

  HeadsBySubject heads_;
  std::vector<HeadsBySubject> full_;
  std::set<std::string> others_;  // names of metrics that are not ours
  size_t samples_ = 0;
  telemetry::Millis oldest_ = 0;
};

// In order of time, each time once. Of equal times the last counts.
SampleBlock Ordered(const SampleBlock& block);

}  // namespace nos::telemetryserver
