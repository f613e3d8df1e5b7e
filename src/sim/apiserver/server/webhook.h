// A mutating admission webhook for new pods, called in process. Like the real server's HTTPS call
// it sends an AdmissionReview (admission.k8s.io/v1) and refuses the pod if there is no answer
// (failurePolicy: Fail).
//
//   PodAdmission admission;
//   admission.Set({"slices", matches, ask});
//   const auto outcome = admission.Admit(path, request, there);   // changed request, or a refusal
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
  std::string name;                              // as in refusals
  std::function<bool(const Json& pod)> matches;  // matchConditions: other pods are not sent
  // The answer to a review, as HTTP code and body. Called from any thread, without the server's
  // mutex, so it may call the server.
  std::function<std::pair<int, std::string>(const std::string& review)> ask;
};

// Holds the current webhook, if any. Thread-safe.
class PodAdmission {
 public:
  // A webhook without `matches` disables admission calls.
  void Set(PodWebhook webhook);

  struct Outcome {
    Check refusal{};  // the webhook's own refusal; 500 for an unreadable answer
    std::optional<kube::ApiRequest> changed{};  // the request to execute instead
    std::vector<std::string> warnings{};
  };
  // `there`: true if the pod exists; server-side apply then does not create it.
  Outcome Admit(const ApiPath& path, const kube::ApiRequest& request, FunctionRef<bool()> there);

 private:
  std::mutex mutex_;  // guards the rest
  std::shared_ptr<const PodWebhook> webhook_;
  uint64_t asked_ = 0;  // number of reviews
};

}  // namespace nos::sim
