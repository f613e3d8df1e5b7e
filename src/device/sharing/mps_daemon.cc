#include "device/sharing/mps_daemon.h"

#include <fmt/core.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <utility>

#include "base/log.h"
#include "base/text.h"

namespace nos::device {
namespace {

using Clock = std::chrono::steady_clock;
using Phase = MpsState::Phase;
constexpr Duration kForever{-1};
constexpr Duration kMomentOfDeath = std::chrono::milliseconds(200);  // sockets close first
constexpr Duration kFirstLook = std::chrono::milliseconds(10);
// A server has at most 60 clients. The limits matter because containers can fake the daemon's
// answers, and each client costs a file descriptor of this process, shared by all GPUs.
constexpr size_t kMaxServers = 64, kMaxClients = 64;

// Without duplicates.
std::vector<pid_t> ListedIn(const std::string& answer) {
  std::vector<pid_t> pids = PidsIn(answer);
  std::ranges::sort(pids);
  pids.erase(std::unique(pids.begin(), pids.end()), pids.end());
  return pids;
}

}  // namespace

MpsDaemon::MpsDaemon(const MpsGpu& gpu, MpsToolOptions tool, MpsDaemonOptions options,
                     GpuHealth& board, bool wanted)
    : gpu_(gpu),
      options_(std::move(options)),
      tool_(std::move(tool)),
      board_(board),
      wanted_(wanted) {
  state_.gpu = gpu.index;
  state_.gpu_uuid = gpu.uuid;
  Enter(wanted ? Phase::kStarting : Phase::kLeaving, "it is being started");
  thread_ = std::thread([this] { Run(); });
}

MpsDaemon::~MpsDaemon() {
  {
    const std::scoped_lock lock(mutex_);
    stop_ = true;
  }
  wake_up_.Signal();
  thread_.join();
  board_.ClearOne(gpu_.index, gpu_.instance, HealthCondition::Kind::kMps);
}

void MpsDaemon::Want(bool wanted) {
  {
    const std::scoped_lock lock(mutex_);
    if (std::exchange(wanted_, wanted) == wanted) return;
  }
  wake_up_.Signal();
}

MpsState MpsDaemon::State() const {
  const std::scoped_lock lock(mutex_);
  return state_;
}

void MpsDaemon::Update(const std::function<void(MpsState&)>& change) {
  {
    const std::scoped_lock lock(mutex_);
    MpsState next = state_;
    change(next);
    if (next == state_) return;
    state_ = std::move(next);
  }
  if (options_.on_change) options_.on_change();
}

// Sets the condition before the state leaves kServing, and clears it before the state becomes
// kServing, so that a listener of the state sees the matching condition.
void MpsDaemon::Enter(Phase phase, const std::string& trouble) {
  const MpsState before = State();
  if (phase == Phase::kServing || phase == Phase::kGone) {
    board_.ClearOne(gpu_.index, gpu_.instance, HealthCondition::Kind::kMps);
  } else if (gpu_.index >= 0) {
    const std::string what = gpu_.instance ? fmt::format(" ({})", gpu_.uuid) : "";
    board_.Add({HealthCondition::Kind::kMps, gpu_.index, gpu_.instance, 0,
                fmt::format("MPS does not serve GPU {}{}: {}", gpu_.index, what, trouble)});
  }
  if (phase == Phase::kWaiting && trouble != before.trouble) {
    Log(LogLevel::kWarn, "failed to serve GPU by MPS", {{"gpu", gpu_.uuid}, {"why", trouble}});
  }
  Update([&](MpsState& state) {
    state.phase = phase;
    state.trouble = trouble;
    state.pid = daemon_.valid() ? daemon_.pid() : 0;
  });
}

bool MpsDaemon::GoesOn() {
  const std::scoped_lock lock(mutex_);
  return wanted_ && !stop_;
}

bool MpsDaemon::Wait(const std::vector<int>& fds, Duration at_most) {
  std::vector<pollfd> polled{{wake_up_.fd(), POLLIN, 0}};
  for (const int fd : fds) polled.push_back({fd, POLLIN, 0});
  const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(at_most).count();
  const int timeout = at_most < Duration::zero()
                          ? -1
                          : static_cast<int>(std::min<int64_t>(milliseconds, 3'600'000));
  (void)poll(polled.data(), polled.size(), timeout);
  if (polled[0].revents != 0) wake_up_.Clear();
  return std::any_of(polled.begin() + 1, polled.end(),
                     [](const pollfd& one) { return one.revents != 0; });
}

void MpsDaemon::Run() {
  for (;;) {
    {
      const std::scoped_lock lock(mutex_);
      if (stop_) return;
    }
    // 1. Not wanted: end the daemon and its servers, then sleep until Want or the destructor.
    if (!GoesOn()) {
      if (State().phase != Phase::kGone) End();
      if (State().phase == Phase::kGone) Wait({}, kForever);
      continue;
    }
    // 2. Serve until the daemon ends, hangs, or is not wanted any more.
    Enter(Phase::kStarting, State().trouble);
    if (const Status begun = Begin(); begun.ok()) {
      Serve();
    } else if (GoesOn()) {
      Fail(begun);
    }
    // 3. Wait for its servers before the next attempt: two servers cannot use one GPU.
    if (GoesOn()) AwaitServers();
    if (GoesOn()) Pause();
  }
}

// Takes over a running daemon, or starts one, and waits until it answers.
Status MpsDaemon::Begin() {
  NOS_RETURN_IF_ERROR(tool_.MakeFolders());
  std::vector<ProcessHandle> former = tool_.FindDaemons();
  if (!former.empty()) {
    daemon_ = std::move(former.front());
  } else {
    // Servers without a daemon are left from before this agent; whether they have clients is
    // unknown.
    for (ProcessHandle& left : tool_.FindServers()) {
      servers_.push_back({std::move(left), {}, true});
    }
    AwaitServers();
    if (!GoesOn()) return {Code::kUnavailable, "it is not wanted any more"};
    tool_.ClearPipes();
    NOS_ASSIGN(daemon_, tool_.StartDaemon());
  }
  Update([](MpsState& state) { ++state.starts; });
  const auto deadline = Clock::now() + options_.start_within;
  for (Duration look = kFirstLook;; look = 2 * look) {
    Status answers = Configure();
    if (answers.ok()) {
      (void)Look();  // Serve notices if it stops answering
      return answers;
    }
    const Duration left = deadline - Clock::now();
    if (left <= Duration::zero() || answers.code() != Code::kUnavailable || !GoesOn()) {
      return answers;
    }
    if (Wait({daemon_.fd()}, std::min(left, look))) {
      return {Code::kUnavailable,
              fmt::format("it ended when it was started ({}); see {}/control.log",
                          daemon_.HowItEnded(), tool_.options().log_folder)};
    }
  }
}

// The settings apply to servers started later. A rejected limit is reported, but the daemon still
// runs.
Status MpsDaemon::Configure() {
  NOS_RETURN_IF_ERROR(
      tool_.Ask("get_default_active_thread_percentage", options_.answer_within).status());
  std::vector<std::string> commands;
  if (options_.active_thread_percentage > 0) {
    commands.push_back(
        fmt::format("set_default_active_thread_percentage {}", options_.active_thread_percentage));
  }
  if (gpu_.memory_gib > 0) {
    commands.push_back(fmt::format("set_default_device_pinned_mem_limit 0 {}G", gpu_.memory_gib));
  }
  if (gpu_.memory_mib > 0) {
    commands.push_back(fmt::format("set_default_device_pinned_mem_limit 0 {}M", gpu_.memory_mib));
  }
  for (const std::string& command : commands) {
    const Result<std::string> set = tool_.Ask(command, options_.answer_within);
    if (set.ok()) continue;
    if (set.status().code() == Code::kDeadline) return set.status();
    Log(LogLevel::kWarn, "failed to set MPS limit",
        {{"gpu", gpu_.uuid}, {"error", set.status().message()}});
  }
  return Status::Ok();
}

// Kills the daemon only if the error is its fault.
void MpsDaemon::Fail(const Status& why) {
  if (why.code() == Code::kDeadline || why.code() == Code::kUnavailable) {
    return EndHung(why.message());
  }
  Enter(Phase::kWaiting, why.message());
  daemon_ = {};
}

// Returns when the daemon has ended or is not wanted any more.
void MpsDaemon::Serve() {
  Enter(Phase::kServing);
  const auto since = Clock::now();
  int misses = 0;
  while (GoesOn()) {
    const bool ended = Wait({daemon_.fd()}, options_.look_every);
    if (!GoesOn()) return;
    if (Clock::now() - since > options_.pauses.limit) failures_ = 0;
    if (ended) {
      const std::string how = daemon_.HowItEnded();
      daemon_ = {};
      return Enter(Phase::kWaiting, fmt::format("its control daemon has ended ({})", how));
    }
    const Status looked = Look();
    tool_.BoundLogs();
    if (looked.ok()) {
      misses = 0;
      Enter(Phase::kServing);
      continue;
    }
    if (daemon_.Ended()) continue;
    const bool its_fault = looked.code() != Code::kPermission;
    if (its_fault && ++misses >= options_.misses) return EndHung(looked.message());
    Enter(Phase::kWaiting, looked.message());
  }
}

// Asks for servers and clients: checks that the daemon answers, and records its dependents.
Status MpsDaemon::Look() {
  NOS_ASSIGN(const std::string list, tool_.Ask("get_server_list", options_.answer_within));
  std::vector<pid_t> pids = ListedIn(list);
  pids.resize(std::min(pids.size(), kMaxServers));
  std::vector<Server> servers;
  int clients = 0;
  for (const pid_t pid : pids) {
    NOS_ASSIGN(Server server, ReadServer(pid));
    if (!server.process.valid()) continue;
    clients += static_cast<int>(server.clients.size()) + (server.unseen_clients ? 1 : 0);
    servers.push_back(std::move(server));
  }
  servers_ = std::move(servers);
  Update([&](MpsState& state) {
    state.servers = static_cast<int>(servers_.size());
    state.clients = clients;
  });
  return Status::Ok();
}

Result<MpsDaemon::Server> MpsDaemon::ReadServer(pid_t pid) {
  Server server{tool_.FindServer(pid), {}, false};
  if (!server.process.valid()) return server;
  const Result<std::string> list =
      tool_.Ask(fmt::format("get_client_list {}", pid), options_.answer_within);
  server.unseen_clients = !list.ok();
  if (!list.ok()) {
    // Either the server has just ended, or the daemon is dying; in that case keep the last known
    // servers.
    const bool refused = list.status().code() == Code::kUnavailable;
    if (!refused || WaitForEnd(daemon_, kMomentOfDeath)) return list.status();
    return server;
  }
  const std::vector<pid_t> clients = ListedIn(*list);
  for (const pid_t client : clients) {
    ProcessHandle process(client);
    const bool seen = client > 0 && process.valid() && server.clients.size() < kMaxClients;
    if (seen) server.clients.push_back(std::move(process));
    server.unseen_clients |= !seen;
  }
  return server;
}

// Leaves its servers running; AwaitServers handles them.
void MpsDaemon::EndHung(const std::string& why) {
  Enter(Phase::kWaiting, why);
  if (!daemon_.valid()) return;
  daemon_.Kill();
  if (WaitForEnd(daemon_, options_.quit_within)) {
    (void)daemon_.HowItEnded();
    daemon_ = {};
    return;
  }
  Enter(Phase::kWaiting, fmt::format("its control daemon (process {}) does not end, not even when "
                                     "killed: see the kernel log",
                                     daemon_.pid()));
}

bool MpsDaemon::WaitForEnd(const ProcessHandle& process, Duration at_most) {
  const auto deadline = Clock::now() + at_most;
  for (;;) {
    if (process.Ended()) return true;
    const Duration left = deadline - Clock::now();
    if (left <= Duration::zero()) return false;
    pollfd ended{process.fd(), POLLIN, 0};
    (void)poll(&ended, 1,
               static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(left).count()));
  }
}

