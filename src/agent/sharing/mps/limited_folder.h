// A folder of the host in which containers write, limited in size: a container that fills it must
// not fill a file system that the host needs, such as /run.
//
//   if (Status limited = LimitFolder("/dev/shm", {64 << 20, 01777}); !limited.ok()) ...
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"

namespace nos::agent {

struct FolderLimit {
  int64_t bytes = 0;
  int mode = 0755;  // of the folder
  // False: containers have the folder as it is, and must not lose sight of it. Only the size of a
  // file system that an earlier process has mounted there is changed.
  bool may_mount = true;
};

// Mounts a tmpfs over `folder`, which this process sees as a bind mount, so that the host and
// containers started later see it there too. Links in it are not followed (from Linux 5.10 on). OK
// if another one has mounted a file system of its own there. Errors: kUnimplemented: the folder is
// no mount, must not be mounted over, or the host would not see the tmpfs (mount propagation other
// than Bidirectional); that of mount. Source: mount_namespaces(7), tmpfs(5).
Status LimitFolder(const std::string& folder, const FolderLimit& limit);

}  // namespace nos::agent
