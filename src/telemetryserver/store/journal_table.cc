#include "telemetryserver/store/journal_table.h"

#include <algorithm>

#include "codec/gzip.h"
#include "telemetryserver/levels.h"
#include "telemetryserver/store/schema.h"

namespace nos::telemetryserver {
namespace {

// A source that was silent for this long may be removed: its records then count as a new boot.
constexpr telemetry::Millis kSourceKept = 90 * kDay;

}  // namespace

Result<telemetry::Envelope> ReadJournaled(std::string_view body, bool derived,
                                          telemetry::Millis received) {
  NOS_ASSIGN(const std::string text, Gunzip(body, telemetry::kMaxEnvelopeBytes));
  return derived ? telemetry::ReadDerivedEnvelope(text) : telemetry::ReadEnvelope(text, received);
}

Status JournalTable::Append(JournalRow& row) {
  NOS_ASSIGN(
      SqliteStatement * insert,
      db_.Statement("INSERT INTO journal(cluster, source, received, body) VALUES (?, ?, ?, ?)"));
  NOS_RETURN_IF_ERROR(
      insert->Run(row.cluster, std::string_view(row.source), row.received, Blob{row.body}));
  row.id = db_.LastId();
  if (row.source.empty()) return Status::Ok();
  NOS_ASSIGN(SqliteStatement * source,
             db_.Statement("INSERT OR REPLACE INTO sources VALUES (?, ?, ?, ?, ?)"));
  return source->Run(row.cluster, std::string_view(row.source), std::string_view(row.boot),
                     row.sequence, row.received);
}

Status JournalTable::SetApplied(int64_t id) { return db_.SetMeta(kApplied, id); }

Result<int64_t> JournalTable::Applied() { return db_.Meta(kApplied); }

Status JournalTable::Cut(int64_t flushed, int64_t held, int64_t max_bytes) {
  NOS_RETURN_IF_ERROR(db_.SetMeta(kFlushed, flushed));
  int64_t last = std::min(flushed, held);
  if (held < flushed) {
    NOS_ASSIGN(const int64_t oldest, OldestKept(flushed, max_bytes));
    last = std::max(last, oldest - 1);
  }
  NOS_ASSIGN(SqliteStatement * cut, db_.Statement("DELETE FROM journal WHERE id <= ?"));
  return cut->Run(last);
}

// Oldest ID to keep: about `max_bytes` of the newest rows up to `flushed`. Uses the mean size,
// because adding up all sizes would read all rows.
Result<int64_t> JournalTable::OldestKept(int64_t flushed, int64_t max_bytes) {
  NOS_ASSIGN(SqliteStatement * select,
             db_.Statement("SELECT coalesce(avg(length(body)), 1) FROM (SELECT body FROM journal "
                           "WHERE id <= ? ORDER BY id DESC LIMIT 1000)"));
  int64_t mean = 1;
  NOS_RETURN_IF_ERROR(
      select->Each([&](SqliteRow& row) { mean = std::max<int64_t>(1, row.Integer(0)); }, flushed));
  return flushed - max_bytes / mean + 1;
}

Status JournalTable::SetPosition(const std::string& follower, int64_t id) {
  return db_.SetMeta("position " + follower, id);
}

Result<int64_t> JournalTable::EventPosition(const std::string& follower) {
  NOS_ASSIGN(const int64_t last, db_.Number("SELECT coalesce(max(id), 0) FROM events"));
  return db_.Meta("position " + follower, last);
}

Result<int64_t> JournalTable::Position(const std::string& follower) {
  NOS_ASSIGN(const int64_t first,
             db_.Number("SELECT coalesce((SELECT min(id) - 1 FROM journal), (SELECT seq FROM "
                        "sqlite_sequence WHERE name = 'journal'), 0)"));
  return db_.Meta("position " + follower, first);
}

Status JournalTable::EachSource(
    FunctionRef<void(int64_t, const std::string&, const std::string&, int64_t)> visit) {
  NOS_ASSIGN(SqliteStatement * select,
             db_.Statement("SELECT cluster, source, boot, sequence FROM sources"));
  return select->Each([&](SqliteRow& row) {
    visit(row.Integer(0), std::string(row.Text(1)), std::string(row.Text(2)), row.Integer(3));
  });
}

Status JournalTable::EachUnflushed(FunctionRef<void(const JournalRow&)> visit) {
  NOS_ASSIGN(const int64_t flushed, db_.Meta(kFlushed));
  NOS_ASSIGN(SqliteStatement * select,
             db_.Statement("SELECT id, cluster, source, received, body FROM journal WHERE id > ? "
                           "ORDER BY id"));
  const auto read = [&](SqliteRow& row) {
    JournalRow journaled;
    journaled.id = row.Integer(0);
    journaled.cluster = row.Integer(1);
    journaled.source = std::string(row.Text(2));
    journaled.received = row.Integer(3);
    journaled.body = std::string(row.Text(4));
    visit(journaled);
  };
  return select->Each(read, flushed);
}

Result<bool> JournalTable::ExpireSources(telemetry::Millis now) {
  int64_t changes = 0;
  const auto write = [&]() -> Status {
    NOS_ASSIGN(SqliteStatement * remove, db_.Statement("DELETE FROM sources WHERE seen < ?"));
    NOS_RETURN_IF_ERROR(remove->Run(now - kSourceKept));
    changes = db_.Changes();
    return Status::Ok();
  };
  NOS_RETURN_IF_ERROR(db_.Transaction(write));
  return changes > 0;
}

}  // namespace nos::telemetryserver
