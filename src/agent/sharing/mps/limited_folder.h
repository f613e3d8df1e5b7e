// A folder of the host in which containers write, limited in size: a container that fills it must
// not fill a file system that the host needs, such as /run.
//
//   if (Status limited = LimitFolder("/dev/shm", 64 << 20, 01777); !limited.ok()) ...   //
//   unlimited then
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"

namespace nos::agent {

// Mounts a tmpfs of `bytes`, with this mode, over `folder`, which this process sees as a bind
// mount, so that the host and containers started later see it there too. OK if the folder has a
// file system of its own already, for example that of an earlier process. Errors: kUnimplemented:
// the folder is no mount, or the host would not see the tmpfs (mount propagation other than
// Bidirectional); that of mount. Source: mount_namespaces(7).
Status LimitFolder(const std::string& folder, int64_t bytes, int mode);

}  // namespace nos::agent
