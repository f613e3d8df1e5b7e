// One gRPC connection over a connected, non-blocking socket, as client or as server: HTTP/2 by
// nghttp2, messages framed by the gRPC protocol (github.com/grpc/grpc, doc/PROTOCOL-HTTP2.md).
//
//   GrpcConnection connection(std::move(fd), GrpcConnection::Side::kClient, {.max_message = 1 <<
//   20}); const int32_t id = connection.Request("/v1.PodResourcesLister/List", message, "1S");
//   while (!connection.Find(id)->ended) { Flush(), poll, Read() }
//
// The caller polls: readable -> Read(); Flush() after anything that may have queued bytes; poll for
// writable while WantsWrite(). No compression. Not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "base/unix_socket.h"

struct nghttp2_session;

namespace nos::kubelet {

// The gRPC status codes that nos sends (all: github.com/grpc/grpc, doc/statuscodes.md).
enum class GrpcCode { kOk = 0, kInvalidArgument = 3, kFailedPrecondition = 9, kUnimplemented = 12 };

struct GrpcStream {
  std::string method;    // "/v1beta1.DevicePlugin/Allocate" (server side)
  std::string received;  // framed messages not yet taken
  bool ended = false;    // the peer sends no more, or the stream is broken
  bool too_big = false;  // aborted because of max_message
  int http_status = 0;   // 0: no answer
  std::optional<int> grpc_status;
  std::string grpc_message;

  std::string outgoing;  // framed messages not yet sent
  size_t sent = 0;       // bytes of `outgoing` already sent
  // Next step after everything was sent: wait for more, or close.
  enum class Then { kWait, kEndRequest, kEndAnswer } then = Then::kWait;
  uint64_t marker = 0;  // the peer acknowledges it after reading all data; 0: none
};

struct GrpcLimits {
  size_t max_message = 4 << 20;  // bytes
  uint32_t max_streams = 16;     // open at a time, opened by the peer
};

class GrpcConnection {
 public:
  enum class Side { kClient, kServer };
  GrpcConnection(UniqueFd socket, Side side, GrpcLimits limits);
  ~GrpcConnection();

  int fd() const { return socket_.get(); }
  // Error: kUnavailable (the peer has closed, or does not speak HTTP/2); the connection is useless
  // then.
  Status Read();
  Status Flush();
  bool WantsWrite() const { return !out_.empty(); }

  // Client. `timeout` in the protocol's syntax: "250m" is 250 milliseconds. Returns the stream.
  int32_t Request(const std::string& method, std::string_view message, const std::string& timeout);
  // Server. Begins an answer that stays open for Send().
  void BeginAnswer(int32_t stream);
  // Queues a message. With a marker (each greater than the last), acknowledged() reaches it after
  // the peer's HTTP/2 layer has read the message.
  void Send(int32_t stream, std::string_view message, uint64_t marker = 0);
  // Ends an answer that BeginAnswer began, or sends only this error status.
  void EndAnswer(int32_t stream);
  void Refuse(int32_t stream, GrpcCode code, std::string_view why);

  // Null if closed. A client's stream stays until the connection is destroyed.
  GrpcStream* Find(int32_t stream);
  const std::map<int32_t, GrpcStream>& streams() const { return streams_; }
  uint64_t acknowledged() const { return acknowledged_; }
  // Server side: called when a request has arrived completely.
  std::function<void(int32_t stream)> on_request;

 private:
  struct Callbacks;
  UniqueFd socket_;
  Side side_;
  GrpcLimits limits_;
  std::map<int32_t, GrpcStream> streams_;
  std::string out_;
  uint64_t marker_ = 0, acknowledged_ = 0;  // the last one sent, the last one acknowledged
  std::unique_ptr<nghttp2_session, void (*)(nghttp2_session*)> session_;
};

// Takes the first complete message out of framed bytes; empty if it has not arrived yet. Error:
// kInvalid (compressed, or longer than `max_message`).
Result<std::optional<std::string>> TakeMessage(std::string& framed, size_t max_message);

// The only message of a finished call. Error: kInvalid.
Result<std::string> OnlyMessage(std::string framed, size_t max_message);

}  // namespace nos::kubelet
