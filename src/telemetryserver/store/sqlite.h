// SQLite as value types: connection, statement, and errors that name the failed operation.
//
//   NOS_ASSIGN(Sqlite db, Sqlite::Open(path, Sqlite::Mode::kWrite));
//   NOS_ASSIGN(SqliteStatement insert, db.Prepare("INSERT INTO t VALUES (?, ?)"));
//   NOS_RETURN_IF_ERROR(insert.Run(1, "text"));
//   NOS_ASSIGN(auto select, db.Prepare("SELECT a FROM t WHERE b = ?"));
//   NOS_RETURN_IF_ERROR(select.Each([&](SqliteRow& row) { ... row.Integer(0) ... }, "text"));
//
// A connection and its statements may be used by one thread at a time. Errors: kExhausted (disk
// full), kUnavailable (locked, I/O error, or stopped by a watch), kInvalid (not a database,
// damaged), kInternal (others). Internal to this library.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/function_ref.h"
#include "base/status.h"

struct sqlite3;
struct sqlite3_stmt;

namespace nos::telemetryserver {

// Bytes; a string_view is bound as text.
struct Blob {
  std::string_view bytes;
};

class SqliteRow {
 public:
  explicit SqliteRow(sqlite3_stmt* statement) : statement_(statement) {}
  int64_t Integer(int column) const;
  // Text or bytes, valid until the next row.
  std::string_view Text(int column) const;

 private:
  sqlite3_stmt* statement_;
};

class SqliteStatement {
 public:
  // For statements that return no rows.
  template <typename... Values>
  Status Run(const Values&... values) {
    return Each([](SqliteRow&) {}, values...);
  }
  template <typename... Values>
  Status Each(FunctionRef<void(SqliteRow&)> visit, const Values&... values) {
    int place = 0;
    (Bind(++place, values), ...);
    return Step(visit);
  }

 private:
  friend class Sqlite;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  SqliteStatement(sqlite3* db, sqlite3_stmt* statement) : db_(db), statement_(statement) {}
  void Bind(int place, int64_t value);
  void Bind(int place, std::string_view value);
  void Bind(int place, Blob value);
  Status Step(FunctionRef<void(SqliteRow&)> visit);

  sqlite3* db_;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

class Sqlite {
 public:
  enum class Mode { kWrite, kRead };

  // kWrite creates the file if it does not exist; only one connection writes at a time.
  static Result<Sqlite> Open(const std::string& path, Mode mode);
  // Several statements that return no rows.
  Status Execute(const std::string& sql);
  Result<SqliteStatement> Prepare(std::string_view sql);
  // The first column of the first row.
  Result<int64_t> Number(std::string_view sql);
  // ID of the row inserted last.
  int64_t LastId() const;
  // Number of rows that the last statement changed.
  int64_t Changes() const;

 private:
  friend class SqliteWatch;
  struct Close {
    void operator()(sqlite3* db) const;
  };
  explicit Sqlite(sqlite3* db) : db_(db) {}
  std::unique_ptr<sqlite3, Close> db_;
};

// While it lives, the connection's statements call `goes_on` every few milliseconds; they fail once
// it returns false. The connection must outlive the watch.
class SqliteWatch {
 public:
  SqliteWatch(Sqlite& db, std::function<bool()> goes_on);
  ~SqliteWatch();
  SqliteWatch(const SqliteWatch&) = delete;
  SqliteWatch& operator=(const SqliteWatch&) = delete;

 private:
  sqlite3* db_;
  const std::function<bool()> goes_on_;
};

}  // namespace nos::telemetryserver
