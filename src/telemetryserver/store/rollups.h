// Aggregates of samples in steps of 5 minutes and 1 hour (tables `rollups_5m`, `rollups_1h` and
// `late`).
//
//   NOS_RETURN_IF_ERROR(rollups.Begin(first_sample_at));   // once, with the first flush
//   NOS_RETURN_IF_ERROR(rollups.MarkLate(subject, times)); // those that are rolled up already
//   while (*rollups.Step(now)) continue;
//
// Each level is rolled up window by window, a few subjects a step. Samples that arrive after their
// window add the subject to `late`, which the next steps roll up again. One thread uses it. Errors:
// see Sqlite. A damaged row is logged and skipped. Internal to this library.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "telemetryserver/levels.h"
#include "telemetryserver/store/database.h"
#include "telemetryserver/store/subject_table.h"

namespace nos::telemetryserver {

class Rollups {
 public:
  // All arguments must outlive this object.
  Rollups(Database& db, SubjectTable& subjects) : db_(db), subjects_(subjects) {}

  // --- Within a transaction ---
  // Sets the time of the first window, unless it is known.
  Status Begin(telemetry::Millis first);
  Status MarkLate(int64_t subject, std::span<const telemetry::Millis> times);

  // --- Each a transaction of its own, of bounded work ---
  // Writes some rollups that are due. False: none are due.
  Result<bool> Step(telemetry::Millis now);
  // Removes some rows of a level older than `now - keep`. False: there are none.
  Result<bool> Expire(size_t level, telemetry::Millis now, telemetry::Millis keep);

  // Time up to which samples are rolled up into the level; 0: not begun.
  Result<telemetry::Millis> Until(size_t level);

 private:
  struct Window {
    size_t level = 0;
    int64_t number = 0;
    std::vector<int64_t> sources;  // windows of the level below that it consists of
  };
  Result<std::vector<int64_t>> SourcesOf(size_t level, int64_t number);
  Result<bool> StepLate();
  Result<bool> StepLevel(size_t level, telemetry::Millis now);
  Status RollUp(const Window& window, int64_t first_subject, int64_t last_subject);
  Status Write(const Window& window, int64_t subject, WindowSums& sums);

  Database& db_;
  SubjectTable& subjects_;
};

}  // namespace nos::telemetryserver
