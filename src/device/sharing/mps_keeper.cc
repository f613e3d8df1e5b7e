#include "device/mps_keeper.h"

#include <fmt/core.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "base/unix_socket.h"
#include "device/mps_share.h"
#include "device/mps_tool.h"

namespace nos::device {
namespace {

using Clock = std::chrono::steady_clock;

constexpr Duration kRequestTimeout = std::chrono::seconds(5);
constexpr size_t kMaxLine = 1024;
constexpr std::string_view kStart = "start ", kMultiUser = " multiuser", kPid = "pid ",
                           kError = "error ";

// Waits until the socket is readable. False: not before the deadline.
bool AwaitReadable(int fd, Clock::time_point deadline) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    if (left.count() <= 0) return false;
    pollfd polled{fd, POLLIN, 0};
    const int ready = poll(&polled, 1, static_cast<int>(left.count()));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
  }
}

// A line without its end; nothing if the other side is silent, closes or says too much.
std::optional<std::string> ReadLine(int fd, Duration within) {
  const auto deadline = Clock::now() + within;
  std::string line;
  while (line.size() <= kMaxLine && AwaitReadable(fd, deadline)) {
    char buffer[256];
    const ssize_t got = recv(fd, buffer, sizeof buffer, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (got <= 0) return std::nullopt;
    line.append(buffer, static_cast<size_t>(got));
    const size_t end = line.find('\n');
    if (end != line.npos) return line.substr(0, end);
  }
  return std::nullopt;
}

// Lines fit the buffer of a socket.
bool WriteLine(int fd, std::string text) {
  std::ranges::replace(text, '\n', ' ');
  text = std::string(Shortened(text, kMaxLine - 1)) + "\n";
  return send(fd, text.data(), text.size(), MSG_NOSIGNAL) == std::ssize(text);
}

bool IsOwnUser(int fd) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
         (peer.uid == 0 || peer.uid == geteuid());
}

}  // namespace

MpsKeeper::~MpsKeeper() {
  stop_.Signal();
  if (thread_.joinable()) thread_.join();
}

Status MpsKeeper::Start() {
  std::error_code fault;
  std::filesystem::create_directories(std::filesystem::path(options_.socket).parent_path(), fault);
  if (fault) {
    return {Code::kPermission,
            fmt::format("cannot make the folder of {}: {}", options_.socket, fault.message())};
  }
  const mode_t mask = umask(0177);
  auto listener = ListenUnix(options_.socket);
  umask(mask);
  NOS_RETURN_IF_ERROR(listener.status());
  listener_ = std::move(listener).value();
  thread_ = std::thread([this] { Run(); });
  return Status::Ok();
}

void MpsKeeper::Run() {
  for (;;) {
    std::vector<pollfd> polled{{stop_.fd(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
    for (const ProcessHandle& daemon : daemons_) polled.push_back({daemon.fd(), POLLIN, 0});
    (void)poll(polled.data(), polled.size(), -1);
    if (polled[0].revents != 0) return;
    ReapEnded();
    if (polled[1].revents == 0) continue;
    const UniqueFd client(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (client.valid() && IsOwnUser(client.get())) Serve(client);
  }
}

void MpsKeeper::ReapEnded() {
  std::erase_if(daemons_, [](const ProcessHandle& daemon) {
    if (!daemon.Ended()) return false;
    Log(LogLevel::kInfo, "reaped MPS control daemon",
        {{"pid", std::to_string(daemon.pid())}, {"how", daemon.HowItEnded()}});
    return true;
  });
}

void MpsKeeper::Serve(const UniqueFd& client) {
  const auto request = ReadLine(client.get(), kRequestTimeout);
  if (request) (void)WriteLine(client.get(), Answer(*request));
}

std::string MpsKeeper::Answer(const std::string& request) {
  const bool multi_user = request.ends_with(kMultiUser);
  std::string uuid = request.starts_with(kStart) ? request.substr(kStart.size()) : "";
  if (multi_user && !uuid.empty()) uuid.resize(uuid.size() - kMultiUser.size());
  if (!IsMpsUuid(uuid)) {
    return fmt::format("{}'{}' names no GPU and no MIG instance", kError, Shortened(request, 100));
  }
  const MpsTool tool({options_.program, uuid, options_.folder + "/" + uuid,
                      options_.log_folder + "/" + uuid, multi_user});
  const Status folders = tool.MakeFolders();
  auto daemon = folders.ok() ? tool.StartDaemon() : Result<ProcessHandle>(folders);
  if (!daemon.ok()) return fmt::format("{}{}", kError, daemon.status().message());
  std::string answer = fmt::format("{}{}", kPid, daemon->pid());
  Log(LogLevel::kInfo, "started MPS control daemon",
      {{"device", uuid}, {"pid", std::to_string(daemon->pid())}});
  daemons_.push_back(std::move(daemon).value());
  return answer;
}

Result<ProcessHandle> StartByKeeper(const std::string& socket, const std::string& uuid,
                                    bool multi_user, Duration within) {
  const auto connection = ConnectUnix(socket);
  if (!connection.ok()) {
    return Status(Code::kUnavailable,
                  fmt::format("the MPS keeper (nos mps) does not run on this node: {}",
                              connection.status().message()));
  }
  const bool asked = WriteLine(connection->get(),
                               fmt::format("{}{}{}", kStart, uuid, multi_user ? kMultiUser : ""));
  const auto answer = asked ? ReadLine(connection->get(), within) : std::nullopt;
  if (!answer) return Status(Code::kUnavailable, "the MPS keeper (nos mps) does not answer");
  if (answer->starts_with(kError)) {
    return Status(Code::kPermission, answer->substr(kError.size()));
  }
  const std::vector<pid_t> pids = PidsIn(*answer);
  ProcessHandle daemon(pids.size() == 1 ? pids.front() : 0);
  if (pids.size() == 1 && pids.front() > 0 && daemon.valid()) return daemon;
  return Status(Code::kUnavailable, "the daemon that the MPS keeper (nos mps) started has ended");
}

}  // namespace nos::device
