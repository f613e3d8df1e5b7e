#include "device/backend/child_process.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <optional>
#include <system_error>
#include <utility>

#include "base/argv.h"
#include "base/text.h"

namespace nos::device {
namespace {

using SystemTime = std::chrono::steady_clock;
constexpr size_t kMaxAnswer = size_t{1} << 16;
// A killed process may still not end, if the driver holds it in the kernel.
constexpr std::chrono::seconds kKilled{5};

std::string Words(int fault) { return std::generic_category().message(fault); }

// -1: opens /dev/null instead.
struct Streams {
  int in = -1, out = -1;
};

// This process blocks signals that it waits for; the child must not inherit that.
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
  // The child may outlive this process, so it must not keep other descriptors open.
  posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
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

// Reads until the other end closes; empty on a time-out.
std::optional<std::string> ReadAll(int fd, SystemTime::time_point deadline) {
  std::string text;
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - SystemTime::now()).count();
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

// Returns whether it ends before the deadline.
bool AwaitEnd(const ProcessHandle& handle, SystemTime::time_point deadline) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - SystemTime::now());
    pollfd ended{handle.fd(), POLLIN, 0};
    const int ready = poll(&ended, 1, static_cast<int>(std::max<int64_t>(0, left.count())));
    if (ready >= 0 || errno != EINTR) return ready > 0;
  }
}

}  // namespace

// Called by number, because glibc 2.36 declares the functions for C only.
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

std::vector<std::string> OwnEnvironment() {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) all.emplace_back(*entry);
  return all;
}

Result<ProcessHandle> StartProgram(Program program) {
  NOS_ASSIGN(const pid_t child,
             Spawn(std::move(program.arguments), std::move(program.environment), {}));
  return ProcessHandle(child);  // a zombie child exists until waited for
}

Result<ProgramEnd> RunProgram(Program program, const std::string& input, Duration within) {
  const auto deadline = SystemTime::now() + within;
  auto in = Pipe();
  auto out = Pipe();
  if (!in || !out) {
    return Status(Code::kPermission,
                  fmt::format("cannot start {}: {}", program.arguments.front(), Words(errno)));
  }
  // Written before the child starts, so no reader can close the pipe; the input fits its buffer.
  if (write(in->second.get(), input.data(), input.size()) != std::ssize(input)) {
    return Status(Code::kUnavailable, Words(errno));
  }
  const std::string name = program.arguments.front();
  NOS_ASSIGN(const pid_t child, Spawn(std::move(program.arguments), std::move(program.environment),
                                      {in->first.get(), out->second.get()}));
  const ProcessHandle handle(child);
  in.reset();
  out->second = UniqueFd();
  const std::optional<std::string> answer = ReadAll(out->first.get(), deadline);
  if (answer && AwaitEnd(handle, deadline)) {
    return ProgramEnd{handle.HowItEnded(), std::string(Trim(*answer))};
  }
  handle.Kill();
  const bool ended = AwaitEnd(handle, SystemTime::now() + kKilled);
  if (ended) (void)handle.HowItEnded();
  return Status(Code::kDeadline,
                fmt::format("{} has not ended within {} s{}", name, ToSeconds(within),
                            ended ? "" : ", and does not even when it is killed"));
}

}  // namespace nos::device
