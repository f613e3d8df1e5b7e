#include "state_file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

namespace nos::nvml_double {

std::string SessionsPath(const std::string& state_path) { return state_path + ".sessions"; }

bool WaitForFile(const std::string& path, std::chrono::milliseconds timeout,
                 const std::function<bool()>& done) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + timeout;
  const int watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  inotify_add_watch(watch, folder.empty() ? "." : folder.c_str(), IN_MOVED_TO);
  bool is_done = done();
  while (!is_done && Clock::now() < end) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
    pollfd ready{watch, POLLIN, 0};
    poll(&ready, 1, static_cast<int>(left.count()) + 1);
    char drained[4096];
    while (read(watch, drained, sizeof drained) > 0) {
    }
    is_done = done();
  }
  close(watch);
  return is_done;
}

StateFile::StateFile(std::string path)
    : path_(std::move(path)),
      lock_(open((path_ + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
  if (lock_ >= 0) flock(lock_, LOCK_EX);
}

StateFile::~StateFile() {
  if (lock_ >= 0) close(lock_);
}

Result<Json> StateFile::Read() const {
  std::ifstream file(path_, std::ios::binary);
  if (lock_ < 0 || !file) return NotFound("cannot read " + path_);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  return ParseJson(text);
}

Status StateFile::Write(const Json& state) const {
  const std::string next = path_ + ".next";
  std::ofstream file(next, std::ios::binary | std::ios::trunc);
  file << WriteJsonPretty(state) << "\n";
  file.close();
  if (!file || std::rename(next.c_str(), path_.c_str()) != 0) {
    return {Code::kUnavailable, "cannot write " + path_};
  }
  return Status::Ok();
}

}  // namespace nos::nvml_double
