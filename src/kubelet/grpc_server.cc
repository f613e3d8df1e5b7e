#include "kubelet/grpc_server.h"

#include <fmt/core.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>
#include <vector>

#include "base/log.h"

namespace nos::kubelet {

GrpcServer::GrpcServer(GrpcServerOptions options, std::function<void()> on_change)
    : options_(options), on_change_(std::move(on_change)), thread_([this] { Run(); }) {}

GrpcServer::~GrpcServer() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_up_.Signal();
  thread_.join();
  for (const auto& [path, socket] : sockets_) {
    if (!socket.file.empty() && FileIdentity(path) == socket.file) unlink(path.c_str());
  }
}

Status GrpcServer::Serve(const std::string& path, GrpcService service) {
  NOS_ASSIGN(UniqueFd listener, ListenUnix(path));
  {
    const std::lock_guard lock(mutex_);
    Socket& socket = sockets_[path];
    socket.service = std::move(service);
    socket.listener = std::move(listener);
    socket.file = FileIdentity(path);
  }
  wake_up_.Signal();
  return Status::Ok();
}

bool GrpcServer::Serves(const std::string& path) const {
  const std::lock_guard lock(mutex_);
  const auto socket = sockets_.find(path);
  return socket != sockets_.end() && !socket->second.file.empty() &&
         FileIdentity(path) == socket->second.file;
}

bool GrpcServer::IsReplaced(const std::string& path) const {
  return !Serves(path) && !FileIdentity(path).empty();
}

void GrpcServer::Publish(const std::string& path, std::string message) {
  {
    const std::lock_guard lock(mutex_);
    Socket& socket = sockets_[path];
    if (socket.version != 0 && socket.value == message) return;
    socket.value = std::move(message);
    socket.version = ++last_version_;
  }
  wake_up_.Signal();
}

GrpcServer::WatchState GrpcServer::State(const std::string& path) const {
  const std::lock_guard lock(mutex_);
  WatchState state;
  bool all = true;
  for (const Connection& connection : connections_) {
    if (connection.path != path || connection.over) continue;
    state.watches += static_cast<int>(connection.watches.size());
    all = all && CaughtUp(connection);
  }
  state.caught_up = state.watches > 0 && all;
  return state;
}

void GrpcServer::Answer(const GrpcCall& begun, GrpcAnswer answer) {
  {
    const std::lock_guard lock(mutex_);
    answers_.emplace_back(begun, std::move(answer));
  }
  wake_up_.Signal();
}

void GrpcServer::SendAnswers() {
  for (const auto& [begun, answer] : std::exchange(answers_, {})) {
    const auto asked = std::ranges::find(connections_, begun.connection, &Connection::id);
    if (asked == connections_.end() || asked->over) continue;
    if (asked->grpc.Find(begun.stream) != nullptr) SendAnswer(*asked, begun.stream, answer);
  }
}

void GrpcServer::SendAnswer(Connection& connection, int32_t stream, const GrpcAnswer& answer) {
  if (answer.code != GrpcCode::kOk) {
    return connection.grpc.Refuse(stream, answer.code, answer.body);
  }
  connection.grpc.BeginAnswer(stream);
  connection.grpc.Send(stream, answer.body);
  connection.grpc.EndAnswer(stream);
}

void GrpcServer::Disconnect() {
  {
    const std::lock_guard lock(mutex_);
    for (Connection& connection : connections_) connection.over = true;
  }
  wake_up_.Signal();
}

void GrpcServer::Disconnect(const std::string& path) {
  {
    const std::lock_guard lock(mutex_);
    for (Connection& connection : connections_) {
      connection.over = connection.over || connection.path == path;
    }
  }
  wake_up_.Signal();
}

void GrpcServer::Run() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    const SteadyTime now = std::chrono::steady_clock::now();
    for (auto& [path, socket] : sockets_) Accept(path, socket);
    SendAnswers();
    for (Connection& connection : connections_) ServeConnection(connection, now);
    DropEnded();
    Poll(lock);
  }
  connections_.clear();
}

