// Where quotas stand, as metrics (docs/metrics.md).
#pragma once

#include <memory>
#include <vector>

#include "base/metrics.h"
#include "cluster/objects.h"
#include "quota/balance.h"
#include "quota/charge.h"

namespace nos::controllers {

inline constexpr MetricFamily kQuotaAmounts{
    MetricFamily::Kind::kGauge, "nos_quota_amount",
    "Of each quota, by resource: its min and max, what is used, guaranteed, borrowed and lent."};
inline constexpr MetricFamily kQuotaOwed{MetricFamily::Kind::kGauge, "nos_quota_owed_pods",
                                         "Pods that wait although min of their quota covers them."};

// `pods`: all that there are.
void ShowQuotas(const quota::Balance& balance,
                const std::vector<std::shared_ptr<const cluster::Pod>>& pods,
                const quota::ChargeRules& rules, Metrics& metrics);
// This replica does not say any more.
void HideQuotas(Metrics& metrics);

}  // namespace nos::controllers
