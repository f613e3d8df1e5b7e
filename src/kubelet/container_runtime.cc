#include "kubelet/container_runtime.h"

#include <cri.pb.h>

#include "kubelet/grpc_call.h"

namespace nos::kubelet {

Result<std::string> ReadRuntimeConfig(const std::string& socket) {
  runtime::v1::StatusRequest request;
  request.set_verbose(true);
  NOS_ASSIGN(const std::string bytes, UnaryCall(socket, "/runtime.v1.RuntimeService/Status",
                                                request.SerializeAsString(), {}));
  runtime::v1::StatusResponse answer;
  if (!answer.ParseFromString(bytes)) {
    return Status(Code::kUnavailable, "the container runtime's answer is not readable");
  }
  const auto config = answer.info().find("config");
  return config == answer.info().end() ? std::string() : config->second;
}

}  // namespace nos::kubelet
