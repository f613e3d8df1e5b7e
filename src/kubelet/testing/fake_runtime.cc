#include "kubelet/testing/fake_runtime.h"

#include <cri.pb.h>

#include <filesystem>

namespace nos::kubelet {

Status FakeRuntime::Serve(const std::string& path, const std::string& config, GrpcCode code) {
  std::error_code ignored;  // Serve fails without the folder
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
  runtime::v1::StatusResponse status;
  if (!config.empty()) (*status.mutable_info())["config"] = config;
  const GrpcAnswer answer{code, status.SerializeAsString()};
  const auto call = [answer](std::string_view method, const std::string& request) {
    runtime::v1::StatusRequest asked;
    const bool verbose = asked.ParseFromString(request) && asked.verbose();
    if (method != "/runtime.v1.RuntimeService/Status" || !verbose) {
      return GrpcAnswer{GrpcCode::kUnimplemented, "this double serves the verbose status only"};
    }
    return answer;
  };
  return server_.Serve(path, {call, {}});
}

}  // namespace nos::kubelet
