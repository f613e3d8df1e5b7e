#include "telemetryserver/verification.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "base/text.h"
#include "telemetryserver/levels.h"
#include "telemetryserver/store/archive.h"
#include "telemetryserver/store/archive_lease.h"
#include "telemetryserver/store/journal_table.h"
#include "telemetryserver/store/schema.h"

namespace nos::telemetryserver {
namespace {

constexpr auto kKnownVersion = static_cast<int64_t>(kMigrations.size());
constexpr const char* kPutBackup =
    "put a backup in its place with nos telemetry restore, or move the file away: the server then "
    "begins anew";
constexpr const char* kLeftOut =
    "nothing has to be done: the server leaves them out. A backup of before has them";

// The findings of one check: it counts all damaged rows and names the first ones.
struct Reading {
  int64_t rows = 0, damaged = 0;
  std::vector<std::string> names{};

  void Damaged(std::string name) {
    if (++damaged <= static_cast<int64_t>(kMaxDamagedObjects)) names.push_back(std::move(name));
  }
};

// "table events", "index events_by_time", and each table's columns, "events.body".
Result<std::set<std::string>> PartsOf(Sqlite& db) {
  std::set<std::string> parts;
  NOS_ASSIGN(SqliteStatement select,
             db.Prepare("SELECT type || ' ' || name FROM sqlite_master WHERE name NOT LIKE "
                        "'sqlite_%' UNION ALL SELECT m.name || '.' || c.name FROM sqlite_master m, "
                        "pragma_table_info(m.name) c WHERE m.type = 'table'"));
  NOS_RETURN_IF_ERROR(select.Each([&](SqliteRow& row) { parts.emplace(row.Text(0)); }));
  return parts;
}

Result<std::set<std::string>> PartsOfVersion(int64_t version) {
  NOS_ASSIGN(Sqlite db, Sqlite::Open(":memory:", Sqlite::Mode::kWrite));
  for (int64_t i = 0; i < version; ++i) {
    NOS_RETURN_IF_ERROR(db.Execute(kMigrations.at(static_cast<size_t>(i))));
  }
  return PartsOf(db);
}

class Verifier {
 public:
  Verifier(Sqlite& db, const VerifyProgress& progress) : db_(db), progress_(progress) {}

  Result<std::vector<StoreCheck>> Run() {
    const auto goes_on = [this] {
      stopped_ = stopped_ || (progress_ && !progress_(code_, reading_.rows));
      return !stopped_;
    };
    const SqliteWatch watch(db_, goes_on);
    NOS_RETURN_IF_ERROR(CheckAll());
    return std::move(checks_);
  }

 private:
  Status CheckAll();
  Status CheckFile();
  Status CheckVersion();
  Status CheckPages();
  Status CheckSchema();
  Status CheckJournalRows();
  Status CheckJournalNumbers();
  Status CheckClusters();
  Status CheckEvents();
  Status CheckCheckpoints();
  Status CheckSamples();

  // Runs one check; an error of it becomes a finding. False: further checks make no sense.
  bool Check(std::string code, Status (Verifier::*look)()) {
    code_ = std::move(code);
    reading_ = {};
    const size_t before = checks_.size();
    const Status looked = (this->*look)();
    if (!looked.ok()) Add(Harm::kFile, looked.message(), kPutBackup);
    return looked.ok() && checks_.size() > before && checks_.back().harm != Harm::kFile;
  }
  void Add(Harm harm, std::string message, std::string remedy = "") {
    checks_.push_back(
        {code_, harm, std::move(message), std::move(remedy), std::exchange(reading_.names, {})});
  }
  // `what`: the plural of a row.
  void AddRows(std::string_view what) {
    if (reading_.damaged == 0) {
      Add(Harm::kNone, fmt::format("{} {} can be read", reading_.rows, what));
    } else {
      Add(Harm::kRows,
          fmt::format("{} of {} {} are damaged", reading_.damaged, reading_.rows, what), kLeftOut);
    }
  }

