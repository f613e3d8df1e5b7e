// What samples are of, by number: given when the first ones are written, taken back when the last
// ones are not kept any more.
#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "telemetry/store.h"

namespace nos::telemetry {
namespace {

constexpr int64_t kSubjectsAtOnce = 5000;
// With the least retention still longer than a window of the last level and what rolls up before
// it.
constexpr Millis kLeeway = 2 * kDay;

}  // namespace

Result<int64_t> Store::SubjectId(int64_t cluster, const std::string& name, Millis seen) {
  NOS_ASSIGN(SqliteStatement * select,
             Statement("SELECT id FROM subjects WHERE cluster = ? AND name = ?"));
  int64_t id = 0;
  NOS_RETURN_IF_ERROR(
      select->Each([&](SqliteRow& row) { id = row.Integer(0); }, cluster, std::string_view(name)));
  if (id > 0) {
    NOS_RETURN_IF_ERROR(MarkSeen(id, seen));
    return id;
  }
  NOS_ASSIGN(const int64_t count, CountSubjects(cluster));
  NOS_ASSIGN(const int64_t last, db_.Number("SELECT coalesce(max(id), 0) FROM subjects"));
  if (count >= most_subjects_ || last >= kMostSubjectId) return int64_t{0};
  NOS_ASSIGN(SqliteStatement * insert,
             Statement("INSERT INTO subjects(cluster, name, seen) VALUES (?, ?, ?)"));
  NOS_RETURN_IF_ERROR(insert->Run(cluster, std::string_view(name), seen));
  ++subjects_[cluster];
  return db_.LastId();
}

Result<int64_t> Store::CountSubjects(int64_t cluster) {
  if (const auto known = subjects_.find(cluster); known != subjects_.end()) return known->second;
  NOS_ASSIGN(const int64_t count,
             db_.Number(fmt::format("SELECT count(*) FROM subjects WHERE cluster = {}", cluster)));
  subjects_[cluster] = count;
  return count;
}

Status Store::MarkSeen(int64_t subject, Millis seen) {
  NOS_ASSIGN(SqliteStatement * mark,
             Statement("UPDATE subjects SET seen = ? WHERE id = ? AND seen < ?"));
  return mark->Run(seen, subject, seen);
}

int64_t Store::TakeUnkept(int64_t cluster) {
  const auto unkept = unkept_.find(cluster);
  if (unkept == unkept_.end()) return 0;
  const int64_t values = unkept->second;
  unkept_.erase(unkept);
  Log(LogLevel::kWarn, "samples of new subjects are not kept: their cluster has too many",
      {{"cluster", std::to_string(cluster)}, {"values", std::to_string(values)}});
  return values;
}

// Nothing has their numbers any more: neither a chunk nor a rollup, and no head, for those of whom
// nothing comes are forgotten with each flush.
Result<bool> Store::ExpireSubjects(Millis now, const Retention& retention) {
  const Millis keep = std::max({retention.raw, retention.rollups_5m, retention.rollups_1h});
  const Millis before = now - keep - kLeeway;
  int64_t changes = 0;
  const auto write = [&]() -> Status {
    NOS_RETURN_IF_ERROR(db_.Execute(fmt::format(
        "DELETE FROM subjects WHERE id IN (SELECT id FROM subjects WHERE seen < {} LIMIT {})",
        before, kSubjectsAtOnce)));
    changes = db_.Changes();
    return Status::Ok();
  };
  NOS_RETURN_IF_ERROR(Transaction(write));
  if (changes > 0) subjects_.clear();
  return changes > 0;
}

}  // namespace nos::telemetry
