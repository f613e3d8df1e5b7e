#include "telemetryserver/store/chunk_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/log.h"
#include "telemetryserver/levels.h"
#include "telemetryserver/store/cluster_table.h"

namespace nos::telemetryserver {
namespace {

constexpr int64_t kRowsAtOnce = 5000;
constexpr size_t kMaxMetricNames =
    kMaxStoredClusters * kMaxClusterMetrics + 100;  // and metrics of this server

}  // namespace

Status ChunkTable::Write(int64_t cluster, const Heads& heads) {
  for (const HeadsBySubject& full : heads.full()) {
    NOS_RETURN_IF_ERROR(WriteHeads(cluster, full));
  }
  return WriteHeads(cluster, heads.all());
}

// Writes one chunk per subject.
Status ChunkTable::WriteHeads(int64_t cluster, const HeadsBySubject& heads) {
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
  NOS_ASSIGN(SqliteStatement * insert,
             db_.Statement("INSERT INTO flushes(first, last) VALUES (?, ?)"));
  NOS_RETURN_IF_ERROR(insert->Run(first, last));
  const int64_t flush = db_.LastId();
  NOS_RETURN_IF_ERROR(rollups_.Begin(first));
  for (const auto& [subject, head] : order) {
    NOS_RETURN_IF_ERROR(WriteHead(flush, cluster, *subject, *head));
  }
  return Status::Ok();
}

Status ChunkTable::WriteHead(int64_t flush, int64_t cluster, const std::string& subject,
                             const Head& head) {
  int64_t number = head.subject;
  if (number == 0) {
    NOS_ASSIGN(number, subjects_.IdOf(cluster, subject, std::ranges::max(head.block.times)));
  }
  if (number == 0) {
    unkept_[cluster] += static_cast<int64_t>(head.block.times.size() * head.metrics.size());
    return Status::Ok();
  }
  if (head.subject == 0) assigned_[{cluster, subject}] = number;
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
  NOS_RETURN_IF_ERROR(rollups_.MarkLate(number, block.times));
  const std::string body = EncodeRow(metrics, block);
  NOS_ASSIGN(SqliteStatement * insert, db_.Statement("INSERT INTO chunks VALUES (?, ?)"));
  return insert->Run(RowId(flush, number), Blob{body});
}

void ChunkTable::Discard() {
  metrics_.clear();  // some may belong to the transaction
  assigned_.clear();
  unkept_.clear();
}

Result<int64_t> ChunkTable::MetricId(const std::string& name) {
  if (const auto known = metrics_.find(name); known != metrics_.end()) return known->second;
  NOS_ASSIGN(SqliteStatement * select, db_.Statement("SELECT id FROM metrics WHERE name = ?"));
  int64_t id = 0;
  const std::string_view text = name;
  NOS_RETURN_IF_ERROR(select->Each([&](SqliteRow& row) { id = row.Integer(0); }, text));
  if (id == 0) {
    NOS_ASSIGN(const int64_t count, db_.Number("SELECT count(*) FROM metrics"));
    if (count >= static_cast<int64_t>(kMaxMetricNames)) return int64_t{0};  // not stored
    NOS_ASSIGN(SqliteStatement * insert, db_.Statement("INSERT INTO metrics(name) VALUES (?)"));
    NOS_RETURN_IF_ERROR(insert->Run(text));
    id = db_.LastId();
  }
  metrics_[name] = id;
  return id;
}

void ChunkTable::TakeIds(int64_t cluster, Heads& heads) {
  for (const auto& [key, number] : assigned_) {
    const auto head = heads.all().find(key.second);
    if (key.first == cluster && head != heads.all().end()) head->second.subject = number;
  }
  std::erase_if(assigned_, [&](const auto& entry) { return entry.first.first == cluster; });
}

int64_t ChunkTable::TakeUnkept(int64_t cluster) {
  const auto unkept = unkept_.find(cluster);
  if (unkept == unkept_.end()) return 0;
  const int64_t values = unkept->second;
  unkept_.erase(unkept);
  Log(LogLevel::kWarn, "dropping samples of new subjects: their cluster has too many",
      {{"cluster", std::to_string(cluster)}, {"values", std::to_string(values)}});
  return values;
}

Status ChunkTable::Remove(int64_t cluster, std::span<const std::string_view> prefixes,
                          telemetry::Millis from, telemetry::Millis to) {
  std::vector<int64_t> flushes, rows;
  NOS_ASSIGN(SqliteStatement * windows,
             db_.Statement("SELECT id FROM flushes WHERE last >= ? AND first < ?"));
  NOS_RETURN_IF_ERROR(
      windows->Each([&](SqliteRow& row) { flushes.push_back(row.Integer(0)); }, from, to));
  for (const std::string_view prefix : prefixes) {
    NOS_ASSIGN(const std::vector<int64_t> subjects, subjects_.WithPrefix(cluster, prefix));
    for (const int64_t subject : subjects) {
      for (const int64_t flush : flushes) rows.push_back(RowId(flush, subject));
    }
  }
  for (const int64_t row : rows) NOS_RETURN_IF_ERROR(RemoveFromRow(row, from, to));
  return Status::Ok();
}

Status ChunkTable::RemoveFromRow(int64_t row, telemetry::Millis from, telemetry::Millis to) {
  std::string body;
  NOS_ASSIGN(SqliteStatement * select, db_.Statement("SELECT body FROM chunks WHERE id = ?"));
  NOS_RETURN_IF_ERROR(
      select->Each([&](SqliteRow& found) { body = std::string(found.Text(0)); }, row));
  if (body.empty()) return Status::Ok();
  const Result<Row> read = DecodeRow(body, 0);
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
    NOS_ASSIGN(SqliteStatement * remove, db_.Statement("DELETE FROM chunks WHERE id = ?"));
    return remove->Run(row);
  }
  NOS_ASSIGN(SqliteStatement * replace, db_.Statement("UPDATE chunks SET body = ? WHERE id = ?"));
  const std::string bytes = EncodeRow(read->metrics, left);
  return replace->Run(Blob{bytes}, row);
}

Result<bool> ChunkTable::Expire(telemetry::Millis now, telemetry::Millis keep) {
  NOS_ASSIGN(const telemetry::Millis rolled, rollups_.Until(1));
  NOS_ASSIGN(const int64_t flush,
             db_.Number(fmt::format("SELECT coalesce(min(id), 0) FROM flushes WHERE last < {}",
                                    std::min(now - keep, rolled))));
  if (flush == 0) return false;
  const auto write = [&]() -> Status {
    NOS_ASSIGN(
        SqliteStatement * rows,
        db_.Statement("DELETE FROM chunks WHERE id IN (SELECT id FROM chunks WHERE id >= ? AND "
                      "id < ? LIMIT ?)"));
    NOS_RETURN_IF_ERROR(rows->Run(RowId(flush, 0), RowId(flush + 1, 0), kRowsAtOnce));
    if (db_.Changes() == kRowsAtOnce) return Status::Ok();
    NOS_ASSIGN(SqliteStatement * over, db_.Statement("DELETE FROM flushes WHERE id = ?"));
    return over->Run(flush);
  };
  NOS_RETURN_IF_ERROR(db_.Transaction(write));
  return true;
}

}  // namespace nos::telemetryserver
