// Says that something in a folder has changed; what, the caller looks up. Survives that the folder
// is not there yet, or goes and comes back. One owner thread.
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
  // Takes all changes so far, and begins to watch what is not watched yet. Error: kUnavailable (the
  // folder cannot be watched now: call again later).
  Status Refresh();

 private:
  std::string folder_;
  UniqueFd inotify_;
};

}  // namespace nos
