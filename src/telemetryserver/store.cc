#include "telemetryserver/store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "codec/gzip.h"
#include "telemetryserver/store/archive.h"
#include "telemetryserver/store/schema.h"

namespace nos::telemetryserver {
namespace {

constexpr int64_t kPageBytes = 16384;  // most rows of samples fit into one
constexpr size_t kMinGzip = 500;       // a layout of 8 GPUs has 17 kB, and a thirtieth as gzip
constexpr size_t kMaxClusters = 100;
constexpr size_t kMaxMetricNames =
    kMaxClusters * kMaxClusterMetrics + 100;  // and metrics of this server

std::string EventBody(const Json& body) {
  std::string text = WriteJson(body);
  return text.size() < kMinGzip ? text : Gzip(text, 6);
}

}  // namespace

Result<std::unique_ptr<Store>> Store::Open(const StoreOptions& options) {
  // SQLite would allow two processes to write in turn, and each would delete journal rows of the
  // other.
  UniqueFd lock(open((options.path + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock.valid()) {
    const char* why = std::strerror(errno);  // NOLINT(concurrency-*)
    return Status(Code::kUnavailable, fmt::format("open {}.lock: {}", options.path, why));
  }
  if (flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    return Status(Code::kUnavailable, options.path + ": another nos telemetry uses this file");
  }
  NOS_ASSIGN(Sqlite db, Sqlite::Open(options.path, Sqlite::Mode::kWrite));
  std::unique_ptr<Store> store(new Store(std::move(db), std::move(lock), options.most_subjects));
  NOS_RETURN_IF_ERROR(store->db_.Execute(fmt::format(
      "PRAGMA page_size={}; PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; "
      "PRAGMA cache_size=-65536; PRAGMA temp_store=MEMORY; PRAGMA journal_size_limit=268435456",
      kPageBytes)));
  NOS_RETURN_IF_ERROR(store->Migrate().Within(options.path));
  NOS_RETURN_IF_ERROR(store->Limit(options.most_bytes));
  return store;
}

Status Store::Limit(int64_t most_bytes) {
  if (most_bytes <= 0) return Status::Ok();
  return db_.Execute(fmt::format("PRAGMA max_page_count={}", most_bytes / kPageBytes + 1));
}

Status Store::Migrate() {
  NOS_ASSIGN(int64_t version, db_.Number("PRAGMA user_version"));
  if (version > static_cast<int64_t>(kMigrations.size())) {
    return Invalid(fmt::format(
        "the file has version {} and this nos knows up to {}: use the newer nos, or another file",
        version, kMigrations.size()));
  }
  for (; version < static_cast<int64_t>(kMigrations.size()); ++version) {
    const auto write = [&]() -> Status {
      NOS_RETURN_IF_ERROR(db_.Execute(kMigrations.at(static_cast<size_t>(version))));
      return db_.Execute(fmt::format("PRAGMA user_version={}", version + 1));
    };
    NOS_RETURN_IF_ERROR(Transaction(write));
  }
  return Status::Ok();
}

Status Store::Transaction(FunctionRef<Status()> write) {
  NOS_RETURN_IF_ERROR(db_.Execute("BEGIN IMMEDIATE"));
  Status status = write();
  if (status.ok()) status = db_.Execute("COMMIT");
  if (status.ok()) return status;
  (void)db_.Execute("ROLLBACK");  // fails if SQLite already rolled back
  metrics_.clear();               // some may belong to this transaction
  numbers_.clear();
  subjects_.clear();
  unkept_.clear();
  return status;
}

Result<SqliteStatement*> Store::Statement(const char* sql) {
  const auto found = statements_.find(std::string_view(sql));
  if (found != statements_.end()) return &found->second;
  NOS_ASSIGN(SqliteStatement statement, db_.Prepare(sql));
  return &statements_.emplace(sql, std::move(statement)).first->second;
}

Result<int64_t> Store::Meta(const std::string& key, int64_t fallback) {
  NOS_ASSIGN(SqliteStatement * select, Statement("SELECT value FROM meta WHERE key = ?"));
  int64_t value = fallback;
  NOS_RETURN_IF_ERROR(
      select->Each([&](SqliteRow& row) { value = row.Integer(0); }, std::string_view(key)));
  return value;
}

Status Store::SetMeta(const std::string& key, int64_t value) {
  NOS_ASSIGN(SqliteStatement * set, Statement("INSERT OR REPLACE INTO meta VALUES (?, ?)"));
  return set->Run(std::string_view(key), value);
}

Result<int64_t> Store::ClusterId(const std::string& name) {
  NOS_ASSIGN(SqliteStatement * select, Statement("SELECT id FROM clusters WHERE name = ?"));
  int64_t id = 0;
  const std::string_view text = name;
  NOS_RETURN_IF_ERROR(select->Each([&](SqliteRow& row) { id = row.Integer(0); }, text));
  if (id > 0) return id;
  NOS_ASSIGN(const int64_t count, db_.Number("SELECT count(*) FROM clusters"));
  if (count >= static_cast<int64_t>(kMaxClusters)) {
    return Status(Code::kExhausted, fmt::format("there are {} clusters already", count));
  }
  NOS_ASSIGN(SqliteStatement * insert, Statement("INSERT INTO clusters(name) VALUES (?)"));
  NOS_RETURN_IF_ERROR(insert->Run(text));
  return db_.LastId();
}

Status Store::Journal(JournalRow& row) {
  NOS_ASSIGN(SqliteStatement * insert,
             Statement("INSERT INTO journal(cluster, source, received, body) VALUES (?, ?, ?, ?)"));
  NOS_RETURN_IF_ERROR(
      insert->Run(row.cluster, std::string_view(row.source), row.received, Blob{row.body}));
  row.id = db_.LastId();
  if (row.source.empty()) return Status::Ok();
  NOS_ASSIGN(SqliteStatement * source,
             Statement("INSERT OR REPLACE INTO sources VALUES (?, ?, ?, ?, ?)"));
  return source->Run(row.cluster, std::string_view(row.source), std::string_view(row.boot),
                     row.sequence, row.received);
}

Status Store::SetApplied(int64_t journal_id) { return SetMeta(kApplied, journal_id); }
Result<int64_t> Store::Applied() { return Meta(kApplied); }

Status Store::AddEvent(int64_t cluster, const State::Change& change, bool late) {
  // A new reporter repeats Events of the last hour, and each late record of a removed object is
  // followed by its removal: each must be stored once.
  NOS_ASSIGN(SqliteStatement * insert,
             Statement("INSERT INTO events(cluster, at, kind, object, late, body) "
                       "SELECT ?1, ?2, ?3, ?4, ?5, ?6 WHERE ?3 NOT IN ('event', 'removed') "
                       "OR NOT EXISTS (SELECT 1 FROM events WHERE cluster = ?1 AND object = ?4 "
                       "AND at = ?2 AND kind = ?3 AND body = ?6)"));
  const std::string body = EventBody(change.body);
  return insert->Run(cluster, change.at, std::string_view(change.kind),
                     std::string_view(change.object), int64_t{late}, Blob{body});
}

Status Store::NotAfter(int64_t cluster, telemetry::Millis now) {
  NOS_RETURN_IF_ERROR(
      db_.Execute(fmt::format("DELETE FROM checkpoints WHERE cluster = {0} AND at > {1};"
                              "UPDATE holds SET since = min(since, {1}), until = min(until, {1}) "
                              "WHERE cluster = {0} AND (since > {1} OR until > {1})",
                              cluster, now)));
  std::map<int64_t, std::string> bodies;
  NOS_ASSIGN(SqliteStatement * select,
             Statement("SELECT id, body FROM events WHERE cluster = ? AND at > ?"));
  NOS_RETURN_IF_ERROR(select->Each(
      [&](SqliteRow& row) {
        auto body = ReadEventBody(row.Text(1));
        if (!body.ok() || !body->is_object()) return;
        body->get_object()["at"] = now;
        bodies.emplace(row.Integer(0), EventBody(*body));
      },
      cluster, now));
  NOS_ASSIGN(SqliteStatement * update,
             Statement("UPDATE events SET at = ?, body = ? WHERE id = ?"));
  for (const auto& [id, body] : bodies) NOS_RETURN_IF_ERROR(update->Run(now, Blob{body}, id));
  return Status::Ok();
}

Status Store::AddHold(int64_t cluster, const State::Hold& hold) {
  const std::string_view pod = hold.pod, subject = hold.subject;
  NOS_ASSIGN(SqliteStatement * end,
             Statement("UPDATE holds SET until = ? WHERE cluster = ? AND pod = ? AND subject = ? "
                       "AND until = 0"));
  NOS_RETURN_IF_ERROR(end->Run(hold.at, cluster, pod, subject));
  if (!hold.begins) return Status::Ok();
  NOS_ASSIGN(SqliteStatement * begin,
             Statement("INSERT INTO holds(cluster, pod, subject, since, until) "
                       "VALUES (?, ?, ?, ?, 0)"));
  return begin->Run(cluster, pod, subject, hold.at);
}

Status Store::AddCheckpoint(int64_t cluster, const State& state) {
  JsonArray records;
  for (Json& record : state.Records()) records.push_back(std::move(record));
  // After the other records, which would otherwise count as late.
  records.push_back(state.gone().ToJson(state.now()));
  records.push_back(state.durations().ToJson(state.now()));
  const std::string body = Gzip(WriteJson(records), 3);
  NOS_ASSIGN(const int64_t event, db_.Number("SELECT coalesce(max(id), 0) FROM events"));
  NOS_ASSIGN(SqliteStatement * insert,
             Statement("INSERT OR REPLACE INTO checkpoints VALUES (?, ?, ?, ?)"));
  return insert->Run(cluster, state.now(), event, Blob{body});
}

Result<telemetry::Millis> Store::LatestCheckpoint(int64_t cluster) {
  return db_.Number(
      fmt::format("SELECT coalesce(max(at), -1) FROM checkpoints WHERE cluster = {}", cluster));
}

Result<int64_t> Store::EventsSinceCheckpoint(int64_t cluster) {
  return db_.Number(fmt::format(
      "SELECT count(*) FROM events WHERE cluster = {0} AND id > (SELECT coalesce(max(event), 0) "
      "FROM checkpoints WHERE cluster = {0})",
      cluster));
}

// --- Samples ---

Result<int64_t> Store::MetricId(const std::string& name) {
  if (const auto known = metrics_.find(name); known != metrics_.end()) return known->second;
  NOS_ASSIGN(SqliteStatement * select, Statement("SELECT id FROM metrics WHERE name = ?"));
  int64_t id = 0;
  const std::string_view text = name;
  NOS_RETURN_IF_ERROR(select->Each([&](SqliteRow& row) { id = row.Integer(0); }, text));
  if (id == 0) {
    NOS_ASSIGN(const int64_t count, db_.Number("SELECT count(*) FROM metrics"));
    if (count >= static_cast<int64_t>(kMaxMetricNames)) return int64_t{0};  // not stored
    NOS_ASSIGN(SqliteStatement * insert, Statement("INSERT INTO metrics(name) VALUES (?)"));
    NOS_RETURN_IF_ERROR(insert->Run(text));
    id = db_.LastId();
  }
  metrics_[name] = id;
  return id;
}

Status Store::WriteHead(int64_t flush, int64_t cluster, const std::string& subject,
                        const Head& head) {
  int64_t number = head.subject;
  if (number == 0) {
    NOS_ASSIGN(number, SubjectId(cluster, subject, std::ranges::max(head.block.times)));
  }
  if (number == 0) {
    unkept_[cluster] += static_cast<int64_t>(head.block.times.size() * head.metrics.size());
    return Status::Ok();
  }
  if (head.subject == 0) numbers_[{cluster, subject}] = number;
  std::vector<int64_t> metrics;
  SampleBlock block = Ordered(head.block);
  for (size_t i = 0; i < head.metrics.size(); ++i) {
    NOS_ASSIGN(const int64_t metric, MetricId(head.metrics[i]));
    if (metric == 0) {
      block.columns.erase(block.columns.begin() + static_cast<std::ptrdiff_t>(metrics.size()));
    } else {
      metrics.push_back(metric);
    }
  }
  NOS_RETURN_IF_ERROR(MarkLate(number, block));
  const std::string body = EncodeRow(metrics, block);
  NOS_ASSIGN(SqliteStatement * insert, Statement("INSERT INTO chunks VALUES (?, ?)"));
  return insert->Run(RowId(flush, number), Blob{body});
}

Status Store::MarkLate(int64_t subject, const SampleBlock& block) {
  NOS_ASSIGN(const telemetry::Millis rolled, Meta("rolled1"));
  int64_t last = -1;
  for (const telemetry::Millis at : block.times) {
    const int64_t window = at / kLevels[1].window;
    if (at >= rolled || window == last) continue;
    last = window;
    NOS_ASSIGN(SqliteStatement * insert, Statement("INSERT OR IGNORE INTO late VALUES (1, ?, ?)"));
    NOS_RETURN_IF_ERROR(insert->Run(window, subject));
  }
  return Status::Ok();
}

Status Store::Flush(int64_t cluster, const Heads& heads) {
  for (const HeadsBySubject& full : heads.full()) {
    NOS_RETURN_IF_ERROR(WriteHeads(cluster, full));
  }
  return WriteHeads(cluster, heads.all());
}

// Writes one chunk per subject.
Status Store::WriteHeads(int64_t cluster, const HeadsBySubject& heads) {
  std::vector<std::pair<const std::string*, const Head*>> order;
  telemetry::Millis first = 0, last = -1;
  for (const auto& [subject, head] : heads) {
    if (head.block.times.empty()) continue;
    order.emplace_back(&subject, &head);
    const auto [least, most] = std::ranges::minmax(head.block.times);
    first = last < 0 ? least : std::min(first, least);
    last = std::max(last, most);
  }
  if (order.empty()) return Status::Ok();
  // In order of subject IDs, so that each chunk is appended at the end of the table.
  std::ranges::sort(order, {}, [](const auto& entry) {
    const int64_t number = entry.second->subject;
    return number == 0 ? kMaxSubjectId : number;
  });
  NOS_ASSIGN(SqliteStatement * insert, Statement("INSERT INTO flushes(first, last) VALUES (?, ?)"));
  NOS_RETURN_IF_ERROR(insert->Run(first, last));
  const int64_t flush = db_.LastId();
  NOS_ASSIGN(const telemetry::Millis rolled, Meta("rolled1"));
  if (rolled == 0) NOS_RETURN_IF_ERROR(SetMeta("rolled1", FloorTo(first, kLevels[1].window)));
  for (const auto& [subject, head] : order) {
    NOS_RETURN_IF_ERROR(WriteHead(flush, cluster, *subject, *head));
  }
  return Status::Ok();
}

void Store::TakeNumbers(int64_t cluster, Heads& heads) {
  for (const auto& [key, number] : numbers_) {
    const auto head = heads.all().find(key.second);
    if (key.first == cluster && head != heads.all().end()) head->second.subject = number;
  }
  std::erase_if(numbers_, [&](const auto& entry) { return entry.first.first == cluster; });
}

Status Store::CutJournal(int64_t flushed, int64_t held, int64_t most_bytes) {
  NOS_RETURN_IF_ERROR(SetMeta(kFlushed, flushed));
  int64_t last = std::min(flushed, held);
  if (held < flushed) {
    NOS_ASSIGN(const int64_t oldest, OldestKept(flushed, most_bytes));
    last = std::max(last, oldest - 1);
  }
  NOS_ASSIGN(SqliteStatement * cut, Statement("DELETE FROM journal WHERE id <= ?"));
  return cut->Run(last);
}

// Oldest ID to keep: about `most_bytes` of the newest rows up to `flushed`. Uses the mean size,
// because adding up all sizes would read all rows.
Result<int64_t> Store::OldestKept(int64_t flushed, int64_t most_bytes) {
  NOS_ASSIGN(SqliteStatement * select,
             Statement("SELECT coalesce(avg(length(body)), 1) FROM (SELECT body FROM journal "
                       "WHERE id <= ? ORDER BY id DESC LIMIT 1000)"));
  int64_t mean = 1;
  NOS_RETURN_IF_ERROR(
      select->Each([&](SqliteRow& row) { mean = std::max<int64_t>(1, row.Integer(0)); }, flushed));
  return flushed - most_bytes / mean + 1;
}

Status Store::SetPosition(const std::string& follower, int64_t id) {
  return SetMeta("position " + follower, id);
}

Result<int64_t> Store::EventPosition(const std::string& follower) {
  NOS_ASSIGN(const int64_t last, db_.Number("SELECT coalesce(max(id), 0) FROM events"));
  return Meta("position " + follower, last);
}

Result<int64_t> Store::Position(const std::string& follower) {
  NOS_ASSIGN(const int64_t first,
             db_.Number("SELECT coalesce((SELECT min(id) - 1 FROM journal), (SELECT seq FROM "
                        "sqlite_sequence WHERE name = 'journal'), 0)"));
  return Meta("position " + follower, first);
}

// --- At the start ---

Status Store::EachCluster(FunctionRef<void(int64_t, const std::string&)> visit) {
  NOS_ASSIGN(SqliteStatement * select, Statement("SELECT id, name FROM clusters ORDER BY id"));
  return select->Each([&](SqliteRow& row) { visit(row.Integer(0), std::string(row.Text(1))); });
}

Status Store::EachSource(
    FunctionRef<void(int64_t, const std::string&, const std::string&, int64_t)> visit) {
  NOS_ASSIGN(SqliteStatement * select,
             Statement("SELECT cluster, source, boot, sequence FROM sources"));
  return select->Each([&](SqliteRow& row) {
    visit(row.Integer(0), std::string(row.Text(1)), std::string(row.Text(2)), row.Integer(3));
  });
}

Status Store::EachJournaled(FunctionRef<void(const JournalRow&)> visit) {
  NOS_ASSIGN(const int64_t flushed, Meta(kFlushed));
  NOS_ASSIGN(SqliteStatement * select,
             Statement("SELECT id, cluster, source, received, body FROM journal WHERE id > ? "
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

Result<int64_t> Store::UsedBytes() {
  NOS_ASSIGN(const int64_t pages, db_.Number("PRAGMA page_count"));
  NOS_ASSIGN(const int64_t free, db_.Number("PRAGMA freelist_count"));
  return (pages - free) * kPageBytes;
}

}  // namespace nos::telemetryserver
