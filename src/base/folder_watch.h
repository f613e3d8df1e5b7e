// Reports that a directory changed; the caller looks up the change itself. The directory may be
// missing at first, or be removed and created again. Owned by one thread.
#pragma once

#include <string>

#include "base/fd.h"
#include "base/status.h"

namespace nos {

class FolderWatch {
 public:
  explicit FolderWatch(std::string folder);
  // Readable when something has changed.
  int fd() const { return inotify_.get(); }
  // Consumes all changes so far, and starts to watch a directory that is not watched yet. Error:
  // kUnavailable (the directory cannot be watched now: call again later).
  Status Refresh();

 private:
  std::string folder_;
  UniqueFd inotify_;
};

}  // namespace nos
