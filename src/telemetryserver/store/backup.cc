#include "telemetryserver/backup.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "telemetryserver/store/copy.h"

namespace nos::telemetryserver {
namespace {

namespace fs = std::filesystem;

bool Exists(const std::string& path) {
  std::error_code unknown;
  return fs::exists(path, unknown);
}

bool AreSame(const std::string& a, const std::string& b) {
  std::error_code unknown;
  return fs::equivalent(a, b, unknown);
}

Result<Sqlite> OpenExisting(const std::string& path) {
  if (!Exists(path)) return NotFound(path + ": no such file");
  return Sqlite::Open(path, Sqlite::Mode::kRead);
}

Result<StoreFacts> FactsOf(const std::string& path) {
  NOS_ASSIGN(Sqlite db, Sqlite::Open(path, Sqlite::Mode::kRead));
  NOS_ASSIGN(const int64_t version, db.Number("PRAGMA user_version"));
  std::error_code unknown;
  return StoreFacts{version, static_cast<int64_t>(fs::file_size(path, unknown))};
}

Status LinkFile(const std::string& from, const std::string& to) {
  if (link(from.c_str(), to.c_str()) == 0) return Status::Ok();
  return FileError("link to " + to, errno);
}

// Writes what the write-ahead log has into the file itself. Best effort: a damaged store keeps its
// log beside it.
void FoldLog(const std::string& store) {
  auto db = Sqlite::Open(store, Sqlite::Mode::kWrite);
  if (db.ok()) (void)db->Number("PRAGMA wal_checkpoint(TRUNCATE)");
}

// Gives the store a second name. A file with the store's own name exists at all times: a server
// that starts after a crash in between would otherwise begin anew.
Status KeepPrevious(const std::string& store, const std::string& previous) {
  FoldLog(store);
  const std::string log = store + "-wal";
  if (Exists(log)) {
    NOS_RETURN_IF_ERROR(LinkFile(log, previous + "-wal"));
  }
  NOS_RETURN_IF_ERROR(LinkFile(store, previous));
  return SyncFolderOf(store);
}

// SQLite would apply a former log to the new file, so its removal is on disk before the new file
// is.
Status RemoveLog(const std::string& store) {
  std::error_code ignored;
  for (const char* suffix : {"-wal", "-shm"}) fs::remove(store + suffix, ignored);
  return SyncFolderOf(store);
}

// Puts `part` in the store's place. `previous`: name for the former store; "" if there is none.
Status Replace(const std::string& store, const std::string& part, const std::string& previous) {
  if (!previous.empty()) NOS_RETURN_IF_ERROR(KeepPrevious(store, previous));
  NOS_RETURN_IF_ERROR(RemoveLog(store));
  return RenameFile(part, store);
}

Result<std::vector<StoreCheck>> CheckUsable(const std::string& copy,
                                            const VerifyProgress& progress) {
  NOS_ASSIGN(std::vector<StoreCheck> checks, VerifyStore(copy, progress));
  for (const StoreCheck& check : checks) {
    if (check.harm == Harm::kFile) return Invalid(check.message);
  }
  std::erase_if(checks, [](const StoreCheck& check) { return check.harm == Harm::kNone; });
  return checks;
}

// "telemetry.db.before-20261129T085500Z", or with "-2" and so on at its end if a restore of the
// same second has that name. The caller holds the lock of the store, so the name stays free.
std::string NameOfFormer(const std::string& store, const std::string& stamp) {
  const std::string name = fmt::format("{}.before-{}", store, stamp);
  if (!Exists(name)) return name;
  for (int number = 2;; ++number) {
    std::string numbered = fmt::format("{}-{}", name, number);
    if (!Exists(numbered)) return numbered;
  }
}

}  // namespace

Result<StoreFacts> BackUp(const std::string& store, const std::string& target,
                          const BackupOptions& options) {
  NOS_ASSIGN(Sqlite db, OpenExisting(store));
  if (AreSame(store, target)) return Invalid(target + ": this is the store itself");
  if (Exists(target) && !options.replace) {
    return Status(Code::kAlreadyExists, target + ": the file exists");
  }
  // Its own name for each process: two backups at once do not write one file.
  const std::string part = fmt::format("{}.{}.part", target, getpid());
  NOS_RETURN_IF_ERROR(CopyInto(db, part, options.progress).Within(store));
  NOS_RETURN_IF_ERROR(RenameFile(part, target));
  return FactsOf(target);
}

Result<Restored> Restore(const std::string& backup, const std::string& store,
                         const RestoreOptions& options) {
  NOS_ASSIGN(const UniqueFd lock, LockDatabase(store));
  NOS_ASSIGN(Sqlite db, OpenExisting(backup));
  if (AreSame(backup, store)) return Invalid(backup + ": this is the store itself");
  // 1. Copy and verify: the copy is on the store's disk, and is what will be used.
  const std::string part = store + ".restore";
  NOS_RETURN_IF_ERROR(CopyInto(db, part, options.copying).Within(backup));
  auto checks = CheckUsable(part, options.verifying);
  std::error_code ignored;
  if (!checks.ok()) {
    fs::remove(part, ignored);
    return checks.status().Within(backup);
  }
  Restored restored{{}, "", *std::move(checks)};
  NOS_ASSIGN(restored.facts, FactsOf(part));
  // 2. Keep the former store, and replace it in one step.
  if (Exists(store)) restored.previous = NameOfFormer(store, options.stamp);
  const Status replaced = Replace(store, part, restored.previous);
  if (!replaced.ok()) {
    fs::remove(part, ignored);
    return replaced;
  }
  return restored;
}

}  // namespace nos::telemetryserver
