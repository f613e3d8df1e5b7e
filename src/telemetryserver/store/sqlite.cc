#include "telemetryserver/store/sqlite.h"

#include <fmt/core.h>
#include <sqlite3.h>

#include <utility>

namespace nos::telemetryserver {
namespace {

constexpr int kBusyMillis = 5000;
constexpr int kWatchedInstructions = 20'000;

Status Error(sqlite3* db, int result, std::string_view doing) {
  Code code = Code::kInternal;
  switch (result & 0xff) {
    case SQLITE_FULL:
      code = Code::kExhausted;
      break;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_IOERR:
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_INTERRUPT:
      code = Code::kUnavailable;
      break;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      code = Code::kInvalid;
      break;
    default:
      break;
  }
  return {code, fmt::format("database: {}: {}{}", doing,
                            db == nullptr ? sqlite3_errstr(result) : sqlite3_errmsg(db),
                            code == Code::kInvalid ? "; see nos telemetry verify" : "")};
}

}  // namespace

int64_t SqliteRow::Integer(int column) const { return sqlite3_column_int64(statement_, column); }

std::string_view SqliteRow::Text(int column) const {
  const void* bytes = sqlite3_column_blob(statement_, column);
  const int size = sqlite3_column_bytes(statement_, column);
  return bytes == nullptr
             ? std::string_view()
             : std::string_view(static_cast<const char*>(bytes), static_cast<size_t>(size));
}

void SqliteStatement::Finalize::operator()(sqlite3_stmt* statement) const {
  sqlite3_finalize(statement);
}

void SqliteStatement::Bind(int place, int64_t value) {
  sqlite3_bind_int64(statement_.get(), place, value);
}

// The bound value outlives the step: both are in one call of Each.
void SqliteStatement::Bind(int place, std::string_view value) {
  sqlite3_bind_text64(statement_.get(), place, value.data() == nullptr ? "" : value.data(),
                      value.size(), SQLITE_STATIC, SQLITE_UTF8);
}

void SqliteStatement::Bind(int place, Blob value) {
  sqlite3_bind_blob64(statement_.get(), place, value.bytes.data(), value.bytes.size(),
                      SQLITE_STATIC);
}

Status SqliteStatement::Step(FunctionRef<void(SqliteRow&)> visit) {
  SqliteRow row(statement_.get());
  int result = sqlite3_step(statement_.get());
  for (; result == SQLITE_ROW; result = sqlite3_step(statement_.get())) visit(row);
  Status status;
  if (result != SQLITE_DONE) status = Error(db_, result, sqlite3_sql(statement_.get()));
  sqlite3_reset(statement_.get());
  sqlite3_clear_bindings(statement_.get());
  return status;
}

void Sqlite::Close::operator()(sqlite3* db) const { sqlite3_close_v2(db); }

Result<Sqlite> Sqlite::Open(const std::string& path, Mode mode) {
  sqlite3* raw = nullptr;
  const int flags =
      mode == Mode::kWrite ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY;
  const int result = sqlite3_open_v2(path.c_str(), &raw, flags | SQLITE_OPEN_NOMUTEX, nullptr);
  Sqlite db(raw);
  if (result != SQLITE_OK) return Error(raw, result, "open " + path);
  sqlite3_busy_timeout(raw, kBusyMillis);
  sqlite3_extended_result_codes(raw, 1);
  return db;
}

Status Sqlite::Execute(const std::string& sql) {
  const int result = sqlite3_exec(db_.get(), sql.c_str(), nullptr, nullptr, nullptr);
  return result == SQLITE_OK ? Status::Ok() : Error(db_.get(), result, sql.substr(0, 60));
}

Result<SqliteStatement> Sqlite::Prepare(std::string_view sql) {
  sqlite3_stmt* statement = nullptr;
  const int result = sqlite3_prepare_v3(db_.get(), sql.data(), static_cast<int>(sql.size()),
                                        SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
  if (result != SQLITE_OK) return Error(db_.get(), result, sql);
  return SqliteStatement(db_.get(), statement);
}

Result<int64_t> Sqlite::Number(std::string_view sql) {
  NOS_ASSIGN(SqliteStatement select, Prepare(sql));
  int64_t number = 0;
  bool first = true;
  NOS_RETURN_IF_ERROR(select.Each([&](SqliteRow& row) {
    if (first) number = row.Integer(0);
    first = false;
  }));
  return number;
}

SqliteWatch::SqliteWatch(Sqlite& db, std::function<bool()> goes_on)
    : db_(db.db_.get()), goes_on_(std::move(goes_on)) {
  const auto call = [](void* self) { return static_cast<SqliteWatch*>(self)->goes_on_() ? 0 : 1; };
  sqlite3_progress_handler(db_, kWatchedInstructions, call, this);
}

SqliteWatch::~SqliteWatch() { sqlite3_progress_handler(db_, 0, nullptr, nullptr); }

int64_t Sqlite::LastId() const { return sqlite3_last_insert_rowid(db_.get()); }
int64_t Sqlite::Changes() const { return sqlite3_changes64(db_.get()); }

}  // namespace nos::telemetryserver