  Sqlite& db_;
  const VerifyProgress& progress_;
  int64_t version_ = 0;
  bool stopped_ = false;
  std::string code_;
  Reading reading_;
  std::vector<StoreCheck> checks_;
};

Status Verifier::CheckAll() {
  bool usable =
      Check("File", &Verifier::CheckFile) && Check("SchemaVersion", &Verifier::CheckVersion);
  if (usable) {
    usable = Check("Pages", &Verifier::CheckPages);
    usable = Check("Schema", &Verifier::CheckSchema) && usable;
  }
  // The rows of a damaged tree may repeat without end.
  if (usable) {
    Check("JournalRows", &Verifier::CheckJournalRows);
    Check("JournalNumbers", &Verifier::CheckJournalNumbers);
    Check("Clusters", &Verifier::CheckClusters);
    Check("Events", &Verifier::CheckEvents);
    Check("Checkpoints", &Verifier::CheckCheckpoints);
    Check("Samples", &Verifier::CheckSamples);
  }
  return stopped_ ? Status(Code::kUnavailable, "stopped") : Status::Ok();
}

// One transaction: a server may write meanwhile.
Status Verifier::CheckFile() {
  NOS_RETURN_IF_ERROR(db_.Execute("BEGIN"));
  NOS_ASSIGN(version_, db_.Number("PRAGMA user_version"));
  NOS_ASSIGN(const int64_t tables, db_.Number("SELECT count(*) FROM sqlite_master"));
  if (version_ < 1 || tables == 0) return Invalid("this is no database of nos telemetry");
  NOS_ASSIGN(const int64_t pages, db_.Number("PRAGMA page_count"));
  Add(Harm::kNone, fmt::format("a database of nos telemetry with {} pages", pages));
  return Status::Ok();
}

Status Verifier::CheckVersion() {
  if (version_ > kKnownVersion) {
    Add(Harm::kFile,
        fmt::format("the file has version {} and this nos knows up to {}", version_, kKnownVersion),
        "use the newer nos");
  } else if (version_ < kKnownVersion) {
    Add(Harm::kNone, fmt::format("version {}: the server migrates it to {} when it starts",
                                 version_, kKnownVersion));
  } else {
    Add(Harm::kNone, fmt::format("version {}", version_));
  }
  return Status::Ok();
}

Status Verifier::CheckPages() {
  NOS_ASSIGN(SqliteStatement check,
             db_.Prepare(fmt::format("PRAGMA integrity_check({})", kMaxDamagedObjects)));
  NOS_RETURN_IF_ERROR(check.Each([&](SqliteRow& row) {
    for (const std::string_view line : Split(row.Text(0), '\n')) {
      if (line != "ok" && !line.starts_with("***")) reading_.Damaged(std::string(line));
    }
  }));
  if (reading_.damaged > 0) {
    Add(Harm::kFile, "trees of the database are damaged", kPutBackup);
  } else {
    Add(Harm::kNone, "all trees and indexes of the database agree");
  }
  return Status::Ok();
}

Status Verifier::CheckSchema() {
  NOS_ASSIGN(const std::set<std::string> wanted, PartsOfVersion(version_));
  NOS_ASSIGN(const std::set<std::string> found, PartsOf(db_));
  for (const std::string& part : wanted) {
    if (!found.contains(part)) reading_.Damaged(part);
  }
  if (reading_.damaged > 0) {
    Add(Harm::kFile, fmt::format("parts of version {} are missing", version_), kPutBackup);
  } else {
    Add(Harm::kNone, fmt::format("all tables, columns and indexes of version {}", version_));
  }
  return Status::Ok();
}

Status Verifier::CheckJournalRows() {
  NOS_ASSIGN(SqliteStatement select,
             db_.Prepare("SELECT id, source, received, body FROM journal ORDER BY id"));
  NOS_RETURN_IF_ERROR(select.Each([&](SqliteRow& row) {
    ++reading_.rows;
    const std::string source(row.Text(1));
    const auto read = ReadJournaled(row.Text(3), source.empty(), row.Integer(2));
    if (!read.ok()) {
      reading_.Damaged(fmt::format("{} of {}", row.Integer(0), source.empty() ? "nos" : source));
    }
  }));
  AddRows("envelopes of the journal");
  return Status::Ok();
}

// A replay takes the rows after `flushed`, and those after `applied` change the state.
Status Verifier::CheckJournalNumbers() {
  const auto meta = [&](const char* key) {
    return db_.Number(
        fmt::format("SELECT coalesce((SELECT value FROM meta WHERE key = '{}'), 0)", key));
  };
  NOS_ASSIGN(const int64_t applied, meta(kApplied));
  NOS_ASSIGN(const int64_t flushed, meta(kFlushed));
  NOS_ASSIGN(const int64_t last,
             db_.Number("SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = "
                        "'journal'), 0)"));
  NOS_ASSIGN(const int64_t rows,
             db_.Number(fmt::format("SELECT count(*) FROM journal WHERE id > {}", flushed)));
  if (flushed > applied || applied > last) {
    Add(Harm::kFile,
        fmt::format("the journal ends at {}, but is applied up to {} and flushed up to {}", last,
                    applied, flushed),
        kPutBackup);
  } else if (rows != last - flushed) {
    Add(Harm::kRows,
        fmt::format("{} of {} envelopes after {} are missing", last - flushed - rows,
                    last - flushed, flushed),
        kLeftOut);
  } else {
    Add(Harm::kNone, fmt::format("{} envelopes of the journal wait for the next flush", rows));
  }
  return Status::Ok();
}

Status Verifier::CheckClusters() {
  for (const char* table : {"journal", "sources", "events", "checkpoints", "subjects", "holds"}) {
    NOS_ASSIGN(SqliteStatement select,
               db_.Prepare(fmt::format("SELECT DISTINCT cluster FROM {} WHERE cluster NOT IN "
                                       "(SELECT id FROM clusters)",
                                       table)));
    NOS_RETURN_IF_ERROR(select.Each(
        [&](SqliteRow& row) { reading_.Damaged(fmt::format("{} in {}", row.Integer(0), table)); }));
  }
  NOS_ASSIGN(const int64_t clusters, db_.Number("SELECT count(*) FROM clusters"));
  NOS_ASSIGN(const int64_t sources, db_.Number("SELECT count(*) FROM sources"));
  if (reading_.damaged > 0) {
    Add(Harm::kRows, "rows belong to clusters that are not there", kLeftOut);
  } else {
    Add(Harm::kNone, fmt::format("{} clusters, {} spools of reporters", clusters, sources));
  }
  return Status::Ok();
}

Status Verifier::CheckEvents() {
  NOS_ASSIGN(SqliteStatement select, db_.Prepare("SELECT id, kind, body FROM events ORDER BY id"));
  NOS_RETURN_IF_ERROR(select.Each([&](SqliteRow& row) {
    ++reading_.rows;
    const auto body = ReadEventBody(row.Text(2));
    if (!body.ok() || !body->is_object()) {
      reading_.Damaged(fmt::format("{} ({})", row.Integer(0), row.Text(1)));
    }
  }));
  AddRows("events");
  return Status::Ok();
}

Status Verifier::CheckCheckpoints() {
  NOS_ASSIGN(SqliteStatement select, db_.Prepare("SELECT cluster, at, body FROM checkpoints"));
  NOS_RETURN_IF_ERROR(select.Each([&](SqliteRow& row) {
    ++reading_.rows;
    State state;
    if (ApplyCheckpoint(state, row.Text(2)).value_or(1) > 0) {
      reading_.Damaged(fmt::format("{} at {}", row.Integer(0), row.Integer(1)));
    }
  }));
  AddRows("checkpoints");
  return Status::Ok();
}

Status Verifier::CheckSamples() {
  for (size_t level = 0; level < kLevels.size(); ++level) {
    const char* table = kLevels.at(level).table;
    NOS_ASSIGN(SqliteStatement select, db_.Prepare(fmt::format("SELECT id, body FROM {}", table)));
    NOS_RETURN_IF_ERROR(select.Each([&](SqliteRow& row) {
      ++reading_.rows;
      if (DecodeRow(row.Text(1), level).ok()) return;
      reading_.Damaged(fmt::format("{} {}", table, row.Integer(0)));
    }));
  }
  AddRows("rows of samples");
  return Status::Ok();
}

}  // namespace

Result<std::vector<StoreCheck>> VerifyStore(const std::string& path,
                                            const VerifyProgress& progress) {
  std::error_code unknown;
  if (!std::filesystem::exists(path, unknown)) return NotFound(path + ": no such file");
  NOS_ASSIGN(Sqlite db, Sqlite::Open(path, Sqlite::Mode::kRead));
  return Verifier(db, progress).Run();
}

Harm WorstOf(const std::vector<StoreCheck>& checks) {
  Harm worst = Harm::kNone;
  for (const StoreCheck& check : checks) worst = std::max(worst, check.harm);
  return worst;
}

}  // namespace nos::telemetryserver
