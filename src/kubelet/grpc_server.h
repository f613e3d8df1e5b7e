// Serves gRPC on unix sockets, on its own thread: unary calls, and a value that clients watch.
//
//   GrpcServer server({}, on_change);
//   server.Serve("/run/x.sock", {call, {"/v1beta1.DevicePlugin/ListAndWatch"}});
//   server.Publish("/run/x.sock", message);   // to every watch, open now or later
//   if (server.State("/run/x.sock").caught_up) ...
//
// A watch receives the newest value; values published while the last is still in flight are
// skipped. A watch that has not read its value within `patience` is disconnected. Thread-safe.
#pragma once

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "base/unix_socket.h"
#include "kubelet/grpc_connection.h"

namespace nos::kubelet {

struct GrpcAnswer {
  GrpcCode code = GrpcCode::kOk;
  std::string body{};  // the message, or the reason of a failure
};

// A call that was begun. It is valid as long as the server.
struct GrpcCall {
  uint64_t connection = 0;
  int32_t stream = 0;
};

struct GrpcService {
  // Called on the server's thread, under its lock: must not block nor call the server.
  std::function<GrpcAnswer(std::string_view method, const std::string& request)> call;
  std::vector<std::string> watch_methods;  // versions of one method
  // If set, it is called instead of `call`, by the same rules. GrpcServer::Answer answers later. A
  // peer has at most GrpcLimits::max_streams calls open on each connection.
  std::function<void(const GrpcCall& begun, std::string_view method, std::string request)> begin{};
};

struct GrpcServerOptions {
  Duration patience = std::chrono::seconds(5);
  size_t max_request = 1 << 20;         // bytes
  size_t max_connections = 8;           // per socket; further ones are closed
  std::chrono::milliseconds rest{500};  // pause after a failed accept
};

class GrpcServer {
 public:
  // `on_change`: watches of a socket began, ended or caught up. Same rules as for
  // GrpcService::call.
  GrpcServer(GrpcServerOptions options, std::function<void()> on_change);
  // Closes everything and removes its sockets.
  ~GrpcServer();
  GrpcServer(const GrpcServer&) = delete;

  // Listens on `path`, replacing any file at that path. A second call for the same path creates the
  // socket again; connections stay open. Errors: as ListenUnix.
  Status Serve(const std::string& path, GrpcService service);
  // True if the file at `path` is the socket served here.
  bool Serves(const std::string& path) const;
  // True if there is a file at `path` that is not the socket served here.
  bool IsReplaced(const std::string& path) const;

  // May be called before Serve(path, ...).
  void Publish(const std::string& path, std::string message);
  struct WatchState {
    int watches = 0;
    bool caught_up = false;  // has watches, and the peers of all have read the newest value
  };
  WatchState State(const std::string& path) const;

  // Answers a call that GrpcService::begin received. No effect if the peer has given it up.
  void Answer(const GrpcCall& begun, GrpcAnswer answer);

  // Closes all connections, or those of one socket; keeps listening.
  void Disconnect();
  void Disconnect(const std::string& path);

 private:
  using SteadyTime = std::chrono::steady_clock::time_point;
  struct Socket {
    GrpcService service;
    UniqueFd listener;
    std::string file;  // its FileIdentity
    SteadyTime rest_until{};
    std::string value;
    uint64_t version = 0;  // of `value`; 0: no value yet
  };
  struct Watch {
    uint64_t version = 0;  // of the last sent value
    uint64_t marker = 0;   // acknowledged by the peer after it has read the value
  };
  struct Connection {
    Connection(std::string socket, UniqueFd peer, GrpcLimits limits)
        : path(std::move(socket)), grpc(std::move(peer), GrpcConnection::Side::kServer, limits) {}
    std::string path;
    GrpcConnection grpc;
    uint64_t id = 0;                   // GrpcCall::connection
    std::map<int32_t, Watch> watches;  // by stream
    SteadyTime cut_off_at{};           // unless caught up by then
    bool over = false;
  };

  void Run();
  void Poll(std::unique_lock<std::mutex>& lock);
  void Accept(const std::string& path, Socket& socket);
  void OnRequest(Connection& connection, int32_t stream);
  void SendAnswers();
  static void SendAnswer(Connection& connection, int32_t stream, const GrpcAnswer& answer);
  void Push(Connection& connection, SteadyTime now);
  void ServeConnection(Connection& connection, SteadyTime now);
  bool CaughtUp(const Connection& connection) const;
  void DropEnded();

  const GrpcServerOptions options_;
  const std::function<void()> on_change_;
  WakeUp wake_up_;
  mutable std::mutex mutex_;  // guards all members below; not held while polling
  bool stop_ = false;
  uint64_t last_version_ = 0, last_marker_ = 0, last_connection_ = 0;
  std::vector<std::pair<GrpcCall, GrpcAnswer>> answers_;  // not sent yet
  std::map<std::string, Socket> sockets_;
  std::list<Connection> connections_;
  std::thread thread_;  // last: uses the others
};

}  // namespace nos::kubelet
