#include "base/folder_watch.h"

#include <fmt/core.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

namespace nos {
FolderWatch::FolderWatch(std::string folder)
    : folder_(std::move(folder)), inotify_(inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {}

Status FolderWatch::Refresh() {
  std::array<char, 4096> events;
  while (read(inotify_.get(), events.data(), events.size()) > 0) {
  }
  // No effect on a directory that is already watched; if another directory took its place, that one
  // is watched from here on.
  const int added = inotify_add_watch(
      inotify_.get(), folder_.c_str(),
      IN_CREATE | IN_CLOSE_WRITE | IN_DELETE | IN_MOVED_TO | IN_MOVED_FROM | IN_ONLYDIR);
  if (added >= 0) return Status::Ok();
  return {Code::kUnavailable, fmt::format("cannot watch the folder {}: {}", folder_,
                                          std::generic_category().message(errno))};
}

}  // namespace nos
