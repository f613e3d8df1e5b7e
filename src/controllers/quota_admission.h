// Answers an API server about quotas that are to be written: a validating webhook,
// admission.k8s.io/v1. The rules are those of quota_rules.h, held against the quotas that the
// caches show; two that are written at once may both pass, and then the operator says in their
// conditions which is in force.
//
//   QuotaAdmission admission(metrics);
//   admission.SetQuotas(quota::QuotasOf(around));
//   net::HttpResponse response{.code = answer.code, .body = admission.Review(request.body).body};
//
// An update is refused for what it makes worse, not for what was wrong before; deletions pass.
// Thread-safe.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "controllers/admission_review.h"
#include "quota/balance.h"

namespace nos::controllers {

class QuotaAdmission {
 public:
  // All that there are.
  void SetQuotas(std::vector<quota::SharedQuota> quotas);
  // OK once it knows the quotas.
  Status Ready() const;
  // `body` is whatever a client has sent.
  AdmissionAnswer Review(std::string_view body) const;

 private:
  using Quotas = std::shared_ptr<const std::vector<quota::SharedQuota>>;
  Quotas Known() const;

  mutable std::mutex mutex_;
  Quotas quotas_;
};

}  // namespace nos::controllers
