#include "kube/metered_transport.h"

#include <string>

namespace nos::kube {
namespace {

std::string CodeOf(const Result<ApiResponse>& answer) {
  return answer.ok() ? std::to_string(answer->code) : "0";
}

}  // namespace

Result<ApiResponse> MeteredTransport::Do(const ApiRequest& request) {
  const SteadyClock clock;
  const Time begun = clock.Now();
  Result<ApiResponse> answer = transport_.Do(request);
  metrics_.Observe(kApiRequestDuration, {{"verb", request.method}}, clock.Now() - begun);
  metrics_.Count(kApiRequests, {{"verb", request.method}, {"code", CodeOf(answer)}});
  return answer;
}

Result<std::unique_ptr<WatchStream>> MeteredTransport::Watch(const ApiRequest& request) {
  auto stream = transport_.Watch(request);
  metrics_.Count(kApiRequests, {{"verb", "WATCH"}, {"code", stream.ok() ? "200" : "0"}});
  return stream;
}

std::vector<Result<ApiResponse>> MeteredTransport::DoAll(const std::vector<ApiRequest>& requests) {
  const SteadyClock clock;
  const Time begun = clock.Now();
  std::vector<Result<ApiResponse>> answers = transport_.DoAll(requests);
  for (size_t i = 0; i < answers.size(); ++i) {
    metrics_.Observe(kApiRequestDuration, {{"verb", requests[i].method}}, clock.Now() - begun);
    metrics_.Count(kApiRequests, {{"verb", requests[i].method}, {"code", CodeOf(answers[i])}});
  }
  return answers;
}

}  // namespace nos::kube
