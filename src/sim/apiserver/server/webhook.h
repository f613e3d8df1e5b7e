// A mutating admission webhook that the server asks about pods that are to be made, in process: as
// the real server asks one over HTTPS, with an AdmissionReview (admission.k8s.io/v1), and refuses
// the pod when there is no answer (failurePolicy: Fail).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/function_ref.h"
#include "sim/apiserver/objects/api_path.h"
#include "sim/apiserver/objects/reply.h"

namespace nos::sim {

struct PodWebhook {
  std::string name;                              // as refusals call it
  std::function<bool(const Json& pod)> matches;  // matchConditions: others are not sent
  // The answer to a review, as HTTP code and body. Called from any thread, without the server's
  // mutex: it may ask the server.
  std::function<std::pair<int, std::string>(const std::string& review)> ask;
};

// Whom the server asks, if anybody. Thread-safe.
class PodAdmission {
 public:
  // Without `matches`, nobody from now on.
  void Set(PodWebhook webhook);

  struct Outcome {
    Check refusal{};  // the webhook's own; 500 without an answer that can be read
    std::optional<kube::ApiRequest> changed{};  // what to do instead
    std::vector<std::string> warnings{};
  };
  // `there`: whether there is the pod already, which server-side apply then does not make.
  Outcome Admit(const ApiPath& path, const kube::ApiRequest& request, FunctionRef<bool()> there);

 private:
  std::mutex mutex_;  // guards the rest
  std::shared_ptr<const PodWebhook> webhook_;
  uint64_t asked_ = 0;  // questions
};

}  // namespace nos::sim
