// gRPC from a hostile peer: no input breaks either side of a connection, nor the parser of a
// kubelet's answers. The first byte chooses the target.
#include <sys/socket.h>

#include <array>
#include <string>

#include "kubelet/grpc_connection.h"
#include "target.h"

using namespace nos::kubelet;  // NOLINT

namespace {

constexpr size_t kMaxMessage = 1000;

void Feed(GrpcConnection::Side side, std::string_view bytes) {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()) != 0) return;
  const nos::UniqueFd peer(ends[1]);
  GrpcConnection connection(nos::UniqueFd(ends[0]), side,
                            {.max_message = kMaxMessage, .max_streams = 4});
  connection.on_request = [&](int32_t stream) {
    if (connection.Find(stream)->received.size() % 2 == 0) {
      return connection.Refuse(stream, GrpcCode::kInvalidArgument, "odd");
    }
    connection.BeginAnswer(stream);
    connection.Send(stream, "answer", 1);
    connection.EndAnswer(stream);
  };
  if (side == GrpcConnection::Side::kClient) connection.Request("/x/Method", "request", "1S");
  if (!connection.Flush().ok()) return;
  send(peer.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  (void)connection.Read();
  for (const auto& [id, stream] : connection.streams()) {
    nos::Require(stream.received.size() <= kMaxMessage + 5, "messages are bounded");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes = nos::FuzzText(data + 1, size - 1);
  if (data[0] % 3 == 0) Feed(GrpcConnection::Side::kClient, bytes);
  if (data[0] % 3 == 1) Feed(GrpcConnection::Side::kServer, bytes);
  if (data[0] % 3 == 2) {
    std::string framed(bytes);
    for (;;) {
      const auto message = TakeMessage(framed, kMaxMessage);
      if (!message.ok()) break;
      const std::optional<std::string>& taken = *message;
      if (!taken) break;
      nos::Require(taken->size() <= kMaxMessage, "messages are bounded");
    }
  }
  return 0;
}
