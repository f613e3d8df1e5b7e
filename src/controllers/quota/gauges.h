// Metrics of quotas (docs/metrics.md).
#pragma once

#include <memory>
#include <vector>

#include "cluster/objects.h"
#include "controllers/metrics.h"
#include "quota/charge.h"
#include "quota/ledger.h"

namespace nos::controllers {

// `pods`: all pods of the cluster.
void ShowQuotas(const quota::Ledger& ledger,
                const std::vector<std::shared_ptr<const cluster::Pod>>& pods,
                const quota::ChargeRules& rules, Metrics& metrics);
// Removes the metrics, because this replica no longer leads.
void HideQuotas(Metrics& metrics);

}  // namespace nos::controllers
