// One gRPC connection over a connected, non-blocking socket, as client or as server: HTTP/2 by
// nghttp2, messages framed as the gRPC protocol says (github.com/grpc/grpc, doc/PROTOCOL-HTTP2.md).
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
#include "kubelet/unix_socket.h"

struct nghttp2_session;

namespace nos::kubelet {

// Of the gRPC status codes (github.com/grpc/grpc, doc/statuscodes.md) those that nos sends.
enum class GrpcCode { kOk = 0, kInvalidArgument = 3, kFailedPrecondition = 9, kUnimplemented = 12 };

struct GrpcStream {
  std::string method;    // "/v1beta1.DevicePlugin/Allocate" (server side)
  std::string received;  // framed messages not taken yet
  bool ended = false;    // the peer sends no more, or the stream is broken
  bool too_big = false;  // broken off because of max_message
  int http_status = 0;   // 0: no answer came
  std::optional<int> grpc_status;
  std::string grpc_message;

  std::string outgoing;  // framed messages not sent yet
  size_t sent = 0;       // of `outgoing`
  // How to go on when everything is sent: wait for more, or close.
  enum class Then { kWait, kEndRequest, kEndAnswer } then = Then::kWait;
  uint64_t marker = 0;  // to be acknowledged by the peer once all is sent; 0: none
};

struct GrpcLimits {
  size_t max_message = 4 << 20;  // bytes
  uint32_t max_streams = 16;     // opened by the peer, at a time
};

class GrpcConnection {
 public:
  enum class Side { kClient, kServer };
  GrpcConnection(UniqueFd socket, Side side, GrpcLimits limits);
  ~GrpcConnection();

  int fd() const { return socket_.get(); }
  // Error: kUnavailable (the peer has closed, or does not speak HTTP/2); of no more use then.
  Status Read();
  Status Flush();
  bool WantsWrite() const { return !out_.empty(); }

  // Client. `timeout` as the protocol writes it: "250m" is 250 milliseconds. Returns the stream.
  int32_t Request(const std::string& method, std::string_view message, const std::string& timeout);
  // Server. Begins an answer that stays open for Send().
  void BeginAnswer(int32_t stream);
  // Queues a message. With a marker (each greater than the last), acknowledged() reaches it once
  // the peer's HTTP/2 layer has read the message.
  void Send(int32_t stream, std::string_view message, uint64_t marker = 0);
  // Ends an answer that BeginAnswer began, or answers with nothing but this status.
  void EndAnswer(int32_t stream);
  void Refuse(int32_t stream, GrpcCode code, std::string_view why);

  // Null when closed. A client's stream stays until the connection goes.
  GrpcStream* Find(int32_t stream);
  const std::map<int32_t, GrpcStream>& streams() const { return streams_; }
  uint64_t acknowledged() const { return acknowledged_; }
  // Server side: a request has come in whole.
  std::function<void(int32_t stream)> on_request;

 private:
  struct Callbacks;
  UniqueFd socket_;
  Side side_;
  GrpcLimits limits_;
  std::map<int32_t, GrpcStream> streams_;
  std::string out_;
  uint64_t marker_ = 0, acknowledged_ = 0;  // the last one sent, and that came back
  std::unique_ptr<nghttp2_session, void (*)(nghttp2_session*)> session_;
};

// Takes the first whole message out of framed bytes, or nothing if it is not there yet. Error:
// kInvalid (compressed, or longer than `max_message`).
Result<std::optional<std::string>> TakeMessage(std::string& framed, size_t max_message);

// The one message of a finished call. Error: kInvalid.
Result<std::string> OnlyMessage(std::string framed, size_t max_message);

}  // namespace nos::kubelet
