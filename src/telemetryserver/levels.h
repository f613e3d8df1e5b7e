// Storage levels of samples: raw, and rollups with two step sizes. Internal to this library.
//
// A row holds the samples of one subject in one window (raw: in one flush). Its ID is
// window << kSubjectBits | subject. New rows are therefore appended at the table's end, reading a
// subject takes one seek per window, and old rows are adjacent.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "codec/samples.h"
#include "telemetry/records.h"

namespace nos::telemetryserver {

inline constexpr int kSubjectBits = 28;
inline constexpr int64_t kMaxSubjectId = (int64_t{1} << kSubjectBits) - 1;

constexpr int64_t RowId(int64_t window, int64_t subject) {
  return (window << kSubjectBits) | subject;
}

struct Level {
  const char* table;
  telemetry::Millis step, window;
};
inline constexpr telemetry::Millis kMinute = 60'000, kHour = 60 * kMinute, kDay = 24 * kHour;
// Index 0 is raw: it has no step, and its windows are flushes.
inline constexpr std::array<Level, 3> kLevels = {
    {{"chunks", 0, 0}, {"rollups_5m", 5 * kMinute, 6 * kHour}, {"rollups_1h", kHour, 5 * kDay}}};

constexpr telemetry::Millis FloorTo(telemetry::Millis at, telemetry::Millis step) {
  return at - at % step;
}  // `at` must not be negative

struct Bucket {
  telemetry::Millis at = 0;
  double mean = 0, min = 0, max = 0, count = 0;
};

// Content of a row: metric IDs; raw: one column each, rollups: mean, min, max and count each.
struct Row {
  std::vector<int64_t> metrics;
  SampleBlock block;
};
std::string EncodeRow(const std::vector<int64_t>& metrics, const SampleBlock& block);
Result<Row> DecodeRow(std::string_view bytes, size_t level);
// Buckets of one metric with `at` in [from, to); none if the row does not have it. `level`
// determines the format of the row.
Status AppendBuckets(std::string_view bytes, size_t level, int64_t metric, telemetry::Millis from,
                     telemetry::Millis to, std::vector<Bucket>& buckets);

// Aggregates one window of a subject, with as many metrics as a row can have (64).
class WindowSums {
 public:
  WindowSums(const Level& level, int64_t window);
  // Adds a row of the level below, or of this level. Samples outside the window are ignored.
  Status Add(std::string_view bytes, size_t row_level);
  // Replaces buckets for which the row of this level has more samples.
  Status Merge(std::string_view bytes, size_t row_level);
  bool empty() const { return sums_.empty(); }
  std::string Encode() const;

 private:
  struct Sum {
    double sum = 0, min = 0, max = 0, count = 0;
  };
  Sum* SumOf(int64_t metric, telemetry::Millis at);
  void Add(int64_t metric, const Bucket& bucket);

  const Level& level_;
  const telemetry::Millis begin_;
  std::map<int64_t, std::vector<Sum>> sums_;  // by metric, one Sum per step
};

}  // namespace nos::telemetryserver
