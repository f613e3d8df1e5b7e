#include "device/mps_tool.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "base/argv.h"
#include "base/file.h"
#include "base/text.h"

namespace nos::device {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
constexpr size_t kMaxSocketPath = 107;
constexpr size_t kMaxAnswer = size_t{1} << 16;
constexpr int64_t kMaxLog = int64_t{8} << 20;     // bytes on disk
constexpr size_t kMaxProcFile = size_t{1} << 21;  // ARG_MAX
constexpr const char* kServer = "nvidia-cuda-mps-server";

std::string Words(int fault) { return std::generic_category().message(fault); }

// -1: opens /dev/null there.
struct Streams {
  int in = -1, out = -1;
};

// This process blocks signals that it waits for; the child must not.
Result<pid_t> Spawn(std::vector<std::string> arguments, std::vector<std::string> environment,
                    const Streams& streams) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (streams.in >= 0) posix_spawn_file_actions_adddup2(&actions, streams.in, STDIN_FILENO);
  if (streams.in < 0) {
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  }
  for (const int output : {STDOUT_FILENO, STDERR_FILENO}) {
    if (streams.out >= 0) posix_spawn_file_actions_adddup2(&actions, streams.out, output);
    if (streams.out < 0) {
      posix_spawn_file_actions_addopen(&actions, output, "/dev/null", O_WRONLY, 0);
    }
  }
  posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);  // it outlives this one
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
  pid_t child = 0;
  const int fault = posix_spawnp(&child, arguments[0].c_str(), &actions, &attributes,
                                 ArgvOf(arguments).data(), ArgvOf(environment).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (fault == 0) return child;
  return Status(Code::kPermission,
                fmt::format("cannot start {}: {}; it comes with the driver's compute utilities "
                            "(NVIDIA_DRIVER_CAPABILITIES=compute,utility)",
                            arguments[0], Words(fault)));
}

std::optional<std::pair<UniqueFd, UniqueFd>> Pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return std::nullopt;
  return std::pair(UniqueFd(ends[0]), UniqueFd(ends[1]));
}

// All that comes until the other end closes, or nothing when that takes too long.
std::optional<std::string> ReadAll(int fd, Clock::time_point deadline) {
  std::string text;
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd readable{fd, POLLIN, 0};
    const int ready = left <= 0 ? 0 : poll(&readable, 1, static_cast<int>(left) + 1);
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return std::nullopt;
    char buffer[4096];
    const ssize_t count = read(fd, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return text;
    text.append(buffer, static_cast<size_t>(count));
    if (text.size() > kMaxAnswer) return std::nullopt;
  }
}

// Words that end in NUL, of a process that may end meanwhile.
std::vector<std::string> ProcWords(const fs::path& file) {
  std::vector<std::string> words;
  const Result<std::string> text = ReadFile(file.string(), kMaxProcFile);
  if (!text.ok()) return words;
  for (const std::string_view word : Split(*text, '\0')) words.emplace_back(word);
  return words;
}

bool Contains(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::string BaseName(const std::string& path) { return fs::path(path).filename().string(); }

// By its command line; a script's names its interpreter first.
bool Runs(const std::vector<std::string>& command, const std::string& name) {
  for (size_t i = 0; i < std::min<size_t>(2, command.size()); ++i) {
    if (BaseName(command[i]) == name) return true;
  }
  return false;
}

}  // namespace

// By number: glibc 2.36 declares the functions for C only.
ProcessHandle::ProcessHandle(pid_t pid)
    : pid_(pid), fd_(static_cast<int>(syscall(SYS_pidfd_open, pid, 0))) {}

bool ProcessHandle::Ended() const {
  pollfd ended{fd_.get(), POLLIN, 0};
  return !valid() || poll(&ended, 1, 0) > 0;
}

void ProcessHandle::Kill() const {
  if (valid()) (void)syscall(SYS_pidfd_send_signal, fd_.get(), SIGKILL, nullptr, 0);
}

std::string ProcessHandle::HowItEnded() const {
  siginfo_t info{};
  const int found = waitid(P_PIDFD, static_cast<id_t>(fd_.get()), &info, WEXITED | WNOHANG);
  if (found != 0 || info.si_pid == 0) return "it is no child of the agent";
  return fmt::format("{} {}", info.si_code == CLD_EXITED ? "exit status" : "signal",
                     info.si_status);
}

Status MpsTool::MakeFolders() const {
  const std::string longest = options_.pipe_folder + "/control_privileged";
  if (longest.size() > kMaxSocketPath) {
    return Invalid(
        fmt::format("{} has {} bytes, and a socket's path {} at most: choose a shorter "
                    "folder for MPS",
                    longest, longest.size(), kMaxSocketPath));
  }
  for (const std::string& folder : {options_.pipe_folder, options_.log_folder}) {
    std::error_code fault;
    fs::create_directories(folder, fault);
    if (!fault) {
      fs::permissions(folder,
                      fs::perms::owner_all | fs::perms::group_read | fs::perms::group_exec |
                          fs::perms::others_read | fs::perms::others_exec,
                      fs::perm_options::add, fault);
    }
    if (fault) {
      return {Code::kPermission,
              fmt::format("cannot make the folder {}: {}", folder, fault.message())};
    }
  }
  return Status::Ok();
}

