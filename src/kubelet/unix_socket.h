// File descriptors that close themselves, and stream sockets in the file system.
//
// Sockets are non-blocking and close on exec.
#pragma once

#include <string>
#include <utility>

#include "base/status.h"

namespace nos::kubelet {

// Owns a file descriptor; -1 when it owns none.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  UniqueFd(const UniqueFd&) = delete;
  UniqueFd& operator=(const UniqueFd&) = delete;
  ~UniqueFd();

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

// Errors: kInvalid (the path is too long for a socket), kPermission, kUnavailable (nobody listens).
Result<UniqueFd> ConnectUnix(const std::string& path);

// Takes the place of whatever file is at `path`. Errors: kInvalid, kPermission, kUnavailable.
Result<UniqueFd> ListenUnix(const std::string& path);

// Wakes a thread that polls fd().
class WakeUp {
 public:
  WakeUp();
  int fd() const { return fd_.get(); }
  void Signal() const;
  // Takes back all signals so far.
  void Clear() const;

 private:
  UniqueFd fd_;
};

// Which file is at a path; "" when there is none. Of a socket that somebody still listens on, no
// other file ever bears the same identity.
std::string FileIdentity(const std::string& path);
// The same, and when its inode was changed: differs for a file made anew under an inode number that
// has become free.
std::string FileVersion(const std::string& path);

}  // namespace nos::kubelet
