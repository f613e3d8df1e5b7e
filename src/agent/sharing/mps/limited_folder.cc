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
  std::string source;
};

constexpr const char* kSource = "nos";  // of the file systems that are mounted here

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
    std::string type;
    words >> type >> mount.source;
    found = mount;
  }
  return found;
}

}  // namespace

Status LimitFolder(const std::string& folder, const FolderLimit& limit) {
  const std::optional<Mount> mount = MountAt(folder);
  if (!mount) return {Code::kUnimplemented, folder + " is not mounted"};
  const bool ours = mount->source == kSource;
  if (!ours && mount->root == "/") return Status::Ok();
  if (!ours && !limit.may_mount) {
    return {Code::kUnimplemented, folder + " is in use by Pods with MPS shares"};
  }
  if (!ours && !mount->shared) {
    return {Code::kUnimplemented, folder + " is mounted without propagation to the host"};
  }
  constexpr int64_t kPage = 4096;  // empty files use memory too
  const std::string options =
      fmt::format("mode={:o},size={},nr_inodes={}", limit.mode, limit.bytes, limit.bytes / kPage);
  // Daemons run as root and open files there by names at which a container may place a link.
  uint64_t flags = MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_NOSYMFOLLOW;
  if (ours) flags |= MS_REMOUNT;
  if (::mount(kSource, folder.c_str(), "tmpfs", flags, options.c_str()) == 0) return Status::Ok();
  return {errno == EPERM ? Code::kPermission : Code::kUnavailable,
          fmt::format("failed to mount a tmpfs on {}: {}", folder,
                      std::generic_category().message(errno))};
}

}  // namespace nos::agent
