// The connection that writes the store's file: transactions, prepared statements, table `meta`.
//
//   NOS_ASSIGN(Database db, Database::Open(path, max_bytes));
//   NOS_RETURN_IF_ERROR(db.Transaction([&] { return db.SetMeta("applied", 7); }));
//   NOS_ASSIGN(SqliteStatement * insert, db.Statement("INSERT INTO t VALUES (?)"));
//
// Open locks the file for this process and migrates it. One thread uses it. Errors: see Sqlite;
// kInvalid for a file of a newer version, kUnavailable if another process uses the file. Internal
// to this library.
#pragma once

#include <map>
#include <string>

#include "base/fd.h"
#include "base/function_ref.h"
#include "telemetryserver/store/sqlite.h"

namespace nos::telemetryserver {

class Database {
 public:
  // `max_bytes`: maximum file size; 0: limited by the disk.
  static Result<Database> Open(const std::string& path, int64_t max_bytes);

  // Atomic: all writes of `write` or none. A later transaction may succeed after a failure.
  Status Transaction(FunctionRef<Status()> write);
  // Prepared once and cached. Valid as long as this object.
  Result<SqliteStatement*> Statement(const char* sql);
  // Prepared for one use.
  Result<SqliteStatement> Prepare(std::string_view sql) { return db_.Prepare(sql); }
  Status Execute(const std::string& sql) { return db_.Execute(sql); }
  // The first column of the first row.
  Result<int64_t> Number(std::string_view sql) { return db_.Number(sql); }
  int64_t LastId() const { return db_.LastId(); }
  int64_t Changes() const { return db_.Changes(); }
  // Entries of table `meta`.
  Result<int64_t> Meta(const std::string& key, int64_t fallback = 0);
  Status SetMeta(const std::string& key, int64_t value);
  // Size of the file in bytes, without free pages.
  Result<int64_t> UsedBytes();

 private:
  Database(std::string path, Sqlite db, UniqueFd lock)
      : path_(std::move(path)), lock_(std::move(lock)), db_(std::move(db)) {}
  // Before the migration, `version` is that of the file. Writes PATH.version-VERSION.
  void KeepCopy(int64_t version);
  Status Migrate();

  std::string path_;
  UniqueFd lock_;  // of the file, held while this lives
  Sqlite db_;
  std::map<std::string, SqliteStatement, std::less<>> statements_;
};

}  // namespace nos::telemetryserver