// Waits for an event, without the lock. Run() then tries every socket, because all are non-blocking
// and there are few.
void GrpcServer::Poll(std::unique_lock<std::mutex>& lock) {
  std::vector<pollfd> fds{{wake_up_.fd(), POLLIN, 0}};
  SteadyTime until = SteadyTime::max();
  const SteadyTime now = std::chrono::steady_clock::now();
  for (const auto& [path, socket] : sockets_) {
    if (!socket.listener.valid()) continue;
    if (socket.rest_until > now) {
      until = std::min(until, socket.rest_until);
    } else {
      fds.push_back({socket.listener.get(), POLLIN, 0});
    }
  }
  for (const Connection& connection : connections_) {
    const bool writes = connection.grpc.WantsWrite();
    fds.push_back(
        {connection.grpc.fd(), static_cast<short>(writes ? POLLIN | POLLOUT : POLLIN), 0});
    if (!CaughtUp(connection)) until = std::min(until, connection.cut_off_at);
  }
  int timeout = -1;
  if (until != SteadyTime::max()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - now).count();
    timeout = static_cast<int>(std::clamp<int64_t>(left, 0, 60'000));
  }
  lock.unlock();
  poll(fds.data(), fds.size(), timeout);
  wake_up_.Clear();
  lock.lock();
}

void GrpcServer::Accept(const std::string& path, Socket& socket) {
  if (!socket.listener.valid() || socket.rest_until > std::chrono::steady_clock::now()) return;
  for (;;) {
    UniqueFd peer(accept4(socket.listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!peer.valid()) {
      if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED) return;
      Log(LogLevel::kError, "failed to accept connections",
          {{"socket", path}, {"error", std::generic_category().message(errno)}});
      socket.rest_until = std::chrono::steady_clock::now() + options_.rest;
      return;
    }
    const auto open = std::count_if(connections_.begin(), connections_.end(),
                                    [&](const Connection& other) { return other.path == path; });
    if (static_cast<size_t>(open) >= options_.max_connections) continue;
    Connection& connection = connections_.emplace_back(
        path, std::move(peer), GrpcLimits{.max_message = options_.max_request});
    connection.id = ++last_connection_;
    connection.grpc.on_request = [this, &connection](int32_t stream) {
      OnRequest(connection, stream);
    };
  }
}

void GrpcServer::OnRequest(Connection& connection, int32_t stream) {
  const GrpcService& service = sockets_.at(connection.path).service;
  GrpcStream& request = *connection.grpc.Find(stream);
  const Result<std::string> message = OnlyMessage(request.received, options_.max_request);
  request.received.clear();
  if (!message.ok()) {
    return connection.grpc.Refuse(stream, GrpcCode::kInvalidArgument, message.status().message());
  }
  if (std::ranges::find(service.watch_methods, request.method) != service.watch_methods.end()) {
    connection.grpc.BeginAnswer(stream);
    connection.watches[stream] = {};
    return;
  }
  if (service.begin) return service.begin({connection.id, stream}, request.method, *message);
  SendAnswer(connection, stream, service.call(request.method, *message));
}

void GrpcServer::ServeConnection(Connection& connection, SteadyTime now) {
  const size_t watches = connection.watches.size();
  const bool caught_up = CaughtUp(connection);
  if (!connection.over) connection.over = !connection.grpc.Read().ok();
  std::erase_if(connection.watches,
                [&](const auto& watch) { return connection.grpc.Find(watch.first) == nullptr; });
  Push(connection, now);
  if (!connection.over) connection.over = !connection.grpc.Flush().ok();
  if (!connection.over && !CaughtUp(connection) && connection.cut_off_at <= now) {
    Log(LogLevel::kWarn, "closing connection of watch that does not read",
        {{"socket", connection.path}});
    connection.over = true;
  }
  if (watches != connection.watches.size() || caught_up != CaughtUp(connection)) on_change_();
}

// At most one value at a time is in flight to a peer.
void GrpcServer::Push(Connection& connection, SteadyTime now) {
  const Socket& socket = sockets_.at(connection.path);
  if (connection.over || socket.version == 0) return;
  for (auto& [stream, watch] : connection.watches) {
    const bool on_its_way = connection.grpc.acknowledged() < watch.marker;
    if (watch.version == socket.version || on_its_way) continue;
    watch = {socket.version, ++last_marker_};
    connection.grpc.Send(stream, socket.value, watch.marker);
    connection.cut_off_at = now + options_.patience;
  }
}

bool GrpcServer::CaughtUp(const Connection& connection) const {
  const uint64_t newest = sockets_.at(connection.path).version;
  return std::all_of(connection.watches.begin(), connection.watches.end(), [&](const auto& watch) {
    return watch.second.version == newest && connection.grpc.acknowledged() >= watch.second.marker;
  });
}

void GrpcServer::DropEnded() {
  const size_t dropped =
      connections_.remove_if([](const Connection& connection) { return connection.over; });
  if (dropped > 0) on_change_();
}

}  // namespace nos::kubelet
