// Tables in ClickHouse and migrations from older versions. Internal to this library.
//
// `at` and other times are milliseconds since the epoch: the oldest supported ClickHouse has
// neither DateTime64 (toDateTime(intDiv(at, 1000)) gives a DateTime) nor TTL.
#pragma once

#include <array>
#include <string_view>

namespace nos::exports {

// Entry n migrates a database from version n to n + 1; statements end with ";". A migration may run
// more than once. Released migrations are never changed; new ones are appended. "{}" is the
// database.
inline constexpr std::array<std::string_view, 1> kClickHouseMigrations = {
    R"(CREATE TABLE IF NOT EXISTS {}.samples (
  date Date, cluster String, subject String, metric String, at Int64, value Float64,
  node String, namespace String, pod String
) ENGINE = ReplacingMergeTree PARTITION BY date ORDER BY (cluster, subject, metric, at);
CREATE TABLE IF NOT EXISTS {}.records (
  date Date, cluster String, kind String, object String, at Int64,
  source String, boot String, sequence UInt64, record UInt32, body String
) ENGINE = ReplacingMergeTree PARTITION BY date
  ORDER BY (cluster, kind, object, at, source, boot, sequence, record);
CREATE TABLE IF NOT EXISTS {}.envelopes (
  date Date, cluster String, source String, boot String, sequence UInt64,
  sent_at Int64, received Int64, lost UInt64, records UInt32
) ENGINE = ReplacingMergeTree PARTITION BY date ORDER BY (cluster, source, boot, sequence);)"};

inline constexpr std::string_view kClickHouseVersions =
    "CREATE TABLE IF NOT EXISTS {}.schema_versions (version UInt32, at DateTime) "
    "ENGINE = MergeTree ORDER BY version";

}  // namespace nos::exports
