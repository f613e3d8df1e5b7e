// Exports telemetry of any number of clusters to ClickHouse over its HTTP interface: samples, all
// other records, and the envelopes that contained them.
//
// Creates and migrates its tables (clickhouse_schema.h). Each row has the identity of its envelope,
// so that a row delivered twice is stored once (ReplacingMergeTree; a query needs FINAL if it must
// not see duplicates before parts merge). An INSERT contains rows of one day, which is one
// partition. A day older than the retention is dropped as a whole.
//
// Source: ClickHouse documentation, "HTTP interface", "RowBinary"; tested with 18.16. Used by one
// thread.
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
  int64_t samples_days = 90, rest_days = 400;  // retention; 0: forever
};

class ClickHouse final : public Sink {
 public:
  static constexpr const char* kName = "clickHouse";

  // All arguments must outlive this object. REQUIRES: CheckDatabase returned OK.
  ClickHouse(ClickHouseOptions options, const Destination& destination, kube::Transport& transport,
             Metrics& metrics);
  // Error: kInvalid: not a valid name.
  static Status CheckDatabase(std::string_view name);

  // Records the GPUs and slices that exist before the first row, and their holders.
  void Know(const std::string& cluster, const telemetryserver::State& state) {
    names_.Follow(cluster, state);
  }
  void Take(std::span<const telemetryserver::Journaled> rows) override;
  Status Send(Time now, Duration& wish) override;

 private:
  enum Table { kSamples, kRecords, kEnvelopes };
  struct Insert {
    Table table = kSamples;
    uint16_t day = 0;            // days since 1970
    std::string body;            // RowBinary
    std::vector<size_t> begins;  // offset of each row
  };

  void TakeRow(const telemetryserver::Journaled& row);
  void TakeRecord(const telemetryserver::Journaled& row, size_t number,
                  const telemetry::Record& record);
  void TakeReadings(const telemetryserver::Journaled& row, telemetry::Millis at,
                    const telemetry::Readings& readings);
  // Body of the INSERT for a row; null: the row is older than the retention.
  std::string* BodyFor(Table table, telemetry::Millis at, telemetry::Millis received);
  int64_t DaysOf(Table table) const;
  // Sends the rows from `first` to before `last`. If they are rejected, sends each half separately.
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
  telemetry::Millis received_ = 0;  // time of the latest envelope
  size_t refusals_ = 0;             // of the current INSERT
  bool migrated_ = false;
  Time dropped_{};  // last time old days were dropped
};

}  // namespace nos::exports
