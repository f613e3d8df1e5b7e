#include "exports/clickhouse.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "base/log.h"
#include "base/text.h"
#include "codec/gzip.h"
#include "exports/clickhouse_schema.h"
#include "telemetryserver/levels.h"

namespace nos::exports {
namespace {

using telemetry::Millis, telemetryserver::kDay;

constexpr size_t kMaxRefusals = 100;  // after this many, the rest of an INSERT is dropped
constexpr size_t kMaxRows = 100'000, kMaxBytes = size_t{16} << 20;  // per INSERT
constexpr size_t kMaxWords = 300;
constexpr Duration kDropEvery = std::chrono::hours(1);
constexpr const char* kTables[] = {"samples", "records", "envelopes"};
constexpr const char* kColumns[] = {
    "date,cluster,subject,metric,at,value,node,namespace,pod",
    "date,cluster,kind,object,at,source,boot,sequence,record,body",
    "date,cluster,source,boot,sequence,sent_at,received,lost,records"};

// RowBinary: numbers are little-endian; a string follows its length as a LEB128 number.
template <typename Number>
void Append(std::string& out, Number number) {
  for (size_t i = 0; i < sizeof(Number); ++i) {
    out.push_back(static_cast<char>(static_cast<uint64_t>(number) >> (8 * i)));
  }
}
void Append(std::string& out, double number) { Append(out, std::bit_cast<uint64_t>(number)); }
void Append(std::string& out, std::string_view text) {
  size_t size = text.size();
  for (; size >= 0x80; size >>= 7) out.push_back(static_cast<char>(size | 0x80));
  out.push_back(static_cast<char>(size));
  out += text;
}

template <typename... Values>
void AppendRow(std::string& out, const Values&... values) {
  (Append(out, values), ...);
}

uint16_t DayOf(Millis at) {
  return static_cast<uint16_t>(
      std::clamp<Millis>(at / kDay, 0, std::numeric_limits<uint16_t>::max()));
}

// Object of a record, named as in State::Change.
std::string ObjectOf(const telemetry::Record& record) {
  if (const auto* layout = std::get_if<telemetry::Layout>(&record.what)) return layout->node;
  if (const auto* object = std::get_if<telemetry::Object>(&record.what)) return object->key;
  if (const auto* event = std::get_if<telemetry::Happening>(&record.what)) return event->object;
  if (const auto* removed = std::get_if<telemetry::Removed>(&record.what)) {
    return removed->what + "/" + removed->key;
  }
  return "";
}

std::string InDatabase(std::string_view sql, const std::string& database) {
  std::string text;
  for (size_t at = 0; at != sql.npos;) {
    const size_t place = sql.find("{}", at);
    text += sql.substr(at, place - at);
    if (place == sql.npos) break;
    text += database;
    at = place + 2;
  }
  return text;
}

// Errors that ClickHouse reports for rows it can never parse. Source: ErrorCodes.cpp of ClickHouse.
bool IsRefused(const kube::ApiResponse& answer) {
  if (answer.code == 413) return true;
  // Not 33, CANNOT_READ_ALL_DATA: ClickHouse returns it for a truncated request, which can be
  // repeated.
  constexpr const char* kOfTheRows[] = {"Code: 26,", "Code: 27,", "Code: 32,", "Code: 117,"};
  return answer.code >= 400 && std::ranges::any_of(kOfTheRows, [&](const char* words) {
           return answer.text.starts_with(words);
         });
}

}  // namespace

ClickHouse::ClickHouse(ClickHouseOptions options, const Destination& destination,
                       kube::Transport& transport, Metrics& metrics)
    : options_(std::move(options)),
      destination_(destination),
      transport_(transport),
      metrics_(metrics) {}

Status ClickHouse::CheckDatabase(std::string_view name) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  const bool good = !name.empty() && name.size() <= 64 && std::ranges::all_of(name, fits) &&
                    (name[0] < '0' || name[0] > '9');
  return good ? Status::Ok() : Invalid("must consist of letters, digits and underscores");
}

// --- Rows ---

void ClickHouse::Take(std::span<const telemetryserver::Journaled> rows) {
  for (const telemetryserver::Journaled& row : rows) TakeRow(row);
}

void ClickHouse::TakeRow(const telemetryserver::Journaled& row) {
  const telemetry::Envelope& envelope = row.envelope;
  received_ = std::max(received_, row.received);
  names_.Follow(envelope);
  for (size_t i = 0; i < envelope.records.size(); ++i) TakeRecord(row, i, envelope.records[i]);
  if (row.derived || envelope.source.empty()) return;
  std::string* body = BodyFor(kEnvelopes, row.received, row.received);
  AppendRow(*body, DayOf(row.received), std::string_view(envelope.cluster),
            std::string_view(envelope.source), std::string_view(envelope.boot),
            static_cast<uint64_t>(envelope.sequence), envelope.sent_at, row.received,
            static_cast<uint64_t>(envelope.lost), static_cast<uint32_t>(envelope.records.size()));
}

