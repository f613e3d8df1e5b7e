// Files of a database: copies that are complete on disk or absent, and the lock of the process that
// writes it.
//
//   NOS_RETURN_IF_ERROR(CopyInto(db, "copy.db.part", {}));
//   NOS_RETURN_IF_ERROR(RenameFile("copy.db.part", "copy.db"));
//
// Errors: kExhausted (disk full), kUnavailable, see Sqlite. Internal to this library.
#pragma once

#include <string>

#include "base/fd.h"
#include "telemetryserver/backup.h"
#include "telemetryserver/store/sqlite.h"

namespace nos::telemetryserver {

// Held while a process may write the database. kUnavailable: another process holds it.
Result<UniqueFd> LockDatabase(const std::string& path);

// Writes the current content, without free pages, to a new file and syncs it. A file of that name
// is replaced. On an error there is none. Other connections may read and write meanwhile; their
// writes stay in the write-ahead log until the copy ends.
Status CopyInto(Sqlite& db, const std::string& target, const CopyProgress& progress);

// The name survives a loss of power when it returns.
Status RenameFile(const std::string& from, const std::string& to);
Status SyncFolderOf(const std::string& path);

Status FileError(const std::string& doing, int error);

}  // namespace nos::telemetryserver
