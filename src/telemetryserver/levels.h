// How samples are kept: raw, and in rollups of two steps. Internal to this room.
//
// A row of a table holds one subject's samples of one window (raw: of one flush). Its number is
// window << kSubjectBits | subject: what is written is always at the table's end, what is read of
// one subject is one seek a window, and what is old lies together.
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
inline constexpr int64_t kMostSubjectId = (int64_t{1} << kSubjectBits) - 1;

constexpr int64_t RowId(int64_t window, int64_t subject) {
  return (window << kSubjectBits) | subject;
}

struct Level {
  const char* table;
  telemetry::Millis step, window;
};
inline constexpr telemetry::Millis kMinute = 60'000, kHour = 60 * kMinute, kDay = 24 * kHour;
// Index 0 is raw: without a step, its windows are flushes.
inline constexpr std::array<Level, 3> kLevels = {
    {{"chunks", 0, 0}, {"rollups_5m", 5 * kMinute, 6 * kHour}, {"rollups_1h", kHour, 5 * kDay}}};

constexpr telemetry::Millis FloorTo(telemetry::Millis at, telemetry::Millis step) { return at - at % step; }  // `at` not negative

struct Bucket {
  telemetry::Millis at = 0;
  double mean = 0, min = 0, max = 0, count = 0;
};

// What one row says: metrics by number; raw: one column each, rollups: mean, min, max and count.
struct Row {
  std::vector<int64_t> metrics;
  SampleBlock block;
};
std::string EncodeRow(const std::vector<int64_t>& metrics, const SampleBlock& block);
Result<Row> DecodeRow(std::string_view bytes);
// Of one metric, with `at` in [from, to). Nothing where the row does not have it. `level` says how
// the row is to be read.
Status AppendBuckets(std::string_view bytes, size_t level, int64_t metric, telemetry::Millis from, telemetry::Millis to,
                     std::vector<Bucket>& buckets);

// Sums up one subject's window, of as many metrics as a row can have (64).
class WindowSums {
 public:
  WindowSums(const Level& level, int64_t window);
  // A row of the level below, or of this one. What lies outside the window is not counted.
  Status Add(std::string_view bytes, size_t row_level);
  // Takes those buckets of a row of this level that have more samples than here.
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
  std::map<int64_t, std::vector<Sum>> sums_;  // by metric, a Sum a step
};

}  // namespace nos::telemetryserver