// Waits until no server of a former daemon is left.
void MpsDaemon::AwaitServers() {
  while (GoesOn()) {
    std::vector<int> fds;
    for (Server& server : servers_) {
      std::erase_if(server.clients, [](const ProcessHandle& client) { return client.Ended(); });
      if (server.idle()) server.process.Kill();
      for (const ProcessHandle& client : server.clients) fds.push_back(client.fd());
      fds.push_back(server.process.fd());
    }
    std::erase_if(servers_, [](const Server& server) {
      const bool ended = server.process.Ended();
      if (ended) (void)server.process.HowItEnded();
      return ended;
    });
    if (servers_.empty()) return;
    const Server& first = servers_.front();
    if (!first.idle()) {
      Enter(
          Phase::kWaiting,
          fmt::format("the control daemon is gone, and its server (process {}) may still have "
                      "clients: a new one is started when it has ended; end it if it is not needed",
                      first.process.pid()));
    }
    (void)Wait(fds, options_.look_every);
  }
}

void MpsDaemon::Pause() {
  const auto deadline = Clock::now() + options_.pauses.After(++failures_);
  while (GoesOn()) {
    const Duration left = deadline - Clock::now();
    if (left <= Duration::zero()) return;
    (void)Wait({}, left);
  }
}

// REQUIRES: no pod holds a share.
void MpsDaemon::End() {
  Enter(Phase::kLeaving, "it is leaving MPS mode");
  failures_ = 0;
  // 1. End the daemon: ask first, so that it can end its servers in order; then kill.
  if (std::vector<ProcessHandle> former; !daemon_.valid()) {
    former = tool_.FindDaemons();
    if (!former.empty()) daemon_ = std::move(former.front());
  }
  if (daemon_.valid()) {
    const Status looked = Look();  // records the servers to end with it
    const Status asked = looked.ok() ? tool_.Ask("quit", options_.quit_within).status() : looked;
    if (!asked.ok() || !WaitForEnd(daemon_, options_.quit_within)) daemon_.Kill();
    if (!WaitForEnd(daemon_, options_.quit_within)) {
      Enter(Phase::kLeaving, fmt::format("its control daemon (process {}) does not end, not even "
                                         "when killed: see the kernel log",
                                         daemon_.pid()));
      (void)Wait({daemon_.fd()}, options_.look_every);
      return;
    }
    (void)daemon_.HowItEnded();
    daemon_ = {};
  }
  // 2. End the servers that outlived it, also those that it never listed.
  for (ProcessHandle& left : tool_.FindServers()) servers_.push_back({std::move(left), {}, false});
  for (const Server& server : std::exchange(servers_, {})) {
    server.process.Kill();
    if (WaitForEnd(server.process, options_.quit_within)) (void)server.process.HowItEnded();
  }
  // 3. Remove the directory last: it marks what is still to be ended (MpsControl::HasLeft).
  tool_.RemovePipes();
  Update([](MpsState& state) { state.servers = state.clients = 0; });
  Enter(Phase::kGone);
}

}  // namespace nos::device
