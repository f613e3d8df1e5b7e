// Measurements of many subjects at one time.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "telemetryserver/store/archive.h"
#include "telemetryserver/store/archive_lease.h"

namespace nos::telemetryserver {
namespace {

using Names = std::map<int64_t, std::string>;

Result<Names> MetricNames(Sqlite& db) {
  Names names;
  NOS_ASSIGN(SqliteStatement select, db.Prepare("SELECT id, name FROM metrics"));
  NOS_RETURN_IF_ERROR(select.Each(
      [&](SqliteRow& row) { names.emplace(row.Integer(0), std::string(row.Text(1))); }));
  return names;
}

// Windows of a level that contain the time.
Result<std::vector<int64_t>> WindowsAt(Sqlite& db, size_t level, telemetry::Millis from,
                                       telemetry::Millis at) {
  if (level > 0) return std::vector<int64_t>{at / kLevels.at(level).window};
  std::vector<int64_t> windows;
  NOS_ASSIGN(SqliteStatement flushes,
             db.Prepare("SELECT id FROM flushes WHERE last > ? AND first <= ?"));
  NOS_RETURN_IF_ERROR(
      flushes.Each([&](SqliteRow& row) { windows.push_back(row.Integer(0)); }, from, at));
  return windows;
}

// Values of one subject: the last of each metric with a time after `from` and not after `at`.
struct Values {
  telemetry::Millis from = 0, at = 0;
  std::map<int64_t, std::pair<telemetry::Millis, double>> last;  // by metric

