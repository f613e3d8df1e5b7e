#include "base/process.h"

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

#include "base/text.h"

namespace nos {
namespace {

using SystemTime = std::chrono::steady_clock;
// A killed process may still not end, if a driver holds it in the kernel.
constexpr std::chrono::seconds kKilled{5};

std::string Words(int fault) { return std::generic_category().message(fault); }

// Ends with a null pointer. Valid while `texts` lives unchanged.
std::vector<char*> ArgvOf(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// -1: /dev/null.
struct Streams {
  int in = -1, out = -1;
  bool inherit_error = false;  // stderr is that of this process; else it goes to `out`
};

Status CannotStart(const Program& program, int fault) {
  std::string message = fmt::format("cannot start {}: {}", program.arguments[0], Words(fault));
  if (!program.origin.empty()) message += "; " + program.origin;
  return {Code::kPermission, std::move(message)};
}

void Redirect(posix_spawn_file_actions_t& actions, int from, int stream, int mode) {
  if (from >= 0) {
    posix_spawn_file_actions_adddup2(&actions, from, stream);
  } else {
    posix_spawn_file_actions_addopen(&actions, stream, "/dev/null", mode, 0);
  }
}

Result<pid_t> Spawn(Program& program, const Streams& streams) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  Redirect(actions, streams.in, STDIN_FILENO, O_RDONLY);
  Redirect(actions, streams.out, STDOUT_FILENO, O_WRONLY);
  if (!streams.inherit_error) Redirect(actions, streams.out, STDERR_FILENO, O_WRONLY);
  // The child may outlive this process, so it must not keep other descriptors open.
  posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  const int session = streams.inherit_error ? 0 : POSIX_SPAWN_SETSID;
  posix_spawnattr_setflags(
      &attributes, static_cast<short>(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | session));
  pid_t child = 0;
  const int fault =
      posix_spawnp(&child, program.arguments[0].c_str(), &actions, &attributes,
                   ArgvOf(program.arguments).data(), ArgvOf(program.environment).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (fault != 0) return CannotStart(program, fault);
  return child;
}

std::optional<std::pair<UniqueFd, UniqueFd>> Pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return std::nullopt;
  return std::pair(UniqueFd(ends[0]), UniqueFd(ends[1]));
}

// Reads until the other end closes. Errors: kDeadline, kExhausted, kUnavailable.
Result<std::string> ReadAll(int fd, SystemTime::time_point deadline, size_t most) {
  std::string text;
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - SystemTime::now()).count();
    pollfd readable{fd, POLLIN, 0};
    const int ready = left <= 0 ? 0 : poll(&readable, 1, static_cast<int>(left) + 1);
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return Status(Code::kDeadline, "");
    char buffer[4096];
    const ssize_t count = read(fd, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Status(Code::kUnavailable, Words(errno));
    if (count == 0) return text;
    text.append(buffer, static_cast<size_t>(count));
    if (text.size() > most) {
      return Status(Code::kExhausted, fmt::format("printed more than {} bytes", most));
    }
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
  if (found != 0 || info.si_pid == 0) return "it is no child of this process";
  return fmt::format("{} {}", info.si_code == CLD_EXITED ? "exit status" : "signal",
                     info.si_status);
}

std::vector<std::string> OwnEnvironment() {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) all.emplace_back(*entry);
  return all;
}

Result<ProcessHandle> StartProgram(Program program) {
  NOS_ASSIGN(const pid_t child, Spawn(program, {}));
  return ProcessHandle(child);  // a zombie child exists until waited for
}

Result<ProgramEnd> RunProgram(Program program, const RunOptions& options) {
  const auto deadline = SystemTime::now() + options.within;
  // 1. Give it its input, or /dev/null. Written before the child starts, so no reader can close the
  //    pipe; the input fits its buffer.
  UniqueFd in;
  if (!options.input.empty()) {
    auto pipe = Pipe();
    if (!pipe) return CannotStart(program, errno);
    const std::string& input = options.input;
    if (write(pipe->second.get(), input.data(), input.size()) != std::ssize(input)) {
      return Status(Code::kUnavailable, Words(errno));
    }
    in = std::move(pipe->first);
  }
  auto out = Pipe();
  if (!out) return CannotStart(program, errno);

  // 2. Start it, and keep only our ends of the pipes.
  const bool inherit = options.error_output == Stderr::kInherit;
  NOS_ASSIGN(const pid_t child, Spawn(program, {in.get(), out->second.get(), inherit}));
  const ProcessHandle handle(child);
  in = UniqueFd();
  out->second = UniqueFd();

  // 3. Read until it closes its output, then wait for its end.
  const Result<std::string> output = ReadAll(out->first.get(), deadline, options.max_output);
  if (output.ok() && AwaitEnd(handle, deadline)) {
    return ProgramEnd{handle.HowItEnded(), std::string(Trim(*output))};
  }

  // 4. It failed: kill and reap it.
  handle.Kill();
  const bool ended = AwaitEnd(handle, SystemTime::now() + kKilled);
  if (ended) (void)handle.HowItEnded();
  const bool late = output.ok() || output.status().code() == Code::kDeadline;
  const std::string reason =
      late ? fmt::format("has not ended within {} s", ToSeconds(options.within))
           : output.status().message();
  return Status(late ? Code::kDeadline : output.status().code(),
                fmt::format("{} {}{}", program.arguments.front(), reason,
                            ended ? "" : ", and does not even when it is killed"));
}

}  // namespace nos
