#include "telemetryreporter/spool_folder.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/fd.h"

namespace nos::telemetry {
namespace {

namespace fs = std::filesystem;

Status SystemError(const std::string& what, int error) {
  const Code code = error == ENOSPC || error == EDQUOT  ? Code::kExhausted
                    : error == EACCES || error == EPERM ? Code::kPermission
                    : error == ENOENT                   ? Code::kNotFound
                                                        : Code::kUnavailable;
  return {code, fmt::format("{}: {}", what, std::generic_category().message(error))};
}

Status WriteAll(int fd, std::string_view content, const std::string& path) {
  while (!content.empty()) {
    const ssize_t written = write(fd, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return SystemError("write " + path, errno);
    content.remove_prefix(static_cast<size_t>(written));
  }
  if (fsync(fd) != 0) return SystemError("sync " + path, errno);
  return Status::Ok();
}

class RealFolder final : public SpoolFolder {
 public:
  RealFolder(std::string path, UniqueFd lock, UniqueFd folder)
      : path_(std::move(path)), lock_(std::move(lock)), folder_(std::move(folder)) {}

  Status Write(const std::string& name, std::string_view content) override {
    const std::string path = PathOf(name);
    const UniqueFd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    return fd.valid() ? WriteAll(fd.get(), content, path) : SystemError("write " + path, errno);
  }
  Status Rename(const std::string& from, const std::string& to) override {
    if (std::rename(PathOf(from).c_str(), PathOf(to).c_str()) == 0) return Status::Ok();
    return SystemError("rename to " + PathOf(to), errno);
  }
  void Remove(const std::string& name) override { unlink(PathOf(name).c_str()); }
  Status Sync() override {
    return fsync(folder_.get()) == 0 ? Status::Ok() : SystemError("sync " + path_, errno);
  }
  Result<std::string> Read(const std::string& name, size_t most) override {
    const std::string path = PathOf(name);
    const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd.valid()) return SystemError("read " + path, errno);
    std::string content;
    std::array<char, size_t{1} << 16> buffer{};
    while (content.size() <= most) {
      const ssize_t count = read(fd.get(), buffer.data(), buffer.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return SystemError("read " + path, errno);
      if (count == 0) return content;
      content.append(buffer.data(), static_cast<size_t>(count));
    }
    return Invalid(fmt::format("read {}: it has more than {} bytes", path, most));
  }
  Result<std::vector<Listed>> List() override {
    std::vector<Listed> files;
    std::error_code failed;
    for (auto file = fs::directory_iterator(path_, failed); !failed && file != end(file);
         file.increment(failed)) {
      std::error_code gone;
      const uintmax_t bytes = fs::file_size(file->path(), gone);
      if (!gone) files.push_back({file->path().filename().string(), bytes});
    }
    if (failed) return SystemError("list " + path_, failed.value());
    return files;
  }

 private:
  std::string PathOf(const std::string& name) const { return path_ + "/" + name; }

  const std::string path_;
  const UniqueFd lock_, folder_;
};

}  // namespace

Result<std::unique_ptr<SpoolFolder>> OpenSpoolFolder(const std::string& path,
                                                     const std::string& sub_folder) {
  std::error_code failed;
  fs::create_directories(path + "/" + sub_folder, failed);
  if (failed) return SystemError("make the spool's folder " + path, failed.value());
  UniqueFd lock(open((path + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  UniqueFd folder(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!lock.valid() || !folder.valid()) return SystemError("open " + path, errno);
  if (flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    return Status(Code::kUnavailable, path + ": another process uses this spool");
  }
  return std::unique_ptr<SpoolFolder>(
      std::make_unique<RealFolder>(path, std::move(lock), std::move(folder)));
}

}  // namespace nos::telemetry
