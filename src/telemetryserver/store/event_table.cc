#include "telemetryserver/store/event_table.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "codec/gzip.h"
#include "telemetryserver/store/archive.h"

namespace nos::telemetryserver {
namespace {

constexpr int64_t kRowsAtOnce = 5000;
constexpr size_t kMinGzip = 500;  // a layout of 8 GPUs has 17 kB, and a thirtieth as gzip

std::string EventBody(const Json& body) {
  std::string text = WriteJson(body);
  return text.size() < kMinGzip ? text : Gzip(text, 6);
}

}  // namespace

Status EventTable::Add(int64_t cluster, const State::Change& change, bool late) {
  // A new reporter repeats Events of the last hour, and each late record of a removed object is
  // followed by its removal: each must be stored once.
  NOS_ASSIGN(SqliteStatement * insert,
             db_.Statement("INSERT INTO events(cluster, at, kind, object, late, body) "
                           "SELECT ?1, ?2, ?3, ?4, ?5, ?6 WHERE ?3 NOT IN ('event', 'removed') "
                           "OR NOT EXISTS (SELECT 1 FROM events WHERE cluster = ?1 AND object = ?4 "
                           "AND at = ?2 AND kind = ?3 AND body = ?6)"));
  const std::string body = EventBody(change.body);
  return insert->Run(cluster, change.at, std::string_view(change.kind),
                     std::string_view(change.object), int64_t{late}, Blob{body});
}

Status EventTable::AddHold(int64_t cluster, const State::Hold& hold) {
  const std::string_view pod = hold.pod, subject = hold.subject;
  NOS_ASSIGN(
      SqliteStatement * end,
      db_.Statement("UPDATE holds SET until = ? WHERE cluster = ? AND pod = ? AND subject = ? "
                    "AND until = 0"));
  NOS_RETURN_IF_ERROR(end->Run(hold.at, cluster, pod, subject));
  if (!hold.begins) return Status::Ok();
  NOS_ASSIGN(SqliteStatement * begin,
             db_.Statement("INSERT INTO holds(cluster, pod, subject, since, until) "
                           "VALUES (?, ?, ?, ?, 0)"));
  return begin->Run(cluster, pod, subject, hold.at);
}

Status EventTable::AddCheckpoint(int64_t cluster, const State& state) {
  JsonArray records;
  for (Json& record : state.Records()) records.push_back(std::move(record));
  // After the other records, which would otherwise count as late.
  records.push_back(state.gone().ToJson(state.now()));
  records.push_back(state.durations().ToJson(state.now()));
  const std::string body = Gzip(WriteJson(records), 3);
  NOS_ASSIGN(const int64_t event, db_.Number("SELECT coalesce(max(id), 0) FROM events"));
  NOS_ASSIGN(SqliteStatement * insert,
             db_.Statement("INSERT OR REPLACE INTO checkpoints VALUES (?, ?, ?, ?)"));
  return insert->Run(cluster, state.now(), event, Blob{body});
}

Status EventTable::NotAfter(int64_t cluster, telemetry::Millis now) {
  NOS_RETURN_IF_ERROR(
      db_.Execute(fmt::format("DELETE FROM checkpoints WHERE cluster = {0} AND at > {1};"
                              "UPDATE holds SET since = min(since, {1}), until = min(until, {1}) "
                              "WHERE cluster = {0} AND (since > {1} OR until > {1})",
                              cluster, now)));
  std::map<int64_t, std::string> bodies;
  NOS_ASSIGN(SqliteStatement * select,
             db_.Statement("SELECT id, body FROM events WHERE cluster = ? AND at > ?"));
  NOS_RETURN_IF_ERROR(select->Each(
      [&](SqliteRow& row) {
        auto body = ReadEventBody(row.Text(1));
        if (!body.ok() || !body->is_object()) return;
        body->get_object()["at"] = now;
        bodies.emplace(row.Integer(0), EventBody(*body));
      },
      cluster, now));
  NOS_ASSIGN(SqliteStatement * update,
             db_.Statement("UPDATE events SET at = ?, body = ? WHERE id = ?"));
  for (const auto& [id, body] : bodies) NOS_RETURN_IF_ERROR(update->Run(now, Blob{body}, id));
  return Status::Ok();
}

Result<telemetry::Millis> EventTable::LatestCheckpoint(int64_t cluster) {
  return db_.Number(
      fmt::format("SELECT coalesce(max(at), -1) FROM checkpoints WHERE cluster = {}", cluster));
}

Result<int64_t> EventTable::CountSinceCheckpoint(int64_t cluster) {
  return db_.Number(fmt::format(
      "SELECT count(*) FROM events WHERE cluster = {0} AND id > (SELECT coalesce(max(event), 0) "
      "FROM checkpoints WHERE cluster = {0})",
      cluster));
}

// Removes events older than the last checkpoint before the limit, which contains their result.
Result<bool> EventTable::Expire(std::span<const int64_t> clusters, telemetry::Millis before) {
  int64_t changes = 0;
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
    return Status::Ok();
  };
  NOS_RETURN_IF_ERROR(db_.Transaction(write));
  return changes > 0;
}

}  // namespace nos::telemetryserver
