#include "telemetryserver/store/subject_table.h"

#include <fmt/format.h>

#include "telemetryserver/levels.h"

namespace nos::telemetryserver {
namespace {

constexpr int64_t kSubjectsAtOnce = 5000;
// Together with the shortest retention this is longer than a window of the last level plus the
// levels that roll up before it.
constexpr telemetry::Millis kLeeway = 2 * kDay;

}  // namespace

Result<int64_t> SubjectTable::IdOf(int64_t cluster, const std::string& name,
                                   telemetry::Millis seen) {
  NOS_ASSIGN(SqliteStatement * select,
             db_.Statement("SELECT id FROM subjects WHERE cluster = ? AND name = ?"));
  int64_t id = 0;
  NOS_RETURN_IF_ERROR(
      select->Each([&](SqliteRow& row) { id = row.Integer(0); }, cluster, std::string_view(name)));
  if (id > 0) {
    NOS_RETURN_IF_ERROR(MarkSeen(id, seen));
    return id;
  }
  NOS_ASSIGN(const int64_t count, Count(cluster));
  NOS_ASSIGN(const int64_t last, db_.Number("SELECT coalesce(max(id), 0) FROM subjects"));
  if (count >= max_subjects_ || last >= kMaxSubjectId) return int64_t{0};
  NOS_ASSIGN(SqliteStatement * insert,
             db_.Statement("INSERT INTO subjects(cluster, name, seen) VALUES (?, ?, ?)"));
  NOS_RETURN_IF_ERROR(insert->Run(cluster, std::string_view(name), seen));
  ++counts_[cluster];
  return db_.LastId();
}

Result<int64_t> SubjectTable::Count(int64_t cluster) {
  if (const auto known = counts_.find(cluster); known != counts_.end()) return known->second;
  NOS_ASSIGN(const int64_t count,
             db_.Number(fmt::format("SELECT count(*) FROM subjects WHERE cluster = {}", cluster)));
  counts_[cluster] = count;
  return count;
}

Status SubjectTable::MarkSeen(int64_t subject, telemetry::Millis seen) {
  NOS_ASSIGN(SqliteStatement * mark,
             db_.Statement("UPDATE subjects SET seen = ? WHERE id = ? AND seen < ?"));
  return mark->Run(seen, subject, seen);
}

// Their IDs are unused: no chunk, rollup or head refers to them, because heads without samples are
// removed with each flush.
Result<bool> SubjectTable::Expire(telemetry::Millis now, telemetry::Millis keep) {
  const telemetry::Millis before = now - keep - kLeeway;
  int64_t changes = 0;
  const auto write = [&]() -> Status {
    NOS_RETURN_IF_ERROR(db_.Execute(fmt::format(
        "DELETE FROM subjects WHERE id IN (SELECT id FROM subjects WHERE seen < {} LIMIT {})",
        before, kSubjectsAtOnce)));
    changes = db_.Changes();
    return Status::Ok();
  };
  NOS_RETURN_IF_ERROR(db_.Transaction(write));
  if (changes > 0) counts_.clear();
  return changes > 0;
}

Result<std::vector<int64_t>> SubjectTable::WithPrefix(int64_t cluster, std::string_view prefix) {
  std::string end(prefix);
  ++end.back();
  NOS_ASSIGN(SqliteStatement * select,
             db_.Statement("SELECT id FROM subjects WHERE cluster = ? AND name >= ? AND name < ?"));
  std::vector<int64_t> ids;
  const auto add = [&](SqliteRow& row) { ids.push_back(row.Integer(0)); };
  NOS_RETURN_IF_ERROR(select->Each(add, cluster, prefix, std::string_view(end)));
  return ids;
}

}  // namespace nos::telemetryserver