void MpsTool::RemovePipes() const {
  std::error_code fault;
  fs::remove_all(options_.pipe_folder, fault);
}

// By blocks: what does not append leaves a hole where it was cut.
void MpsTool::BoundLogs() const {
  for (const char* name : {"/control.log", "/server.log"}) {
    const std::string path = options_.log_folder + name;
    struct stat found{};
    constexpr int64_t kBlock = 512;
    if (stat(path.c_str(), &found) != 0 || found.st_blocks * kBlock <= kMaxLog) continue;
    std::error_code fault;
    fs::resize_file(path, 0, fault);
  }
}

std::vector<std::string> MpsTool::Environment() const {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (!text.starts_with("CUDA_VISIBLE_DEVICES=") && !text.starts_with("CUDA_MPS_")) {
      all.emplace_back(text);
    }
  }
  all.push_back("CUDA_VISIBLE_DEVICES=" + options_.gpu_uuid);
  all.push_back("CUDA_MPS_PIPE_DIRECTORY=" + options_.pipe_folder);
  all.push_back("CUDA_MPS_LOG_DIRECTORY=" + options_.log_folder);
  return all;
}

Result<ProcessHandle> MpsTool::StartDaemon() const {
  std::vector<std::string> arguments{options_.program, "-f"};
  if (options_.multi_user) arguments.emplace_back("-multiuser-server");
  NOS_ASSIGN(const pid_t child, Spawn(std::move(arguments), Environment(), {}));
  return ProcessHandle(child);  // a child that ended is there until it is waited for
}

Result<std::string> MpsTool::Ask(const std::string& command, Duration within) const {
  const auto deadline = Clock::now() + within;
  auto in = Pipe();
  auto out = Pipe();
  if (!in || !out) return Status(Code::kUnavailable, Words(errno));
  // Before there is a reader that may go: it fits the pipe.
  const std::string line = command + "\n";
  if (write(in->second.get(), line.data(), line.size()) != std::ssize(line)) {
    return Status(Code::kUnavailable, Words(errno));
  }
  NOS_ASSIGN(const pid_t child,
             Spawn({options_.program}, Environment(), {in->first.get(), out->second.get()}));
  const ProcessHandle handle(child);
  in.reset();
  out->second = UniqueFd();
  const std::optional<std::string> answer = ReadAll(out->first.get(), deadline);
  if (!answer) handle.Kill();
  pollfd ended{handle.fd(), POLLIN, 0};
  while (poll(&ended, 1, -1) < 0 && errno == EINTR) {
  }
  const std::string how = handle.HowItEnded();
  if (!answer) {
    return Status(Code::kDeadline,
                  fmt::format("'{}' was not answered within {} s", command, ToSeconds(within)));
  }
  const std::string said(Trim(*answer));
  if (how == "exit status 0") return said;
  return Status(Code::kUnavailable,
                fmt::format("'{}' failed ({}): {}", command, how, Shortened(said, 200)));
}

std::vector<ProcessHandle> MpsTool::FindDaemons() const {
  return Find(BaseName(options_.program), true);
}

std::vector<ProcessHandle> MpsTool::FindServers() const { return Find(kServer, false); }

std::vector<ProcessHandle> MpsTool::Find(const std::string& name, bool daemon) const {
  std::vector<ProcessHandle> found;
  std::error_code fault;
  for (const auto& entry : fs::directory_iterator("/proc", fault)) {
    const auto pid = ParseInt(entry.path().filename().string());
    if (!pid) continue;
    ProcessHandle handle(static_cast<pid_t>(*pid));  // first, so that what is read is of this one
    if (!handle.valid()) continue;
    const std::vector<std::string> command = ProcWords(entry.path() / "cmdline");
    if (!Runs(command, name)) continue;
    if (daemon && !Contains(command, "-f") && !Contains(command, "-d")) continue;
    const std::string mark = "CUDA_MPS_PIPE_DIRECTORY=" + options_.pipe_folder;
    if (!Contains(ProcWords(entry.path() / "environ"), mark) || handle.Ended()) continue;
    found.push_back(std::move(handle));
  }
  return found;
}

std::vector<pid_t> PidsIn(const std::string& answer) {
  std::vector<pid_t> pids;
  std::string word;
  for (const char c : answer + ' ') {
    if (std::isspace(static_cast<unsigned char>(c)) == 0) {
      word += c;
      continue;
    }
    const auto number = ParseInt(std::exchange(word, ""));
    if (number && *number >= 0 && *number <= 1 << 22) pids.push_back(static_cast<pid_t>(*number));
  }
  return pids;
}

}  // namespace nos::device
