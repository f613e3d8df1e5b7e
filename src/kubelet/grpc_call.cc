#include "kubelet/grpc_call.h"

#include <fmt/core.h>
#include <poll.h>

#include <algorithm>
#include <array>

#include "kubelet/grpc_connection.h"

namespace nos::kubelet {
namespace {

using SteadyTime = std::chrono::steady_clock::time_point;

// Source: github.com/grpc/grpc, doc/statuscodes.md. Go programs return 2 (unknown) for every plain
// error; it carries no information, so it counts as transient.
Code FromGrpc(int code) {
  switch (code) {
    case 3:
      return Code::kInvalid;
    case 4:
      return Code::kDeadline;
    case 5:
      return Code::kNotFound;
    case 7:
    case 16:
      return Code::kPermission;
    case 8:
      return Code::kExhausted;
    case 12:
      return Code::kUnimplemented;
    default:
      return Code::kUnavailable;
  }
}

Result<std::string> AnswerOf(const GrpcStream& stream, size_t max_answer) {
  if (stream.too_big) {
    return Status(Code::kExhausted, fmt::format("the answer is longer than {} bytes", max_answer));
  }
  if (stream.http_status == 0) return Status(Code::kUnavailable, "the peer broke the call off");
  if (stream.http_status != 200 || !stream.grpc_status) {
    return Status(Code::kUnavailable,
                  fmt::format("no gRPC answer (HTTP status {})", stream.http_status));
  }
  if (*stream.grpc_status != 0) {
    return Status(FromGrpc(*stream.grpc_status),
                  fmt::format("{} (gRPC status {})", stream.grpc_message, *stream.grpc_status));
  }
  Result<std::string> message = OnlyMessage(stream.received, max_answer);
  if (!message.ok()) return Status(Code::kUnavailable, message.status().message());
  return message;
}

// Waits until the socket is readable or writable.
Status Await(const GrpcConnection& connection, const CallOptions& options, SteadyTime deadline) {
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  std::array<pollfd, 2> fds{
      {{connection.fd(), static_cast<short>(connection.WantsWrite() ? POLLIN | POLLOUT : POLLIN),
        0},
       {options.cancel_fd, POLLIN, 0}}};
  if (left.count() <= 0) {
    return {Code::kDeadline, fmt::format("no answer within {} s", ToSeconds(options.timeout))};
  }
  poll(fds.data(), fds.size(), static_cast<int>(std::min<int64_t>(left.count(), 60'000)));
  if (fds[1].revents != 0) return {Code::kUnavailable, "given up: shutting down"};
  return Status::Ok();
}

Result<std::string> Call(const std::string& socket, const std::string& method,
                         std::string_view request, const CallOptions& options) {
  const SteadyTime deadline = std::chrono::steady_clock::now() + options.timeout;
  NOS_ASSIGN(UniqueFd fd, ConnectUnix(socket));
  GrpcConnection connection(std::move(fd), GrpcConnection::Side::kClient,
                            {.max_message = options.max_answer});
  const auto timeout = std::chrono::ceil<std::chrono::milliseconds>(options.timeout).count();
  const int32_t stream = connection.Request(
      method, request, fmt::format("{}m", std::clamp<int64_t>(timeout, 1, 99'999'999)));
  NOS_RETURN_IF_ERROR(connection.Flush());
  while (!connection.Find(stream)->ended) {
    NOS_RETURN_IF_ERROR(Await(connection, options, deadline));
    const Status read = connection.Read();
    if (!read.ok() && !connection.Find(stream)->ended) return read;
  }
  return AnswerOf(*connection.Find(stream), options.max_answer);
}

}  // namespace

Result<std::string> UnaryCall(const std::string& socket, const std::string& method,
                              std::string_view request, const CallOptions& options) {
  Result<std::string> answer = Call(socket, method, request, options);
  if (!answer.ok()) return answer.status().Within(fmt::format("{} on {}", method, socket));
  return answer;
}

}  // namespace nos::kubelet
