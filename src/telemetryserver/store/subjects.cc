// Numeric IDs of subjects: assigned when their first samples are written, released when their last
// samples are removed.
#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "telemetryserver/store.h"

namespace nos::telemetryserver {
namespace {

constexpr int64_t kSubjectsAtOnce = 5000;
// Together with the shortest retention this is longer than a window of the last level plus the
// levels that roll up before it.
constexpr telemetry::Millis kLeeway = 2 * kDay;

}  // namespace

Result<int64_t> Store::SubjectId(int64_t cluster, const std::string& name, telemetry::Millis seen) {
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
  if (count >= most_subjects_ || last >= kMaxSubjectId) return int64_t{0};
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

Status Store::MarkSeen(int64_t subject, telemetry::Millis seen) {
  NOS_ASSIGN(SqliteStatement * mark,
             Statement("UPDATE subjects SET seen = ? WHERE id = ? AND seen < ?"));
  return mark->Run(seen, subject, seen);
}

int64_t Store::TakeUnkept(int64_t cluster) {
  const auto unkept = unkept_.find(cluster);
  if (unkept == unkept_.end()) return 0;
  const int64_t values = unkept->second;
  unkept_.erase(unkept);
  Log(LogLevel::kWarn, "dropping samples of new subjects: their cluster has too many",
      {{"cluster", std::to_string(cluster)}, {"values", std::to_string(values)}});
  return values;
}

Status Store::RemoveSamples(int64_t cluster, std::span<const std::string_view> prefixes,
                            telemetry::Millis from, telemetry::Millis to) {
  std::vector<int64_t> flushes, rows;
  NOS_ASSIGN(SqliteStatement * windows,
             Statement("SELECT id FROM flushes WHERE last >= ? AND first < ?"));
  NOS_RETURN_IF_ERROR(
      windows->Each([&](SqliteRow& row) { flushes.push_back(row.Integer(0)); }, from, to));
  NOS_ASSIGN(SqliteStatement * named,
             Statement("SELECT id FROM subjects WHERE cluster = ? AND name >= ? AND name < ?"));
  for (const std::string_view prefix : prefixes) {
    std::string end(prefix);
    ++end.back();
    const auto each = [&](SqliteRow& row) {
      for (const int64_t flush : flushes) rows.push_back(RowId(flush, row.Integer(0)));
    };
    NOS_RETURN_IF_ERROR(named->Each(each, cluster, prefix, std::string_view(end)));
  }
  for (const int64_t row : rows) NOS_RETURN_IF_ERROR(RemoveFrom(row, from, to));
  return Status::Ok();
}

Status Store::RemoveFrom(int64_t row, telemetry::Millis from, telemetry::Millis to) {
  std::string body;
  NOS_ASSIGN(SqliteStatement * select, Statement("SELECT body FROM chunks WHERE id = ?"));
  NOS_RETURN_IF_ERROR(
      select->Each([&](SqliteRow& found) { body = std::string(found.Text(0)); }, row));
  if (body.empty()) return Status::Ok();
  const Result<Row> read = DecodeRow(body);
  if (!read.ok()) return Status::Ok();  // no other reader can read it either
  SampleBlock left;
  left.columns.resize(read->block.columns.size());
  for (size_t i = 0; i < read->block.times.size(); ++i) {
    const telemetry::Millis at = read->block.times[i];
    if (at >= from && at < to) continue;
    left.times.push_back(at);
    for (size_t c = 0; c < left.columns.size(); ++c) {
      left.columns[c].push_back(read->block.columns[c][i]);
    }
  }
  if (left.times.size() == read->block.times.size()) return Status::Ok();
  if (left.times.empty()) {
    NOS_ASSIGN(SqliteStatement * remove, Statement("DELETE FROM chunks WHERE id = ?"));
    return remove->Run(row);
  }
  NOS_ASSIGN(SqliteStatement * replace, Statement("UPDATE chunks SET body = ? WHERE id = ?"));
  const std::string bytes = EncodeRow(read->metrics, left);
  return replace->Run(Blob{bytes}, row);
}

Status Store::SetDerived(int64_t cluster, const Derived& derived) {
  NOS_RETURN_IF_ERROR(SetMeta(fmt::format("derived{}", cluster), derived.until));
  NOS_RETURN_IF_ERROR(SetMeta(fmt::format("again_from{}", cluster), derived.again_from));
  return SetMeta(fmt::format("again_to{}", cluster), derived.again_to);
}

Result<Derived> Store::DerivedOf(int64_t cluster) {
  Derived derived;
  NOS_ASSIGN(derived.until, Meta(fmt::format("derived{}", cluster)));
  NOS_ASSIGN(derived.again_from, Meta(fmt::format("again_from{}", cluster)));
  NOS_ASSIGN(derived.again_to, Meta(fmt::format("again_to{}", cluster)));
  return derived;
}

// Their IDs are unused: no chunk, rollup or head refers to them, because heads without samples are
// removed with each flush.
Result<bool> Store::ExpireSubjects(telemetry::Millis now, const Retention& retention) {
  const telemetry::Millis keep =
      std::max({retention.raw, retention.rollups_5m, retention.rollups_1h});
  const telemetry::Millis before = now - keep - kLeeway;
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

}  // namespace nos::telemetryserver
