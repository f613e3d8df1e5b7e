// A container runtime that serves its status, for tests.
#pragma once

#include <string>

#include "kubelet/grpc_server.h"

namespace nos::kubelet {

class FakeRuntime {
 public:
  // Serves on a socket at `path`, whose folder it creates; answers with `code` and the
  // configuration. Again for the same path: it answers so from now on.
  Status Serve(const std::string& path, const std::string& config, GrpcCode code = GrpcCode::kOk);

 private:
  GrpcServer server_{{}, [] {}};
};

}  // namespace nos::kubelet
