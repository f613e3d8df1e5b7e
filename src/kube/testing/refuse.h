// Failing requests of a FakeApi.
#pragma once

#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "kube/testing/fake_api.h"

namespace nos::kube {

// An answer with this HTTP status.
inline ApiResponse HttpStatus(int code, std::string_view message = "no") {
  return {code, {{"kind", "Status"}, {"code", code}, {"message", message}}, {}, {}};
}

// From now on requests with this method ("": any) whose path contains `path` get this answer and
// have no effect; only the first `times` of them. Returns their number, which keeps counting.
// Replaces api.intercept; without it requests succeed again.
inline std::shared_ptr<const int> Refuse(FakeApi& api, std::string method, std::string path,
                                         Result<ApiResponse> answer,
                                         int times = std::numeric_limits<int>::max()) {
  auto refused = std::make_shared<int>(0);
  api.intercept = [=](const ApiRequest& request) -> std::optional<Result<ApiResponse>> {
    const bool matches = (method.empty() || request.method == method) &&
                         request.path.find(path) != std::string::npos;
    if (!matches || *refused >= times) return std::nullopt;
    ++*refused;
    return answer;
  };
  return refused;
}

}  // namespace nos::kube
