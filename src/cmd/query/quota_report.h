// What `nos get quotas` prints: who is guaranteed what, uses it, borrows it from whom and lends it
// to whom, and who would have to go first. Pure.
#pragma once

#include "cmd/query/get_report.h"

namespace nos::cmd {

// A row for each resource that a quota names in min or max; in JSON an object for each quota.
Printout ReportQuotas(const LiveCluster& live, Time now);

}  // namespace nos::cmd
