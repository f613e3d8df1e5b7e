// Output of `nos get quotas`: guaranteed amounts, use, borrowing and lending with their partners,
// and the pods that would be evicted first. Pure functions.
#pragma once

#include "cmd/query/get_report.h"
#include "quota/ledger.h"

namespace nos::cmd {

// Pods are charged for their requests and for the devices that are allocated to their claims.
quota::Ledger LedgerIn(const LiveCluster& live);

// One row for each resource in a quota's min or max; in JSON one object per quota.
Printout ReportQuotas(const LiveCluster& live, Time now);

}  // namespace nos::cmd
