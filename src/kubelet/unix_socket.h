// Stream sockets in the file system: non-blocking, closed on exec.
#pragma once

#include <string>

#include "base/fd.h"
#include "base/status.h"

namespace nos::kubelet {

// Errors: kInvalid (the path is too long for a socket), kPermission, kUnavailable (nobody listens).
Result<UniqueFd> ConnectUnix(const std::string& path);

// Takes the place of whatever file is at `path`. Errors: kInvalid, kPermission, kUnavailable.
Result<UniqueFd> ListenUnix(const std::string& path);

// Which file is at a path; "" when there is none. Of a socket that somebody still listens on, no
// other file ever bears the same identity.
std::string FileIdentity(const std::string& path);
// The same, and when its inode was changed: differs for a file made anew under an inode number that
// has become free.
std::string FileVersion(const std::string& path);

}  // namespace nos::kubelet
