// Output of `nos get quotas`: guaranteed amounts, use, borrowing and lending with their partners,
// and the pods that would be evicted first. Pure functions.
#pragma once

#include "cmd/query/get_report.h"

namespace nos::cmd {

// One row for each resource in a quota's min or max; in JSON one object per quota.
Printout ReportQuotas(const LiveCluster& live, Time now);

}  // namespace nos::cmd
