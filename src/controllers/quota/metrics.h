// Metrics of quotas (docs/metrics.md).
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
    "Amounts of each quota by resource: min, max, used, guaranteed, borrowed and lent."};
inline constexpr MetricFamily kQuotaOwed{MetricFamily::Kind::kGauge, "nos_quota_owed_pods",
                                         "Number of pending pods that min of their quota covers."};

// `pods`: all pods of the cluster.
void ShowQuotas(const quota::Balance& balance,
                const std::vector<std::shared_ptr<const cluster::Pod>>& pods,
                const quota::ChargeRules& rules, Metrics& metrics);
// Removes the metrics, because this replica no longer leads.
void HideQuotas(Metrics& metrics);

}  // namespace nos::controllers
