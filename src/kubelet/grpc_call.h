// One gRPC call with one request and one answer, over a unix socket: connects, calls, closes.
//
//   Result<std::string> answer = UnaryCall("/var/lib/kubelet/pod-resources/kubelet.sock",
//                                          "/v1.PodResourcesLister/List", request, {});
#pragma once

#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"

namespace nos::kubelet {

struct CallOptions {
  Duration timeout = std::chrono::seconds(5);
  size_t max_answer = 4 << 20;  // bytes
  // If it becomes readable, the call is aborted. -1: none.
  int cancel_fd = -1;
};

// Errors: kUnavailable (no listener, the peer fails or sends an invalid answer), kDeadline,
// kPermission, kExhausted (a limit of the peer, or the answer is longer than max_answer);
// kUnimplemented, kInvalid, kNotFound as reported by the peer. Blocks; callable from any thread.
Result<std::string> UnaryCall(const std::string& socket, const std::string& method,
                              std::string_view request, const CallOptions& options);

}  // namespace nos::kubelet
