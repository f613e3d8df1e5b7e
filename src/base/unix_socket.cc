#include "base/unix_socket.h"

#include <fmt/core.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <system_error>

namespace nos {
namespace {

constexpr int kBacklog = 16;

std::string ErrorText(int error) { return std::generic_category().message(error); }

Status SocketError(const char* verb, const std::string& path, int error) {
  const Code code = error == EACCES || error == EPERM ? Code::kPermission : Code::kUnavailable;
  return {code, fmt::format("cannot {} {}: {}", verb, path, ErrorText(error))};
}

Result<sockaddr_un> Address(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) {
    return Invalid(fmt::format("'{}' is no path of a socket: 1 to {} bytes are possible", path,
                               sizeof address.sun_path - 1));
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

Result<UniqueFd> NewSocket() {
  UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return Status(Code::kUnavailable, "cannot make a socket: " + ErrorText(errno));
  return fd;
}

}  // namespace

Result<UniqueFd> ConnectUnix(const std::string& path) {
  NOS_ASSIGN(const sockaddr_un address, Address(path));
  NOS_ASSIGN(UniqueFd fd, NewSocket());
  // A full backlog is EAGAIN: the listener does not accept.
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return SocketError("connect to", path, errno);
  }
  return fd;
}

Result<UniqueFd> ListenUnix(const std::string& path) {
  // Created under another name and then renamed, so that the path is never missing in between and
  // no other process can take it. Kubelets that watch the folder ignore hidden names.
  const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
  const size_t name = path.rfind('/') + 1;  // 0 if there is no folder
  const std::string other =
      fmt::format("{}.{}.{:08x}", path.substr(0, name), path.substr(name), now & 0xffffffff);
  NOS_ASSIGN(const sockaddr_un address, Address(other));
  NOS_ASSIGN(UniqueFd fd, NewSocket());
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      listen(fd.get(), kBacklog) != 0) {
    return SocketError("listen on", path, errno);
  }
  if (rename(other.c_str(), path.c_str()) == 0) return fd;
  const int error = errno;
  unlink(other.c_str());
  return SocketError("listen on", path, error);
}

std::string FileIdentity(const std::string& path) {
  struct stat file{};
  return stat(path.c_str(), &file) == 0 ? fmt::format("{}:{}", file.st_dev, file.st_ino) : "";
}

std::string FileVersion(const std::string& path) {
  struct stat file{};
  if (stat(path.c_str(), &file) != 0) return "";
  return fmt::format("{}:{}:{}.{}", file.st_dev, file.st_ino, file.st_ctim.tv_sec,
                     file.st_ctim.tv_nsec);
}

}  // namespace nos
