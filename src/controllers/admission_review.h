// Reads and writes AdmissionReview requests and responses, admission.k8s.io/v1.
//
//   NOS_ASSIGN(const AdmissionQuestion question, ReadAdmissionReview(body));
//   AdmissionVerdict verdict{.refusal = "min: must not be negative"};
//   const std::string text = AnswerTo(question, verdict);
//
// Input is untrusted: it is not parsed into a tree, which would take many times its size.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "codec/json.h"

namespace nos::controllers {

struct AdmissionQuestion {
  std::string uid, kind, operation, ns;
  std::string object;      // as JSON; empty: the object is deleted
  std::string old_object;  // empty: the object is new
  bool dry_run = false;
};

struct AdmissionVerdict {
  std::string refusal{};  // empty: allowed
  std::vector<std::string> warnings{};
  JsonArray patch{};  // RFC 6902, for allowed requests; empty: no change
};

// The HTTP response of a webhook.
struct AdmissionAnswer {
  int code = 200;    // of HTTP; 400: the body is no review, 503: not ready yet
  std::string body;  // an AdmissionReview as JSON; text for an error
  bool allowed = false;
};

// Error: kInvalid: not an AdmissionReview.
Result<AdmissionQuestion> ReadAdmissionReview(std::string_view body);
AdmissionAnswer AnswerTo(const AdmissionQuestion& question, const AdmissionVerdict& verdict);

}  // namespace nos::controllers
