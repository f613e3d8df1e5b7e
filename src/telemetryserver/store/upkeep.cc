// Background work of the store: rollups and retention.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/log.h"
#include "telemetryserver/store.h"

namespace nos::telemetryserver {
namespace {

constexpr int64_t kSubjectsAtOnce = 256;
constexpr int64_t kRowsAtOnce = 5000, kLateAtOnce = 64;
// Samples that arrive later than this after their window cause an additional rollup.
constexpr telemetry::Millis kPatience = 30 * kMinute;
// A source that was silent for this long may be removed: its records then count as a new boot.
constexpr telemetry::Millis kSourceKept = 90 * kDay;

std::string RolledKey(size_t level) { return fmt::format("rolled{}", level); }
std::string NextKey(size_t level) { return fmt::format("rolling{}", level); }

}  // namespace

Result<bool> Store::RollUp(telemetry::Millis now) {
  NOS_ASSIGN(const bool late, RollLate());
  if (late) return true;
  NOS_ASSIGN(const bool first, RollLevel(1, now));
  if (first) return true;
  return RollLevel(2, now);
}

Result<std::vector<int64_t>> Store::SourcesOf(size_t level, int64_t window) {
  std::vector<int64_t> sources;
  const telemetry::Millis begin = window * kLevels.at(level).window;
  const telemetry::Millis end = begin + kLevels.at(level).window;
  if (level > 1) {
    const telemetry::Millis below = kLevels.at(level - 1).window;
    for (int64_t source = begin / below; source * below < end; ++source) {
      sources.push_back(source);
    }
    return sources;
  }
  NOS_ASSIGN(SqliteStatement * select,
             Statement("SELECT id FROM flushes WHERE last >= ? AND first < ? ORDER BY id"));
  NOS_RETURN_IF_ERROR(
      select->Each([&](SqliteRow& row) { sources.push_back(row.Integer(0)); }, begin, end));
  return sources;
}

// Rolls up some subjects of the oldest finished window.
Result<bool> Store::RollLevel(size_t level, telemetry::Millis now) {
  NOS_ASSIGN(telemetry::Millis begin, Meta(RolledKey(level)));
  if (begin == 0 && level > 1) {
    NOS_ASSIGN(const int64_t first, db_.Number("SELECT coalesce(min(id), 0) FROM rollups_5m"));
    begin = FloorTo((first >> kSubjectBits) * kLevels[1].window, kLevels.at(level).window);
  }
  if (begin == 0) return false;
  const telemetry::Millis end = begin + kLevels.at(level).window;
  telemetry::Millis done = now - kPatience;
  if (level > 1) {
    NOS_ASSIGN(done, Meta(RolledKey(level - 1)));
  }
  if (done < end) return false;
  Rolled rolled{level, begin / kLevels.at(level).window, {}};
  NOS_ASSIGN(rolled.sources, SourcesOf(level, rolled.window));
  NOS_ASSIGN(const int64_t first, Meta(NextKey(level)));
  NOS_ASSIGN(const int64_t most, db_.Number("SELECT coalesce(max(id), 0) FROM subjects"));
  const int64_t last = rolled.sources.empty() ? most : first + kSubjectsAtOnce - 1;
  const auto write = [&]() -> Status {
    NOS_RETURN_IF_ERROR(RollSubjects(rolled, first, last));
    const bool over = last >= most;
    NOS_RETURN_IF_ERROR(SetMeta(RolledKey(level), over ? end : begin));
    return SetMeta(NextKey(level), over ? 0 : last + 1);
  };
  NOS_RETURN_IF_ERROR(Transaction(write));
  return true;
}

// A damaged row does not affect other rows.
void Store::LeaveOut(const Rolled& rolled, int64_t subject, const Status& why) {
  Log(LogLevel::kWarn, "skipping a damaged row of samples in rollups",
      {{"level", std::to_string(rolled.level)},
       {"subject", std::to_string(subject)},
       {"error", why.ToString()}});
}

Status Store::RollSubjects(const Rolled& rolled, int64_t first, int64_t last) {
  const Level& level = kLevels.at(rolled.level);
  std::map<int64_t, WindowSums> sums;
  const std::string sql = fmt::format("SELECT id, body FROM {} WHERE id BETWEEN ? AND ?",
                                      kLevels.at(rolled.level - 1).table);
  NOS_ASSIGN(SqliteStatement select, db_.Prepare(sql));
  for (const int64_t source : rolled.sources) {
    NOS_RETURN_IF_ERROR(select.Each(
        [&](SqliteRow& row) {
          const int64_t subject = row.Integer(0) & kMaxSubjectId;
          auto& sum = sums.try_emplace(subject, level, rolled.window).first->second;
          const Status added = sum.Add(row.Text(1), rolled.level - 1);
          if (!added.ok()) LeaveOut(rolled, subject, added);
        },
        RowId(source, first), RowId(source, last)));
  }
  for (auto& [subject, sum] : sums) {
    NOS_RETURN_IF_ERROR(Replace(rolled, subject, sum));
    // Once per window of the last level: its row is kept at most that long after the window's end.
    if (rolled.level < 2) continue;
    NOS_RETURN_IF_ERROR(MarkSeen(subject, (rolled.window + 1) * level.window));
  }
  return Status::Ok();
}

Status Store::Replace(const Rolled& rolled, int64_t subject, WindowSums& sums) {
  const std::string table = kLevels.at(rolled.level).table;
  const int64_t id = RowId(rolled.window, subject);
  NOS_ASSIGN(SqliteStatement select, db_.Prepare("SELECT body FROM " + table + " WHERE id = ?"));
  Status merged;
  NOS_RETURN_IF_ERROR(
      select.Each([&](SqliteRow& row) { merged = sums.Merge(row.Text(0), rolled.level); }, id));
  if (!merged.ok()) LeaveOut(rolled, subject, merged);
  const std::string body = sums.Encode();
  if (body.empty()) return Status::Ok();
  NOS_ASSIGN(SqliteStatement insert,
             db_.Prepare("INSERT OR REPLACE INTO " + table + " VALUES (?, ?)"));
  return insert.Run(id, Blob{body});
}

Result<bool> Store::RollLate() {
  std::vector<std::pair<Rolled, int64_t>> late;
  NOS_ASSIGN(SqliteStatement * select,
             Statement("SELECT level, window, subject FROM late LIMIT ?"));
  NOS_RETURN_IF_ERROR(select->Each(
      [&](SqliteRow& row) {
        const Rolled rolled{static_cast<size_t>(row.Integer(0)), row.Integer(1), {}};
        late.emplace_back(rolled, row.Integer(2));
      },
      kLateAtOnce));
  if (late.empty()) return false;
  NOS_ASSIGN(const telemetry::Millis above, Meta(RolledKey(2)));
  const auto write = [&]() -> Status {
    for (auto& [rolled, subject] : late) {
      NOS_ASSIGN(rolled.sources, SourcesOf(rolled.level, rolled.window));
      NOS_RETURN_IF_ERROR(RollSubjects(rolled, subject, subject));
      NOS_ASSIGN(SqliteStatement * done,
                 Statement("DELETE FROM late WHERE level = ? AND window = ? AND subject = ?"));
      NOS_RETURN_IF_ERROR(done->Run(static_cast<int64_t>(rolled.level), rolled.window, subject));
      const telemetry::Millis begin = rolled.window * kLevels.at(rolled.level).window;
      if (rolled.level > 1 || begin >= above) continue;
      NOS_ASSIGN(SqliteStatement * next, Statement("INSERT OR IGNORE INTO late VALUES (2, ?, ?)"));
      NOS_RETURN_IF_ERROR(next->Run(begin / kLevels[2].window, subject));
    }
    return Status::Ok();
  };
  NOS_RETURN_IF_ERROR(Transaction(write));
  return true;
}

Result<bool> Store::Expire(telemetry::Millis now, const Retention& retention) {
  NOS_ASSIGN(bool some, ExpireRaw(now, retention.raw));
  NOS_ASSIGN(const bool fine, ExpireLevel(1, now, retention.rollups_5m));
  NOS_ASSIGN(const bool coarse, ExpireLevel(2, now, retention.rollups_1h));
  NOS_ASSIGN(const bool events, ExpireEvents(now, retention.events));
  NOS_ASSIGN(const bool subjects, ExpireSubjects(now, retention));
  return some || fine || coarse || events || subjects;
}

Result<bool> Store::ExpireRaw(telemetry::Millis now, telemetry::Millis keep) {
  NOS_ASSIGN(const telemetry::Millis rolled, Meta(RolledKey(1)));
  NOS_ASSIGN(const int64_t flush,
             db_.Number(fmt::format("SELECT coalesce(min(id), 0) FROM flushes WHERE last < {}",
                                    std::min(now - keep, rolled))));
  if (flush == 0) return false;
  const auto write = [&]() -> Status {
    NOS_ASSIGN(SqliteStatement * rows,
               Statement("DELETE FROM chunks WHERE id IN (SELECT id FROM chunks WHERE id >= ? AND "
                         "id < ? LIMIT ?)"));
    NOS_RETURN_IF_ERROR(rows->Run(RowId(flush, 0), RowId(flush + 1, 0), kRowsAtOnce));
    if (db_.Changes() == kRowsAtOnce) return Status::Ok();
    NOS_ASSIGN(SqliteStatement * over, Statement("DELETE FROM flushes WHERE id = ?"));
    return over->Run(flush);
  };
  NOS_RETURN_IF_ERROR(Transaction(write));
  return true;
}

Result<bool> Store::ExpireLevel(size_t level, telemetry::Millis now, telemetry::Millis keep) {
  telemetry::Millis before = now - keep;
  if (level == 1) {
    NOS_ASSIGN(const telemetry::Millis rolled, Meta(RolledKey(2)));
    before = std::min(before, rolled);
  }
  if (before <= 0) return false;
  const std::string table = kLevels.at(level).table;
  const int64_t end = RowId(before / kLevels.at(level).window, 0);
  int64_t changes = 0;
  const auto write = [&]() -> Status {
    NOS_RETURN_IF_ERROR(db_.Execute(
        fmt::format("DELETE FROM {0} WHERE id IN (SELECT id FROM {0} WHERE id < {1} LIMIT {2})",
                    table, end, kRowsAtOnce)));
    changes = db_.Changes();
    return Status::Ok();
  };
  NOS_RETURN_IF_ERROR(Transaction(write));
  return changes > 0;
}

// Removes events older than the last checkpoint before the limit, which contains their result.
Result<bool> Store::ExpireEvents(telemetry::Millis now, telemetry::Millis keep) {
  int64_t changes = 0;
  const telemetry::Millis before = now - keep;
  std::vector<int64_t> clusters;
  NOS_RETURN_IF_ERROR(EachCluster([&](int64_t id, const std::string&) { clusters.push_back(id); }));
  const auto write = [&]() -> Status {
    for (const int64_t cluster : clusters) {
      NOS_ASSIGN(const telemetry::Millis base,
                 db_.Number(fmt::format("SELECT coalesce(max(at), 0) FROM checkpoints WHERE "
                                        "cluster = {} AND at <= {}",
                                        cluster, before)));
      NOS_RETURN_IF_ERROR(db_.Execute(fmt::format(
          "DELETE FROM events WHERE id IN (SELECT id FROM events WHERE cluster = {} AND at < {} "
          "LIMIT {})",
          cluster, base, kRowsAtOnce)));
      changes += db_.Changes();
      NOS_RETURN_IF_ERROR(db_.Execute(
          fmt::format("DELETE FROM checkpoints WHERE cluster = {} AND at < {}", cluster, base)));
    }
    NOS_RETURN_IF_ERROR(
        db_.Execute(fmt::format("DELETE FROM holds WHERE until > 0 AND until < {}", before)));
    changes += db_.Changes();
    NOS_RETURN_IF_ERROR(
        db_.Execute(fmt::format("DELETE FROM sources WHERE seen < {}", now - kSourceKept)));
    changes += db_.Changes();
    return Status::Ok();
  };
  NOS_RETURN_IF_ERROR(Transaction(write));
  return changes > 0;
}

}  // namespace nos::telemetryserver
