#include "telemetryserver/store/copy.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

namespace nos::telemetryserver {
namespace {

// For a text between single quotes.
std::string Quoted(std::string_view path) {
  std::string quoted;
  for (const char c : path) quoted.append(c == '\'' ? 2 : 1, c);
  return quoted;
}

// Only its owner can read a copy: it has names of all tenants' pods. VACUUM INTO takes an empty
// file.
Status CreateEmpty(const std::string& path) {
  const UniqueFd file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  return file.valid() ? Status::Ok() : FileError("create " + path, errno);
}

// SQLite does not sync the file that VACUUM INTO writes.
Status SyncFile(const std::string& path) {
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid() || fsync(file.get()) != 0) return FileError("sync " + path, errno);
  return Status::Ok();
}

Status WriteCopy(Sqlite& db, const std::string& target, const CopyProgress& progress) {
  NOS_ASSIGN(const int64_t pages, db.Number("PRAGMA page_count"));
  NOS_ASSIGN(const int64_t free, db.Number("PRAGMA freelist_count"));
  NOS_ASSIGN(const int64_t page, db.Number("PRAGMA page_size"));
  const int64_t total = (pages - free) * page;
  const auto goes_on = [&] {
    if (!progress) return true;
    std::error_code absent;
    const uintmax_t size = std::filesystem::file_size(target, absent);
    return progress(absent ? 0 : std::min(static_cast<int64_t>(size), total), total);
  };
  const SqliteWatch watch(db, goes_on);
  return db.Execute(fmt::format("VACUUM INTO '{}'", Quoted(target)));
}

}  // namespace

Status FileError(const std::string& doing, int error) {
  const Code code = error == ENOSPC || error == EDQUOT ? Code::kExhausted : Code::kUnavailable;
  return {code, fmt::format("{}: {}", doing, std::generic_category().message(error))};
}

// SQLite would allow two processes to write in turn, and each would delete journal rows of the
// other.
Result<UniqueFd> LockDatabase(const std::string& path) {
  UniqueFd lock(open((path + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock.valid()) return FileError("open " + path + ".lock", errno);
  if (flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    return Status(Code::kUnavailable, path + ": another nos telemetry uses this file");
  }
  return lock;
}

Status CopyInto(Sqlite& db, const std::string& target, const CopyProgress& progress) {
  std::error_code ignored;
  std::filesystem::remove(target, ignored);  // of a copy that was interrupted
  NOS_RETURN_IF_ERROR(CreateEmpty(target));
  Status written = WriteCopy(db, target, progress);
  if (written.ok()) written = SyncFile(target);
  if (!written.ok()) std::filesystem::remove(target, ignored);
  return written;
}

Status RenameFile(const std::string& from, const std::string& to) {
  if (std::rename(from.c_str(), to.c_str()) != 0) return FileError("rename to " + to, errno);
  return SyncFolderOf(to);
}

Status SyncFolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const UniqueFd holder(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!holder.valid() || fsync(holder.get()) != 0) return FileError("sync " + folder, errno);
  return Status::Ok();
}

}  // namespace nos::telemetryserver