void ClickHouse::TakeRecord(const telemetryserver::Journaled& row, size_t number,
                            const telemetry::Record& record) {
  const telemetry::Envelope& envelope = row.envelope;
  const std::string_view cluster = envelope.cluster;
  if (const auto* readings = std::get_if<telemetry::Readings>(&record.what)) {
    return TakeReadings(row, record.at, *readings);
  }
  std::string* body = BodyFor(kRecords, record.at, row.received);
  if (body == nullptr) return;
  AppendRow(*body, DayOf(record.at), cluster, std::string_view(record.kind),
            std::string_view(ObjectOf(record)), record.at, std::string_view(envelope.source),
            std::string_view(envelope.boot), static_cast<uint64_t>(envelope.sequence),
            static_cast<uint32_t>(number), std::string_view(WriteJson(record.body)));
}

void ClickHouse::TakeReadings(const telemetryserver::Journaled& row, Millis at,
                              const telemetry::Readings& readings) {
  const std::string& cluster = row.envelope.cluster;
  const Labels& labels = names_.LabelsOf(cluster, readings.subject);
  const auto label = [&](std::string_view name) -> std::string_view {
    const auto found = std::ranges::find(labels, name, &Labels::value_type::first);
    return found == labels.end() ? std::string_view() : found->second;
  };
  const std::string_view node = label("node"), ns = label("namespace"), pod = label("pod");
  for (const auto& [metric, value] : readings.metrics) {
    std::string* body = BodyFor(kSamples, at, row.received);
    if (body == nullptr) return;
    AppendRow(*body, DayOf(at), std::string_view(cluster), std::string_view(readings.subject),
              std::string_view(metric), at, value, node, ns, pod);
  }
}

std::string* ClickHouse::BodyFor(Table table, Millis at, Millis received) {
  const int64_t days = DaysOf(table);
  if (days > 0 && at < received - days * kDay) {
    metrics_.Count(kDropped, {{"export", kName}, {"reason", "late"}});
    return nullptr;
  }
  const uint16_t day = DayOf(at);
  // Search from the back: full inserts are at the front.
  const auto found = std::ranges::find_if(
      inserts_.rbegin(), inserts_.rend(),
      [&](const Insert& insert) { return insert.table == table && insert.day == day; });
  Insert* insert = found == inserts_.rend() ? nullptr : &*found;
  if (insert == nullptr || insert->begins.size() >= kMaxRows || insert->body.size() >= kMaxBytes) {
    insert = &inserts_.emplace_back(Insert{table, day, {}, {}});
  }
  insert->begins.push_back(insert->body.size());
  return &insert->body;
}

int64_t ClickHouse::DaysOf(Table table) const {
  return table == kSamples ? options_.samples_days : options_.rest_days;
}

// --- Over the network ---

Status ClickHouse::Send(Time now, Duration& wish) {
  if (!migrated_) {
    NOS_RETURN_IF_ERROR(Migrate(wish));
    migrated_ = true;
  }
  for (; !inserts_.empty(); inserts_.pop_front()) {
    const Insert& insert = inserts_.front();
    refusals_ = 0;
    NOS_RETURN_IF_ERROR(Post(insert, 0, insert.begins.size(), wish));
  }
  if (now - dropped_ < kDropEvery) return Status::Ok();
  dropped_ = now;
  if (const Status dropped = DropOld(wish); !dropped.ok()) {
    Log(LogLevel::kWarn, "failed to drop old partitions in ClickHouse, retrying in an hour",
        {{"database", options_.database}, {"error", dropped.message()}});
  }
  return Status::Ok();
}

Status ClickHouse::Post(const Insert& insert, size_t first, size_t last, Duration& wish) {
  const std::string sql = fmt::format("INSERT INTO {}.{} ({}) FORMAT RowBinary", options_.database,
                                      kTables[insert.table], kColumns[insert.table]);
  const size_t begin = insert.begins[first];
  const size_t end = last == insert.begins.size() ? insert.body.size() : insert.begins[last];
  const auto answer =
      Query(sql, Gzip(std::string_view(insert.body).substr(begin, end - begin), 1), wish);
  if (answer.ok()) return Status::Ok();
  if (answer.status().code() != Code::kInvalid) return answer.status();
  // The request was too large for a proxy, or one row makes the others fail. Splitting is bounded,
  // so that it ends if every row is rejected.
  if (last - first > 1 && ++refusals_ <= kMaxRefusals) {
    const size_t middle = first + (last - first) / 2;
    NOS_RETURN_IF_ERROR(Post(insert, first, middle, wish));
    return Post(insert, middle, last, wish);
  }
  metrics_.Count(kDropped, {{"export", kName}, {"reason", "refused"}},
                 static_cast<double>(last - first));
  Log(LogLevel::kWarn, "dropping rows that ClickHouse rejects",
      {{"export", kName},
       {"table", kTables[insert.table]},
       {"rows", std::to_string(last - first)},
       {"error", answer.status().message()}});
  return Status::Ok();
}

