#include "base/file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "base/fd.h"

namespace nos {

Result<std::string> ReadFile(const std::string& path, size_t most) {
  const auto fault = [&](const std::string& why) {
    return fmt::format("cannot read '{}': {}", path, why);
  };
  std::error_code unknown;
  if (std::filesystem::is_directory(path, unknown)) {
    return Invalid(fault("it is a folder, not a file"));
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) return NotFound(fault(std::generic_category().message(errno)));
  std::string text;
  char buffer[65536];
  while (file.read(buffer, sizeof buffer) || file.gcount() > 0) {
    text.append(buffer, static_cast<size_t>(file.gcount()));
    if (text.size() > most) return Invalid(fault(fmt::format("it has more than {} bytes", most)));
  }
  if (file.bad()) return Invalid(fault("it is not a readable file"));
  return text;
}

namespace {

Status WriteAll(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return {Code::kUnavailable, std::generic_category().message(errno)};
    text.remove_prefix(static_cast<size_t>(written));
  }
  if (fsync(fd) == 0) return Status::Ok();
  return {Code::kUnavailable, std::generic_category().message(errno)};
}

}  // namespace

Status ReplaceFile(const std::string& path, std::string_view text, unsigned mode) {
  const auto failed = [&](const std::string& why) {
    return Status(Code::kUnavailable, fmt::format("cannot write '{}': {}", path, why));
  };
  const size_t name = path.rfind('/') + 1;  // 0 if there is no folder
  const std::string draft = fmt::format("{}.{}.new", path.substr(0, name), path.substr(name));
  {
    const UniqueFd file(
        open(draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode));
    if (!file.valid()) return failed(std::generic_category().message(errno));
    if (const Status written = WriteAll(file.get(), text); !written.ok()) {
      (void)unlink(draft.c_str());
      return failed(written.message());
    }
  }
  if (rename(draft.c_str(), path.c_str()) != 0) {
    const std::string why = std::generic_category().message(errno);
    (void)unlink(draft.c_str());
    return failed(why);
  }
  // The rename itself survives a loss of power only once the folder is written.
  const std::string folder = name == 0 ? "." : path.substr(0, name);
  const UniqueFd holder(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!holder.valid() || fsync(holder.get()) != 0) {
    return failed(std::generic_category().message(errno));
  }
  return Status::Ok();
}

}  // namespace nos
