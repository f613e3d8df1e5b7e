#include "cmd/cli/kubeconfig_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <system_error>

#include "sim/serve.h"

namespace nos::cmd {
namespace {

constexpr std::string_view kMark = "# written by nos sandbox; removed when it ends";

Status Refuse(const std::string& path, std::string_view why) {
  return Invalid(fmt::format(
      "cannot write the kubeconfig '{}': {}; choose another file with --kubeconfig", path, why));
}

// Creates the file or opens the existing one. Never follows a symbolic link and never blocks on a
// pipe.
int Open(const std::string& path) {
  constexpr int kFlags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  constexpr int kTries = 10;  // another sandbox may create and remove it meanwhile
  int fd = -1;
  for (int i = 0; i < kTries; ++i) {
    fd = open(path.c_str(), kFlags | O_CREAT | O_EXCL, 0600);
    if (fd >= 0 || errno != EEXIST) return fd;
    fd = open(path.c_str(), kFlags);
    if (fd >= 0 || errno != ENOENT) return fd;
  }
  return fd;
}

// Reason why the open file is not trusted; "" if it is.
std::string_view Objection(int fd, const std::string& path) {
  struct stat file = {}, there = {};
  if (fstat(fd, &file) != 0) return "failed to stat it";
  if (!S_ISREG(file.st_mode)) return "it is not a regular file";
  if (file.st_uid != geteuid()) return "it belongs to another user";
  if ((file.st_mode & (S_IWGRP | S_IWOTH)) != 0) return "it is writable by other users";
  const bool same = lstat(path.c_str(), &there) == 0 && there.st_ino == file.st_ino &&
                    there.st_dev == file.st_dev;
  return same && file.st_nlink == 1 ? "" : "it has hard links or was just replaced";
}

bool EmptyOrOurs(int fd) {
  std::string start(kMark.size(), '\0');
  const ssize_t read = pread(fd, start.data(), start.size(), 0);
  return read == 0 || start == kMark;
}

}  // namespace

Result<std::unique_ptr<KubeconfigFile>> KubeconfigFile::Write(const std::string& path,
                                                              uint16_t port) {
  const int fd = Open(path);
  if (fd < 0)
    return Refuse(path, errno == ELOOP ? std::string("it is a symbolic link")
                                       : std::generic_category().message(errno));
  std::unique_ptr<KubeconfigFile> file(new KubeconfigFile(path, fd));
  NOS_RETURN_IF_ERROR(file->Take());
  const std::string text = std::string(kMark) + "\n" + sim::KubeconfigFor("127.0.0.1", port);
  if (ftruncate(fd, 0) != 0 ||
      pwrite(fd, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
    return Refuse(path, std::generic_category().message(errno));
  }
  return file;
}

Status KubeconfigFile::Take() {
  if (flock(fd_, LOCK_EX | LOCK_NB) != 0) {
    return Refuse(path_, "it belongs to a running sandbox");
  }
  if (const std::string_view why = Objection(fd_, path_); !why.empty()) return Refuse(path_, why);
  if (!EmptyOrOurs(fd_)) return Refuse(path_, "it exists and is not a sandbox's kubeconfig");
  ours_ = true;
  return Status::Ok();
}

KubeconfigFile::~KubeconfigFile() {
  if (ours_) (void)unlink(path_.c_str());
  (void)close(fd_);
}

}  // namespace nos::cmd