  Status Take(std::string_view bytes, size_t level) {
    NOS_ASSIGN(const Row row, DecodeRow(bytes, level));
    const size_t columns = level == 0 ? 1 : 4;
    for (size_t i = 0; i < row.block.times.size(); ++i) {
      const telemetry::Millis time = row.block.times[i];
      if (time <= from || time > at) continue;
      for (size_t m = 0; m < row.metrics.size(); ++m) {
        const double value = row.block.columns[m * columns][i];
        auto& [known, kept] = last[row.metrics[m]];
        if (!std::isnan(value) && time >= known) known = time, kept = value;
      }
    }
    return Status::Ok();
  }
};

}  // namespace

Result<size_t> Archive::LevelAt(Sqlite& db, telemetry::Millis at, telemetry::Millis now) const {
  const std::array<telemetry::Millis, 2> kept = {keep_.raw, keep_.rollups_5m};
  for (size_t level = 0; level < kept.size(); ++level) {
    NOS_ASSIGN(const telemetry::Millis above, RolledUntil(db, level + 1));
    if (at >= std::min(above, now - kept.at(level))) return level;
  }
  return kLevels.size() - 1;
}

Status Archive::Measured(int64_t cluster, const std::vector<std::string>& subjects,
                         telemetry::Millis at, telemetry::Millis within, telemetry::Millis now,
                         FunctionRef<void(telemetry::Millis at, telemetry::Readings)> visit) {
  NOS_ASSIGN(Sqlite taken, Take());
  Lease db(*this, std::move(taken));
  NOS_ASSIGN(const size_t level, LevelAt(*db, at, now));
  const telemetry::Millis from = level == 0 ? at - within : at - kLevels.at(level).step;
  NOS_ASSIGN(const Names names, MetricNames(*db));
  NOS_ASSIGN(const std::vector<int64_t> windows, WindowsAt(*db, level, from, at));
  if (windows.empty()) return Status::Ok();
  NOS_ASSIGN(SqliteStatement number,
             db->Prepare("SELECT id FROM subjects WHERE cluster = ? AND name = ?"));
  NOS_ASSIGN(SqliteStatement select,
             db->Prepare(fmt::format("SELECT body FROM {} WHERE id = ?", kLevels.at(level).table)));
  Status damaged;
  for (const std::string& subject : subjects) {
    int64_t id = 0;
    NOS_RETURN_IF_ERROR(number.Each([&](SqliteRow& row) { id = row.Integer(0); }, cluster,
                                    std::string_view(subject)));
    Values values{from, at, {}};
    for (size_t i = 0; id > 0 && i < windows.size(); ++i) {
      NOS_RETURN_IF_ERROR(select.Each(
          [&](SqliteRow& row) {
            const Status read = values.Take(row.Text(0), level);
            if (!read.ok()) damaged = read;
          },
          RowId(windows[i], id)));
    }
    telemetry::Readings readings{subject, {}, nullptr, nullptr};
    telemetry::Millis latest = 0;
    for (const auto& [metric, value] : values.last) {
      const auto name = names.find(metric);
      if (value.first == 0 || name == names.end()) continue;
      readings.metrics.emplace_back(name->second, value.second);
      latest = std::max(latest, value.first);
    }
    if (latest > 0) visit(latest, std::move(readings));
  }
  return damaged;
}

Result<bool> Archive::Means(
    int64_t cluster, std::span<const std::string> subjects, const std::string& metric,
    const Range& range, telemetry::Millis now,
    FunctionRef<void(size_t subject, const Bucket&, telemetry::Millis step)> visit) {
  NOS_ASSIGN(Sqlite taken, Take());
  Lease db(*this, std::move(taken));
  NOS_ASSIGN(const Names names, MetricNames(*db));
  const auto of = std::ranges::find(names, metric, &Names::value_type::second);
  if (of == names.end()) return true;
  NOS_ASSIGN(SqliteStatement number,
             db->Prepare("SELECT id FROM subjects WHERE cluster = ? AND name = ?"));
  bool complete = true;
  // One transaction reads each row exactly once, as in Samples.
  NOS_RETURN_IF_ERROR(db->Execute("BEGIN"));
  const auto read = [&]() -> Status {
    NOS_ASSIGN(const int64_t late,
               db->Number(fmt::format(
                   "SELECT count(*) FROM (SELECT 1 FROM late WHERE level = 1 AND "
                   "window BETWEEN {} AND {} OR level = 2 LIMIT 1)",
                   range.from / kLevels.at(1).window, range.to / kLevels.at(1).window)));
    complete = late == 0;
    NOS_ASSIGN(const telemetry::Millis rolled, RolledUntil(*db, 2));
    const telemetry::Millis kept =
        FloorTo(std::max<telemetry::Millis>(0, now - keep_.rollups_5m), kLevels.at(2).window);
    const telemetry::Millis fine = std::min(rolled, kept);  // five minutes are kept from then on
    for (size_t i = 0; i < subjects.size(); ++i) {
      Wanted wanted{0, of->first, now};
      NOS_RETURN_IF_ERROR(number.Each([&](SqliteRow& row) { wanted.subject = row.Integer(0); },
                                      cluster, std::string_view(subjects[i])));
      if (wanted.subject == 0) continue;
      Buckets buckets;
      NOS_RETURN_IF_ERROR(Collect(*db, wanted, 1, range.from, range.to, buckets));
      for (const Bucket& bucket : buckets) visit(i, bucket, bucket.at < fine ? kHour : 0);
    }
    return Status::Ok();
  };
  const Status done = read();
  NOS_RETURN_IF_ERROR(db->Execute("COMMIT"));
  NOS_RETURN_IF_ERROR(done);
  return complete;
}

Status Archive::Raw(int64_t cluster, std::span<const std::string> subjects,
                    const std::string& metric, const Range& range,
                    FunctionRef<void(size_t subject, const Bucket&)> visit) {
  NOS_ASSIGN(Sqlite taken, Take());
  Lease db(*this, std::move(taken));
  NOS_ASSIGN(const Names names, MetricNames(*db));
  const auto of = std::ranges::find(names, metric, &Names::value_type::second);
  NOS_ASSIGN(const std::vector<int64_t> windows, WindowsAt(*db, 0, range.from, range.to));
  if (of == names.end() || windows.empty()) return Status::Ok();
  NOS_ASSIGN(SqliteStatement number,
             db->Prepare("SELECT id FROM subjects WHERE cluster = ? AND name = ?"));
  NOS_ASSIGN(SqliteStatement select, db->Prepare("SELECT body FROM chunks WHERE id = ?"));
  Status damaged;
  for (size_t i = 0; i < subjects.size(); ++i) {
    int64_t id = 0;
    NOS_RETURN_IF_ERROR(number.Each([&](SqliteRow& row) { id = row.Integer(0); }, cluster,
                                    std::string_view(subjects[i])));
    std::vector<Bucket> buckets;
    const auto take = [&](SqliteRow& row) {
      const Status read = AppendBuckets(row.Text(0), 0, of->first, range.from, range.to, buckets);
      if (!read.ok()) damaged = read;
    };
    for (size_t w = 0; id > 0 && w < windows.size(); ++w) {
      NOS_RETURN_IF_ERROR(select.Each(take, RowId(windows[w], id)));
    }
    for (const Bucket& bucket : buckets) visit(i, bucket);
  }
  return damaged;
}

}  // namespace nos::telemetryserver