// Error: kInvalid: rejected permanently; any other error: retry.
Result<std::string> ClickHouse::Query(const std::string& sql, std::string body, Duration& wish) {
  kube::ApiRequest request;
  request.method = "POST";
  request.path = destination_.path();
  request.query = {{"query", sql}};
  request.content_type = "application/octet-stream";
  if (!body.empty()) request.content_encoding = "gzip";
  request.text = body.empty() ? " " : std::move(body);  // a POST needs a body
  NOS_ASSIGN(request.headers, destination_.Headers());
  auto answer = transport_.Do(request);
  const bool taken = answer.ok() && answer->code == 200;
  const bool refused = answer.ok() && IsRefused(*answer);
  metrics_.Count(kRequests, {{"export", kName},
                             {"result", taken     ? "ok"
                                        : refused ? "refused"
                                                  : "failed"}});
  NOS_RETURN_IF_ERROR(answer.status());
  if (taken) return std::move(answer->text);
  wish = std::max(wish, answer->retry_after);
  return Status(refused ? Code::kInvalid : Code::kUnavailable,
                fmt::format("{} answers {}: {}", destination_.connection().server, answer->code,
                            Shortened(answer->text, kMaxWords)));
}

Status ClickHouse::Migrate(Duration& wish) {
  const std::string& database = options_.database;
  const auto run = [&](std::string_view sql) {
    const Status status = Query(InDatabase(sql, database), "", wish).status();
    return status.ok() ? status : Status(Code::kUnavailable, status.message());
  };
  NOS_RETURN_IF_ERROR(run("CREATE DATABASE IF NOT EXISTS {}"));
  NOS_RETURN_IF_ERROR(run(kClickHouseVersions));
  NOS_ASSIGN(const std::string text,
             Query(fmt::format("SELECT max(version) FROM {}.schema_versions", database), "", wish));
  const auto version = ParseInt(Trim(text));
  const auto known = static_cast<int64_t>(kClickHouseMigrations.size());
  if (!version || *version < 0 || *version > known) {
    return {Code::kUnavailable,
            fmt::format("database {} has schema version {}, this nos supports up to {}: use the "
                        "newer nos, or another database",
                        database, Shortened(std::string(Trim(text)), 20), known)};
  }
  for (int64_t next = *version; next < known; ++next) {
    for (const std::string_view sql :
         Split(kClickHouseMigrations.at(static_cast<size_t>(next)), ';')) {
      if (!Trim(sql).empty()) NOS_RETURN_IF_ERROR(run(Trim(sql)));
    }
    NOS_RETURN_IF_ERROR(
        run(fmt::format("INSERT INTO {{}}.schema_versions SELECT {}, now()", next + 1)));
    Log(LogLevel::kInfo, "migrated ClickHouse tables",
        {{"database", database}, {"version", std::to_string(next + 1)}});
  }
  return Status::Ok();
}

// Drops whole days, because each day is a partition.
Status ClickHouse::DropOld(Duration& wish) {
  for (const Table table : {kSamples, kRecords, kEnvelopes}) {
    if (DaysOf(table) == 0) continue;
    const int64_t last = DayOf(received_) - DaysOf(table);
    NOS_ASSIGN(const std::string days,
               Query(fmt::format("SELECT DISTINCT replaceAll(partition, '\\'', '') AS day FROM "
                                 "system.parts WHERE active AND database = '{}' AND table = '{}' "
                                 "AND day < toString(toDate({})) LIMIT 1000",
                                 options_.database, kTables[table], std::max<int64_t>(last, 0)),
                     "", wish));  // older versions of ClickHouse quote the number
    for (const std::string_view day : Split(days, '\n')) {
      if (Trim(day).empty()) continue;
      NOS_RETURN_IF_ERROR(Query(fmt::format("ALTER TABLE {}.{} DROP PARTITION '{}'",
                                            options_.database, kTables[table], Trim(day)),
                                "", wish)
                              .status());
    }
  }
  return Status::Ok();
}

}  // namespace nos::exports
