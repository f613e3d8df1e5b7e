#include "telemetryserver/store/archive.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "base/text.h"
#include "codec/cursor.h"
#include "codec/gzip.h"
#include "telemetryserver/store/archive_lease.h"
#include "telemetryserver/store/schema.h"

namespace nos::telemetryserver {
namespace {

constexpr size_t kMaxIdle = 16;
constexpr size_t kMaxCheckpointBytes = size_t{1} << 30;
constexpr std::string_view kDerivedSource;

Result<int64_t> Lookup(Sqlite& db, std::string_view sql, int64_t cluster, std::string_view name) {
  NOS_ASSIGN(SqliteStatement select, db.Prepare(sql));
  int64_t id = 0;
  NOS_RETURN_IF_ERROR(select.Each([&](SqliteRow& row) { id = row.Integer(0); }, name, cluster));
  return id;
}

std::string KindList(const std::vector<std::string>& kinds) {
  std::string list;
  for (const std::string& kind : kinds) {
    list += fmt::format("{}'{}'", list.empty() ? "" : ",",
                        kind);  // from a fixed set: no quoting needed
  }
  return list;
}

Event EventOf(SqliteRow& row) {
  Result<Json> body = ReadEventBody(row.Text(4));
  return {row.Integer(0), row.Integer(1), std::string(row.Text(2)), std::string(row.Text(3)),
          body.ok() ? *std::move(body) : Json()};
}

// Parameters: 1 cluster, 2 from, 3 to, 4 object, 5 most, 6 and 7 before.
std::string EventsSql(const EventQuery& query) {
  std::string sql =
      "SELECT id, at, kind, object, body FROM events e WHERE cluster = ?1 AND at >= ?2 AND "
      "at < ?3 AND at <= ?6 AND (at, id) < (?6, ?7)";
  // Separate conditions, so that each uses its own index.
  sql += query.object.empty() ? " AND (?4 = '' OR object = ?4)" : " AND object = ?4";
  if (!query.kinds.empty()) sql += " AND kind IN (" + KindList(query.kinds) + ")";
  if (query.latest) {
    sql +=
        " AND NOT EXISTS (SELECT 1 FROM events n WHERE n.cluster = e.cluster AND n.object = "
        "e.object AND n.at >= e.at AND n.at < ?3 AND n.kind = e.kind AND (n.at, n.id) > (e.at, "
        "e.id))";
  }
  return sql + " ORDER BY at DESC, id DESC LIMIT ?5";
}

Status ApplyBody(State& state, Result<Json> body) {
  if (!body.ok()) return body.status();
  if (state.Restore(*body)) return Status::Ok();
  Result<telemetry::Record> record = telemetry::ReadRecord(std::move(body).value());
  if (!record.ok()) return record.status();
  state.Apply(*record, kDerivedSource);
  return Status::Ok();
}

}  // namespace

// Parses one record after another: a tree of all records would take ten times the memory.
Result<size_t> ApplyCheckpoint(State& state, std::string_view bytes) {
  NOS_ASSIGN(const std::string text, Gunzip(bytes, kMaxCheckpointBytes));
  size_t damaged = 0;
  const auto apply = [&](Cursor& element) {
    if (!ApplyBody(state, ParseJson(element.Raw())).ok()) ++damaged;
  };
  const Status read = ReadJson(text, [&](Cursor& all) {
    if (all.kind() == Cursor::Kind::kArray) {
      all.Elements(apply);
    } else {
      ++damaged;
    }
  });
  return damaged + (read.ok() ? 0 : 1);
}

Result<Json> ReadEventBody(std::string_view bytes) {
  constexpr size_t kMaxEventBytes = size_t{64} << 20;
  constexpr std::string_view kGzip = "\x1f\x8b";
  if (!bytes.starts_with(kGzip)) return ParseJson(bytes);
  NOS_ASSIGN(const std::string text, Gunzip(bytes, kMaxEventBytes));
  return ParseJson(text);
}

Result<telemetry::Millis> RolledUntil(Sqlite& db, size_t level) {
  return db.Number(
      fmt::format("SELECT coalesce(max(value), 0) FROM meta WHERE key = 'rolled{}'", level));
}

Result<Sqlite> Archive::Take() {
  {
    const std::scoped_lock lock(mutex_);
    if (!idle_.empty()) {
      Sqlite db = std::move(idle_.back());
      idle_.pop_back();
      return db;
    }
  }
  NOS_ASSIGN(Sqlite db, Sqlite::Open(path_, Sqlite::Mode::kRead));
  NOS_RETURN_IF_ERROR(db.Execute("PRAGMA cache_size=-4096; PRAGMA mmap_size=268435456"));
  return db;
}

void Archive::GiveBack(Sqlite db) {
  const std::scoped_lock lock(mutex_);
  if (idle_.size() < kMaxIdle) idle_.push_back(std::move(db));
}

Result<std::vector<Bucket>> Archive::Samples(int64_t cluster, const std::string& subject,
                                             const std::string& metric, const Range& range,
                                             telemetry::Millis now) {
  NOS_ASSIGN(Sqlite taken, Take());
  Lease db(*this, std::move(taken));
  Wanted wanted{0, 0, now};
  NOS_ASSIGN(wanted.subject, Lookup(*db, "SELECT id FROM subjects WHERE name = ? AND cluster = ?",
                                    cluster, subject));
  NOS_ASSIGN(wanted.metric,
             Lookup(*db, "SELECT id FROM metrics WHERE name = ?1 AND ?2 >= 0", cluster, metric));
  Buckets buckets;
  if (wanted.subject == 0 || wanted.metric == 0) return buckets;
  size_t level = 0;
  while (level + 1 < kLevels.size() && kLevels.at(level + 1).step <= range.step) ++level;
  // Reads within one transaction: a flush or rollup between two reads would count rows twice or not
  // at all.
  NOS_RETURN_IF_ERROR(db->Execute("BEGIN"));
  const Status read = Collect(*db, wanted, level, range.from, range.to, buckets);
  NOS_RETURN_IF_ERROR(db->Execute("COMMIT"));
  NOS_RETURN_IF_ERROR(read);
  std::ranges::stable_sort(buckets, {}, &Bucket::at);
  return buckets;
}

// Rows older than the retention of this level come from the level above; rows that this level does
// not have yet come from the level below.
Status Archive::Collect(Sqlite& db, const Wanted& wanted, size_t level, telemetry::Millis from,
                        telemetry::Millis to, Buckets& buckets) const {
  const std::array<telemetry::Millis, 3> kept = {keep_.raw, keep_.rollups_5m, keep_.rollups_1h};
  if (level + 1 < kLevels.size()) {
    NOS_ASSIGN(const telemetry::Millis above, RolledUntil(db, level + 1));
    const telemetry::Millis begins =
        std::min(above, FloorTo(std::max<telemetry::Millis>(0, wanted.now - kept.at(level)),
                                kLevels.at(level + 1).window));
    if (from < begins) {
      NOS_RETURN_IF_ERROR(Collect(db, wanted, level + 1, from, std::min(to, begins), buckets));
      from = std::min(to, begins);
    }
  }
  if (from >= to) return Status::Ok();
  if (level == 0) return CollectRows(db, wanted, 0, from, to, buckets);
  NOS_ASSIGN(const telemetry::Millis rolled, RolledUntil(db, level));
  const telemetry::Millis middle = std::clamp(rolled, from, to);
  if (from < middle) {
    NOS_RETURN_IF_ERROR(CollectRows(db, wanted, level, from, middle, buckets));
  }
  return middle < to ? Collect(db, wanted, level - 1, middle, to, buckets) : Status::Ok();
}

Status Archive::CollectRows(Sqlite& db, const Wanted& wanted, size_t level, telemetry::Millis from,
                            telemetry::Millis to, Buckets& buckets) {
  std::vector<int64_t> windows;
  if (level > 0) {
    const telemetry::Millis window = kLevels.at(level).window;
    for (int64_t w = from / window; w * window < to; ++w) windows.push_back(w);
  } else {
    NOS_ASSIGN(SqliteStatement flushes,
               db.Prepare("SELECT id FROM flushes WHERE last >= ? AND first < ?"));
    NOS_RETURN_IF_ERROR(
        flushes.Each([&](SqliteRow& row) { windows.push_back(row.Integer(0)); }, from, to));
  }
  NOS_ASSIGN(SqliteStatement select,
             db.Prepare(fmt::format("SELECT body FROM {} WHERE id = ?", kLevels.at(level).table)));
  Status damaged;
  for (const int64_t window : windows) {
    NOS_RETURN_IF_ERROR(select.Each(
        [&](SqliteRow& row) {
          const Status read = AppendBuckets(row.Text(0), level, wanted.metric, from, to, buckets);
          if (!read.ok()) damaged = read;
        },
        RowId(window, wanted.subject)));
  }
  return damaged;
}

Result<EventPlace> ParseEventPlace(std::string_view text) {
  const size_t dot = text.find('.');
  const auto at = ParseInt(text.substr(0, dot));
  const auto id = dot == std::string_view::npos ? 0 : ParseInt(text.substr(dot + 1));
  if (at && id && *at >= 0 && *id >= 0) return EventPlace{*at, *id};
  return Invalid(fmt::format(
      "invalid cursor {}: pass the value of `next`, or a time in milliseconds since the epoch",
      Shortened(text, 60)));
}

std::string ToText(const EventPlace& place) { return fmt::format("{}.{}", place.at, place.id); }

Result<std::vector<Event>> Archive::Events(int64_t cluster, const EventQuery& query) {
  NOS_ASSIGN(Sqlite taken, Take());
  Lease db(*this, std::move(taken));
  NOS_ASSIGN(SqliteStatement select, db->Prepare(EventsSql(query)));
  const EventPlace before = query.before.value_or(EventPlace{query.to, 0});
  std::vector<Event> events;
  NOS_RETURN_IF_ERROR(select.Each([&](SqliteRow& row) { events.push_back(EventOf(row)); }, cluster,
                                  query.from, query.to, std::string_view(query.object),
                                  static_cast<int64_t>(query.most), before.at, before.id));
  return events;
}

Result<Archive::Following> Archive::EventsAfter(int64_t cluster, int64_t id,
                                                const std::vector<std::string>& kinds,
                                                size_t most) {
  NOS_ASSIGN(Sqlite taken, Take());
  Lease db(*this, std::move(taken));
  Following following{{}, id};
  NOS_ASSIGN(SqliteStatement last,
             db->Prepare("SELECT coalesce(max(id), ?1) FROM (SELECT id FROM events WHERE id > ?1 "
                         "ORDER BY id LIMIT ?2)"));
  NOS_RETURN_IF_ERROR(last.Each([&](SqliteRow& row) { following.last = row.Integer(0); }, id,
                                static_cast<int64_t>(most)));
  // Selects by ID only: indexes of times or kinds do not help here.
  NOS_ASSIGN(SqliteStatement select,
             db->Prepare("SELECT id, at, kind, object, body FROM events WHERE id > ? AND id <= ? "
                         "AND +cluster = ? AND +kind IN (" +
                         KindList(kinds) + ") ORDER BY id"));
  NOS_RETURN_IF_ERROR(select.Each([&](SqliteRow& row) { following.events.push_back(EventOf(row)); },
                                  id, following.last, cluster));
  return following;
}

Result<std::optional<EventPlace>> Archive::Scan(int64_t cluster, EventQuery query,
                                                FunctionRef<bool(Event&)> take) {
  constexpr size_t kMinAtOnce = 50, kMaxAtOnce = 500;
  size_t left = std::exchange(query.most, 0), scanned = 0;
  while (left > 0 && scanned < kMaxScanned) {
    query.most = std::min(std::clamp(left, kMinAtOnce, kMaxAtOnce), kMaxScanned - scanned);
    NOS_ASSIGN(std::vector<Event> events, Events(cluster, query));
    for (Event& event : events) {
      query.before = EventPlace{event.at, event.id};
      ++scanned;
      if (take(event) && --left == 0) return query.before;
    }
    if (events.size() < query.most) return std::optional<EventPlace>();
  }
  return query.before;
}

Result<std::vector<Held>> Archive::Holds(int64_t cluster, const std::string& pod,
                                         telemetry::Millis from, telemetry::Millis to) {
  NOS_ASSIGN(Sqlite taken, Take());
  Lease db(*this, std::move(taken));
  NOS_ASSIGN(SqliteStatement select,
             db->Prepare("SELECT subject, since, until FROM holds WHERE cluster = ? AND pod = ? "
                         "AND since < ? AND (until = 0 OR until > ?) ORDER BY since LIMIT 1000"));
  std::vector<Held> holds;
  NOS_RETURN_IF_ERROR(select.Each(
      [&](SqliteRow& row) {
        holds.push_back({std::string(row.Text(0)), row.Integer(1), row.Integer(2)});
      },
      cluster, std::string_view(pod), to, from));
  return holds;
}

// Applies the last checkpoint before `at` and all events since; also late events before the
// checkpoint that it does not include. A damaged checkpoint is passed over: the one before it and
// the events since have the same result.
Result<size_t> Archive::StateAt(int64_t cluster, telemetry::Millis at, State& state) {
  NOS_ASSIGN(Sqlite taken, Take());
  Lease db(*this, std::move(taken));
  size_t damaged = 0;
  telemetry::Millis base = -1;
  int64_t event = 0;
  NOS_ASSIGN(SqliteStatement checkpoint,
             db->Prepare("SELECT at, event, body FROM checkpoints WHERE cluster = ? AND at <= ? "
                         "ORDER BY at DESC LIMIT 1"));
  for (telemetry::Millis before = at;; --before) {
    std::optional<telemetry::Millis> found;
    std::string body;
    NOS_RETURN_IF_ERROR(checkpoint.Each(
        [&](SqliteRow& row) {
          found = row.Integer(0);
          event = row.Integer(1);
          body = std::string(row.Text(2));
        },
        cluster, before));
    if (!found) break;
    before = *found;
    const auto applied = ApplyCheckpoint(state, std::exchange(body, {}));
    damaged += applied.value_or(1);
    if (applied.ok()) {
      base = before;
      break;
    }
    event = 0;
  }
  NOS_ASSIGN(SqliteStatement late,
             db->Prepare("SELECT body FROM events WHERE cluster = ? AND at <= ? AND late = 1 AND "
                         "id > ? AND kind IN "
                         "('layout','node','pod','quota','job','queue','pool','removed','gone') "
                         "ORDER BY at, id"));
  const auto apply = [&](SqliteRow& row) {
    if (!ApplyBody(state, ReadEventBody(row.Text(0))).ok()) ++damaged;
  };
  NOS_RETURN_IF_ERROR(late.Each(apply, cluster, std::min(base, at), event));
  NOS_ASSIGN(const size_t since, ApplySince(*db, cluster, base, at, state));
  return damaged + since;
}

Result<size_t> Archive::ApplySince(Sqlite& db, int64_t cluster, telemetry::Millis after,
                                   telemetry::Millis at, State& state) {
  size_t damaged = 0;
  NOS_ASSIGN(
      SqliteStatement since,
      db.Prepare(
          "SELECT body FROM events WHERE cluster = ? AND at > ? AND at <= ? "
          "AND kind IN ('layout','node','pod','quota','job','queue','pool','removed','gone') "
          "ORDER BY at, id"));
  const auto apply = [&](SqliteRow& row) {
    if (!ApplyBody(state, ReadEventBody(row.Text(0))).ok()) ++damaged;
  };
  NOS_RETURN_IF_ERROR(since.Each(apply, cluster, after, at));
  return damaged;
}

Status Archive::EachChange(int64_t cluster, telemetry::Millis from, telemetry::Millis to,
                           FunctionRef<void(const Event&)> visit) {
  NOS_ASSIGN(Sqlite taken, Take());
  Lease db(*this, std::move(taken));
  NOS_ASSIGN(
      SqliteStatement select,
      db->Prepare(
          "SELECT id, at, kind, object, body FROM events WHERE cluster = ? AND at > ? AND at <= ? "
          "AND kind IN ('layout','node','pod','quota','job','queue','pool','removed','gone') "
          "ORDER BY at, id"));
  return select.Each([&](SqliteRow& row) { visit(EventOf(row)); }, cluster, from, to);
}

Result<std::optional<telemetry::Millis>> Archive::Begin(int64_t cluster) {
  NOS_ASSIGN(Sqlite taken, Take());
  Lease db(*this, std::move(taken));
  NOS_ASSIGN(const int64_t begin,
             db->Number(fmt::format(
                 "SELECT min(coalesce((SELECT min(at) FROM events WHERE cluster = {0}), -1), "
                 "coalesce((SELECT min(at) FROM checkpoints WHERE cluster = {0}), 9e15))",
                 cluster)));
  return begin < 0 ? std::nullopt : std::optional(begin);
}

Result<size_t> Archive::Advance(int64_t cluster, telemetry::Millis from, telemetry::Millis to,
                                State& state) {
  NOS_ASSIGN(Sqlite taken, Take());
  Lease db(*this, std::move(taken));
  return ApplySince(*db, cluster, from, to, state);
}

std::vector<Bucket> Regrouped(const std::vector<Bucket>& buckets, const Range& range) {
  std::vector<Bucket> groups;
  for (telemetry::Millis at = range.from; at < range.to; at += range.step)
    groups.push_back({at, 0, 0, 0, 0});
  for (const Bucket& bucket : buckets) {
    if (bucket.at < range.from || bucket.at >= range.to) continue;
    Bucket& group = groups[static_cast<size_t>((bucket.at - range.from) / range.step)];
    const bool first = group.count <= 0;
    group.min = first ? bucket.min : std::min(group.min, bucket.min);
    group.max = first ? bucket.max : std::max(group.max, bucket.max);
    const double count = group.count + bucket.count;
    group.mean = (group.mean * group.count + bucket.mean * bucket.count) / count;
    group.count = count;
  }
  return groups;
}

}  // namespace nos::telemetryserver
