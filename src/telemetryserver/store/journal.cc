#include "telemetryserver/journal.h"

#include <utility>

#include "base/log.h"
#include "telemetryserver/store/journal_table.h"

namespace nos::telemetryserver {
Result<JournalReader> JournalReader::Open(const std::string& path) {
  NOS_ASSIGN(Sqlite db, Sqlite::Open(path, Sqlite::Mode::kRead));
  return JournalReader(std::move(db));
}

Result<std::vector<Journaled>> JournalReader::After(int64_t id, size_t max_rows, size_t max_bytes) {
  std::vector<std::pair<Journaled, std::string>> rows;
  {
    // Read completely before other work: an open statement prevents the write-ahead log from
    // shrinking.
    NOS_ASSIGN(SqliteStatement select,
               db_.Prepare("SELECT id, received, source, body FROM (SELECT *, sum(length(body)) "
                           "OVER (ORDER BY id) - length(body) AS before FROM (SELECT * FROM "
                           "journal WHERE id > ? ORDER BY id LIMIT ?)) WHERE before < ?"));
    const auto take = [&](SqliteRow& row) {
      Journaled journaled{row.Integer(0), row.Integer(1), row.Text(2).empty(), {}};
      rows.emplace_back(std::move(journaled), row.Text(3));
    };
    NOS_RETURN_IF_ERROR(
        select.Each(take, id, static_cast<int64_t>(max_rows), static_cast<int64_t>(max_bytes)));
  }
  std::vector<Journaled> read;
  for (auto& [journaled, body] : rows) {
    auto envelope = ReadJournaled(body, journaled.derived, journaled.received);
    if (envelope.ok()) {
      journaled.envelope = std::move(envelope).value();
    } else {
      Log(LogLevel::kWarn, "failed to read an envelope of the journal",
          {{"id", std::to_string(journaled.id)}, {"error", envelope.status().message()}});
    }
    read.push_back(std::move(journaled));
  }
  return read;
}

}  // namespace nos::telemetryserver
