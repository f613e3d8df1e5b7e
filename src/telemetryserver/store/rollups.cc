#include "telemetryserver/store/rollups.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/log.h"

namespace nos::telemetryserver {
namespace {

constexpr int64_t kSubjectsAtOnce = 256;
constexpr int64_t kRowsAtOnce = 5000, kLateAtOnce = 64;
// Samples that arrive later than this after their window cause an additional rollup.
constexpr telemetry::Millis kPatience = 30 * kMinute;

std::string RolledKey(size_t level) { return fmt::format("rolled{}", level); }
std::string NextKey(size_t level) { return fmt::format("rolling{}", level); }

// A damaged row does not affect other rows.
void LogDamaged(size_t level, int64_t subject, const Status& why) {
  Log(LogLevel::kWarn, "skipping a damaged row of samples in rollups",
      {{"level", std::to_string(level)},
       {"subject", std::to_string(subject)},
       {"error", why.ToString()}});
}

}  // namespace

Result<telemetry::Millis> Rollups::Until(size_t level) { return db_.Meta(RolledKey(level)); }

Status Rollups::Begin(telemetry::Millis first) {
  NOS_ASSIGN(const telemetry::Millis rolled, Until(1));
  if (rolled > 0) return Status::Ok();
  return db_.SetMeta(RolledKey(1), FloorTo(first, kLevels[1].window));
}

Status Rollups::MarkLate(int64_t subject, std::span<const telemetry::Millis> times) {
  NOS_ASSIGN(const telemetry::Millis rolled, Until(1));
  int64_t last = -1;
  for (const telemetry::Millis at : times) {
    const int64_t window = at / kLevels[1].window;
    if (at >= rolled || window == last) continue;
    last = window;
    NOS_ASSIGN(SqliteStatement * insert,
               db_.Statement("INSERT OR IGNORE INTO late VALUES (1, ?, ?)"));
    NOS_RETURN_IF_ERROR(insert->Run(window, subject));
  }
  return Status::Ok();
}

Result<bool> Rollups::Step(telemetry::Millis now) {
  NOS_ASSIGN(const bool late, StepLate());
  if (late) return true;
  NOS_ASSIGN(const bool first, StepLevel(1, now));
  if (first) return true;
  return StepLevel(2, now);
}

Result<std::vector<int64_t>> Rollups::SourcesOf(size_t level, int64_t number) {
  std::vector<int64_t> sources;
  const telemetry::Millis begin = number * kLevels.at(level).window;
  const telemetry::Millis end = begin + kLevels.at(level).window;
  if (level > 1) {
    const telemetry::Millis below = kLevels.at(level - 1).window;
    for (int64_t source = begin / below; source * below < end; ++source) {
      sources.push_back(source);
    }
    return sources;
  }
  NOS_ASSIGN(SqliteStatement * select,
             db_.Statement("SELECT id FROM flushes WHERE last >= ? AND first < ? ORDER BY id"));
  NOS_RETURN_IF_ERROR(
      select->Each([&](SqliteRow& row) { sources.push_back(row.Integer(0)); }, begin, end));
  return sources;
}

// Rolls up some subjects of the oldest finished window.
Result<bool> Rollups::StepLevel(size_t level, telemetry::Millis now) {
  NOS_ASSIGN(telemetry::Millis begin, Until(level));
  if (begin == 0 && level > 1) {
    NOS_ASSIGN(const int64_t first, db_.Number("SELECT coalesce(min(id), 0) FROM rollups_5m"));
    begin = FloorTo((first >> kSubjectBits) * kLevels[1].window, kLevels.at(level).window);
  }
  if (begin == 0) return false;
  const telemetry::Millis end = begin + kLevels.at(level).window;
  telemetry::Millis done = now - kPatience;
  if (level > 1) {
    NOS_ASSIGN(done, Until(level - 1));
  }
  if (done < end) return false;
  Window window{level, begin / kLevels.at(level).window, {}};
  NOS_ASSIGN(window.sources, SourcesOf(level, window.number));
  NOS_ASSIGN(const int64_t first, db_.Meta(NextKey(level)));
  NOS_ASSIGN(const int64_t most, db_.Number("SELECT coalesce(max(id), 0) FROM subjects"));
  const int64_t last = window.sources.empty() ? most : first + kSubjectsAtOnce - 1;
  const auto write = [&]() -> Status {
    NOS_RETURN_IF_ERROR(RollUp(window, first, last));
    const bool over = last >= most;
    NOS_RETURN_IF_ERROR(db_.SetMeta(RolledKey(level), over ? end : begin));
    return db_.SetMeta(NextKey(level), over ? 0 : last + 1);
  };
  NOS_RETURN_IF_ERROR(db_.Transaction(write));
  return true;
}

Status Rollups::RollUp(const Window& window, int64_t first_subject, int64_t last_subject) {
  const Level& level = kLevels.at(window.level);
  std::map<int64_t, WindowSums> sums;
  const std::string sql = fmt::format("SELECT id, body FROM {} WHERE id BETWEEN ? AND ?",
                                      kLevels.at(window.level - 1).table);
  NOS_ASSIGN(SqliteStatement select, db_.Prepare(sql));
  for (const int64_t source : window.sources) {
    NOS_RETURN_IF_ERROR(select.Each(
        [&](SqliteRow& row) {
          const int64_t subject = row.Integer(0) & kMaxSubjectId;
          auto& sum = sums.try_emplace(subject, level, window.number).first->second;
          const Status added = sum.Add(row.Text(1), window.level - 1);
          if (!added.ok()) LogDamaged(window.level, subject, added);
        },
        RowId(source, first_subject), RowId(source, last_subject)));
  }
  for (auto& [subject, sum] : sums) {
    NOS_RETURN_IF_ERROR(Write(window, subject, sum));
    // Once per window of the last level: its row is kept at most that long after the window's end.
    if (window.level < 2) continue;
    NOS_RETURN_IF_ERROR(subjects_.MarkSeen(subject, (window.number + 1) * level.window));
  }
  return Status::Ok();
}

Status Rollups::Write(const Window& window, int64_t subject, WindowSums& sums) {
  const std::string table = kLevels.at(window.level).table;
  const int64_t id = RowId(window.number, subject);
  NOS_ASSIGN(SqliteStatement select, db_.Prepare("SELECT body FROM " + table + " WHERE id = ?"));
  Status merged;
  NOS_RETURN_IF_ERROR(
      select.Each([&](SqliteRow& row) { merged = sums.Merge(row.Text(0), window.level); }, id));
  if (!merged.ok()) LogDamaged(window.level, subject, merged);
  const std::string body = sums.Encode();
  if (body.empty()) return Status::Ok();
  NOS_ASSIGN(SqliteStatement insert,
             db_.Prepare("INSERT OR REPLACE INTO " + table + " VALUES (?, ?)"));
  return insert.Run(id, Blob{body});
}

Result<bool> Rollups::StepLate() {
  std::vector<std::pair<Window, int64_t>> late;
  NOS_ASSIGN(SqliteStatement * select,
             db_.Statement("SELECT level, window, subject FROM late LIMIT ?"));
  NOS_RETURN_IF_ERROR(select->Each(
      [&](SqliteRow& row) {
        Window window{static_cast<size_t>(row.Integer(0)), row.Integer(1), {}};
        late.emplace_back(window, row.Integer(2));
      },
      kLateAtOnce));
  if (late.empty()) return false;
  NOS_ASSIGN(const telemetry::Millis above, Until(2));
  const auto write = [&]() -> Status {
    for (auto& [window, subject] : late) {
      NOS_ASSIGN(window.sources, SourcesOf(window.level, window.number));
      NOS_RETURN_IF_ERROR(RollUp(window, subject, subject));
      NOS_ASSIGN(SqliteStatement * done,
                 db_.Statement("DELETE FROM late WHERE level = ? AND window = ? AND subject = ?"));
      NOS_RETURN_IF_ERROR(done->Run(static_cast<int64_t>(window.level), window.number, subject));
      const telemetry::Millis begin = window.number * kLevels.at(window.level).window;
      if (window.level > 1 || begin >= above) continue;
      NOS_ASSIGN(SqliteStatement * next,
                 db_.Statement("INSERT OR IGNORE INTO late VALUES (2, ?, ?)"));
      NOS_RETURN_IF_ERROR(next->Run(begin / kLevels[2].window, subject));
    }
    return Status::Ok();
  };
  NOS_RETURN_IF_ERROR(db_.Transaction(write));
  return true;
}

Result<bool> Rollups::Expire(size_t level, telemetry::Millis now, telemetry::Millis keep) {
  telemetry::Millis before = now - keep;
  if (level == 1) {
    NOS_ASSIGN(const telemetry::Millis rolled, Until(2));
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
  NOS_RETURN_IF_ERROR(db_.Transaction(write));
  return changes > 0;
}

}  // namespace nos::telemetryserver
