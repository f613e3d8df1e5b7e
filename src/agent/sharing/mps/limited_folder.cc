#include "agent/sharing/mps/limited_folder.h"

#include <fmt/core.h>
#include <sys/mount.h>

#include <cerrno>
#include <fstream>
#include <optional>
#include <sstream>
#include <system_error>

namespace nos::agent {
namespace {

struct Mount {
  std::string root;  // folder of the file system that is mounted; "/": all of it
  bool shared = false;
};

// The topmost mount at this place. Source: proc_pid_mountinfo(5):
//   36 35 98:0 /root /place rw,noatime shared:1 - ext3 /dev/root rw
std::optional<Mount> MountAt(const std::string& folder) {
  std::ifstream mounts("/proc/self/mountinfo");
  std::optional<Mount> found;
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream words(line);
    std::string id, parent, device, place, options;
    Mount mount;
    words >> id >> parent >> device >> mount.root >> place >> options;
    if (place != folder) continue;
    for (std::string option; words >> option && option != "-";) {
      mount.shared |= option.starts_with("shared:");
    }
    found = mount;
  }
  return found;
}

}  // namespace

Status LimitFolder(const std::string& folder, int64_t bytes, int mode) {
  const std::optional<Mount> mount = MountAt(folder);
  if (!mount) return {Code::kUnimplemented, folder + " is not mounted"};
  if (mount->root == "/") return Status::Ok();
  if (!mount->shared) {
    return {Code::kUnimplemented, folder + " is mounted without propagation to the host"};
  }
  const std::string options = fmt::format("mode={:o},size={}", mode, bytes);
  constexpr unsigned long kFlags = MS_NOSUID | MS_NODEV | MS_NOEXEC;  // NOLINT(google-runtime-int)
  if (::mount("tmpfs", folder.c_str(), "tmpfs", kFlags, options.c_str()) == 0) return Status::Ok();
  return {errno == EPERM ? Code::kPermission : Code::kUnavailable,
          fmt::format("failed to mount a tmpfs on {}: {}", folder,
                      std::generic_category().message(errno))};
}

}  // namespace nos::agent
