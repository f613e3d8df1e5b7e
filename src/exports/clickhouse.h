// Telemetry to ClickHouse, for fleets: samples, all other records, and which envelopes they came
// in, of any number of clusters, over its HTTP interface.
//
// The tables are made and brought up to date by this (clickhouse_schema.h). Rows have the identity
// of what they came in, so that what is delivered twice is there once (ReplacingMergeTree; FINAL in
// a query where it matters before parts have merged). An INSERT has rows of one day, which is one
// partition; whole days are dropped when they are older than they are to be kept.
//
// Source: ClickHouse documentation, "HTTP interface", "RowBinary"; tried with 18.16. One owner.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "exports/destination.h"
#include "exports/exporter.h"
#include "exports/series.h"
#include "kube/transport.h"

namespace nos::exports {

struct ClickHouseOptions {
  std::string database = "nos";                // letters, digits, underscores
  int64_t samples_days = 90, rest_days = 400;  // kept; 0: for ever
};

class ClickHouse final : public Sink {
 public:
  static constexpr const char* kName = "clickHouse";

  // All must outlive this. REQUIRES: CheckDatabase.
  ClickHouse(ClickHouseOptions options, const Destination& destination, kube::Transport& transport,
             Metrics& metrics);
  // Error: kInvalid: it is no name.
  static Status CheckDatabase(std::string_view name);

  // What GPUs and slices there were before the first row, and whose.
  void Know(const std::string& cluster, const telemetryserver::State& state) {
    names_.Follow(cluster, state);
  }
  void Take(std::span<const telemetryserver::Journaled> rows) override;
  Status Send(Time now, Duration& wish) override;

 private:
  enum Table { kSamples, kRecords, kEnvelopes };
  struct Insert {
    Table table = kSamples;
    uint16_t day = 0;            // since 1970
    std::string body;            // RowBinary
    std::vector<size_t> begins;  // of the rows in it
  };

  void TakeRow(const telemetryserver::Journaled& row);
  void TakeRecord(const telemetryserver::Journaled& row, size_t number, const telemetry::Record& record);
  void TakeReadings(const telemetryserver::Journaled& row, telemetry::Millis at,
                    const telemetry::Readings& readings);
  // Where a row goes; null: it is older than anything is kept.
  std::string* BodyFor(Table table, telemetry::Millis at, telemetry::Millis received);
  int64_t DaysOf(Table table) const;
  // The rows from `first` to before `last`. Where they are refused together, half of them at a
  // time.
  Status Post(const Insert& insert, size_t first, size_t last, Duration& wish);
  Result<std::string> Query(const std::string& sql, std::string body, Duration& wish);
  Status Migrate(Duration& wish);
  Status DropOld(Duration& wish);

  const ClickHouseOptions options_;
  const Destination& destination_;
  kube::Transport& transport_;
  Metrics& metrics_;
  SeriesNames names_{{}};
  std::deque<Insert> inserts_;
  telemetry::Millis received_ = 0;  // the latest
  size_t refusals_ = 0;             // of the INSERT that is being sent
  bool migrated_ = false;
  Time dropped_{};  // when old days were dropped last
};

}  // namespace nos::exports
