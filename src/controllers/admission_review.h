// Questions of API servers to webhooks, and answers to them: AdmissionReview, admission.k8s.io/v1.
//
//   NOS_ASSIGN(const AdmissionQuestion question, ReadAdmissionReview(body));
//   AdmissionVerdict verdict{.refusal = "min: must not be negative"};
//   const std::string text = WriteAdmissionReview(question, verdict);
//
// What is read may come from anybody: no tree is made of it, which would be many times as large.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "codec/json.h"

namespace nos::controllers {

struct AdmissionQuestion {
  std::string uid, kind, operation, ns;
  std::string object;      // as JSON; empty: it is deleted
  std::string old_object;  // empty: it is new
  bool dry_run = false;
};

struct AdmissionVerdict {
  std::string refusal{};  // empty: it is allowed
  std::vector<std::string> warnings{};
  JsonArray patch{};  // RFC 6902, of what is allowed; empty: as it is
};

// What a webhook says to a request.
struct AdmissionAnswer {
  int code = 200;    // of HTTP; 400: what was sent is no review, 503: too little is known yet
  std::string body;  // an AdmissionReview as JSON; of an error, text
  bool allowed = false;
};

// Error: kInvalid: it is none.
Result<AdmissionQuestion> ReadAdmissionReview(std::string_view body);
AdmissionAnswer AnswerTo(const AdmissionQuestion& question, const AdmissionVerdict& verdict);

}  // namespace nos::controllers
