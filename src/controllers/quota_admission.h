// Validates quotas: a webhook, admission.k8s.io/v1. The rules are in quota_rules.h and are checked
// against the cached quotas. Two quotas written at the same time may both pass. The operator then
// reports in their conditions which one is in force.
//
//   QuotaAdmission admission(metrics);
//   admission.SetQuotas(quota::QuotasOf(context));
//   net::HttpResponse response{.code = answer.code, .body = admission.Review(request.body).body};
//
// An update is rejected only for problems that it adds or worsens. Deletions are always allowed.
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
  // All quotas of the cluster.
  void SetQuotas(std::vector<quota::SharedQuota> quotas);
  // OK once the quotas are known.
  Status Ready() const;
  // `body` is untrusted input.
  AdmissionAnswer Review(std::string_view body) const;

 private:
  using Quotas = std::shared_ptr<const std::vector<quota::SharedQuota>>;
  Quotas Known() const;

  mutable std::mutex mutex_;
  Quotas quotas_;
};

}  // namespace nos::controllers
