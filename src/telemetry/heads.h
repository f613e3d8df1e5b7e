// The samples that have come since the last ones were written as chunks: by subject, a column a
// metric.
//
// Of one subject at one time the last value counts. Not thread-safe.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "codec/samples.h"
#include "telemetry/records.h"

namespace nos::telemetry {

struct Head {
  int64_t subject = 0;  // its number in the store; 0: not known yet
  std::vector<std::string> metrics;
  SampleBlock block;  // times as they came
};

struct Sample {
  Millis at = 0;
  double value = 0;
};

class Heads {
 public:
  void Add(Millis at, const Readings& readings);
  // Of the range, in order.
  std::vector<Sample> Read(const std::string& subject, const std::string& metric, Millis from,
                           Millis to) const;
  const std::unordered_map<std::string, Head>& all() const { return heads_; }
  std::unordered_map<std::string, Head>& all() { return heads_; }
  // So many values are in here.
  size_t samples() const { return samples_; }
  Millis oldest() const { return oldest_; }  // 0: empty
  // All has been written. Those of whom nothing came since the last time are forgotten.
  void Clear();

 private:
  std::unordered_map<std::string, Head> heads_;
  size_t samples_ = 0;
  Millis oldest_ = 0;
};

// In order of time, each time once. Of equal times the last counts.
SampleBlock Ordered(const SampleBlock& block);

}  // namespace nos::telemetry
