// Unix stream sockets: non-blocking, close-on-exec.
#pragma once

#include <string>

#include "base/fd.h"
#include "base/status.h"

namespace nos {

// Errors: kInvalid (the path is too long for a socket), kPermission, kUnavailable (no listener).
Result<UniqueFd> ConnectUnix(const std::string& path);

// Replaces any file at `path`. Errors: kInvalid, kPermission, kUnavailable.
Result<UniqueFd> ListenUnix(const std::string& path);

// Identity of the file at a path; "" if it does not exist. While a socket is still listened on, no
// other file gets the same identity.
std::string FileIdentity(const std::string& path);
// FileIdentity plus the inode's change time: differs for a file that was created again and reuses
// the inode number.
std::string FileVersion(const std::string& path);

}  // namespace nos
