#include "telemetryserver/store/database.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "base/log.h"
#include "telemetryserver/store/copy.h"
#include "telemetryserver/store/schema.h"

namespace nos::telemetryserver {
namespace {

constexpr int64_t kPageBytes = 16384;  // most rows of samples fit into one

// A process that ended after a failed sync leaves commits in the log that reads show and the disk
// does not have: Linux does not write them again. Commits after them would be lost with them. Their
// content is written anew, into the file. A full disk is no reason not to start.
Status RewriteLog(Sqlite& db) {
  const Status written = db.Number("PRAGMA wal_checkpoint(TRUNCATE)").status();
  return written.code() == Code::kExhausted ? Status::Ok() : written;
}

}  // namespace

Result<Database> Database::Open(const std::string& path, int64_t max_bytes) {
  NOS_ASSIGN(UniqueFd lock, LockDatabase(path));
  NOS_ASSIGN(Sqlite sqlite, Sqlite::Open(path, Sqlite::Mode::kWrite));
  Database db(path, std::move(sqlite), std::move(lock));
  NOS_RETURN_IF_ERROR(db.Execute(fmt::format(
      "PRAGMA page_size={}; PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; "
      "PRAGMA cache_size=-65536; PRAGMA temp_store=MEMORY; PRAGMA journal_size_limit=268435456",
      kPageBytes)));
  NOS_RETURN_IF_ERROR(RewriteLog(db.db_).Within(path));
  NOS_RETURN_IF_ERROR(db.Migrate().Within(path));
  if (max_bytes > 0) {
    NOS_RETURN_IF_ERROR(
        db.Execute(fmt::format("PRAGMA max_page_count={}", max_bytes / kPageBytes + 1)));
  }
  return db;
}

Status Database::Migrate() {
  NOS_ASSIGN(int64_t version, Number("PRAGMA user_version"));
  if (version > static_cast<int64_t>(kMigrations.size())) {
    return Invalid(fmt::format(
        "the file has version {} and this nos knows up to {}: use the newer nos, or another file",
        version, kMigrations.size()));
  }
  if (version > 0 && version < static_cast<int64_t>(kMigrations.size())) KeepCopy(version);
  for (; version < static_cast<int64_t>(kMigrations.size()); ++version) {
    const auto write = [&]() -> Status {
      NOS_RETURN_IF_ERROR(Execute(kMigrations.at(static_cast<size_t>(version))));
      return Execute(fmt::format("PRAGMA user_version={}", version + 1));
    };
    NOS_RETURN_IF_ERROR(Transaction(write));
  }
  return Status::Ok();
}

// An earlier nos reads no newer version. Without space for a copy the migration still goes on: it
// is one transaction for each version, and the server must not stay away because its disk is full.
void Database::KeepCopy(int64_t version) {
  const std::string copy = fmt::format("{}.version-{}", path_, version), part = copy + ".part";
  std::error_code ignored;
  for (int64_t older = 1; older < version; ++older) {
    std::filesystem::remove(fmt::format("{}.version-{}", path_, older), ignored);
  }
  Status written = CopyInto(db_, part, {});
  if (written.ok()) written = RenameFile(part, copy);
  if (written.ok()) {
    Log(LogLevel::kInfo, "migrating the store, keeping a copy for the previous nos",
        {{"copy", copy}});
    return;
  }
  std::filesystem::remove(part, ignored);
  Log(LogLevel::kWarn, "failed to copy the store before its migration",
      {{"error", written.ToString()}});
}

Status Database::Transaction(FunctionRef<Status()> write) {
  NOS_RETURN_IF_ERROR(Execute("BEGIN IMMEDIATE"));
  Status status = write();
  if (status.ok()) status = Execute("COMMIT");
  if (!status.ok()) (void)Execute("ROLLBACK");  // fails if SQLite already rolled back
  return status;
}

Result<SqliteStatement*> Database::Statement(const char* sql) {
  const auto found = statements_.find(std::string_view(sql));
  if (found != statements_.end()) return &found->second;
  NOS_ASSIGN(SqliteStatement statement, Prepare(sql));
  return &statements_.emplace(sql, std::move(statement)).first->second;
}

Result<int64_t> Database::Meta(const std::string& key, int64_t fallback) {
  NOS_ASSIGN(SqliteStatement * select, Statement("SELECT value FROM meta WHERE key = ?"));
  int64_t value = fallback;
  NOS_RETURN_IF_ERROR(
      select->Each([&](SqliteRow& row) { value = row.Integer(0); }, std::string_view(key)));
  return value;
}

Status Database::SetMeta(const std::string& key, int64_t value) {
  NOS_ASSIGN(SqliteStatement * set, Statement("INSERT OR REPLACE INTO meta VALUES (?, ?)"));
  return set->Run(std::string_view(key), value);
}

Result<int64_t> Database::UsedBytes() {
  NOS_ASSIGN(const int64_t pages, Number("PRAGMA page_count"));
  NOS_ASSIGN(const int64_t free, Number("PRAGMA freelist_count"));
  return (pages - free) * kPageBytes;
}

}  // namespace nos::telemetryserver
