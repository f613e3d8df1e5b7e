// Rules that quotas must satisfy together, so that each can be in force as written:
//   - a namespace has at most one ElasticQuota, or is listed in one CompositeElasticQuota;
//   - a CompositeElasticQuota lists at least one namespace, each once;
//   - max is at least min, and limits name only resources that min names;
//   - parents form no cycle, and guarantee at least the sum of their children's guarantees.
// A part that breaks a rule is not in force: see quota/balance.h.
//
// Pure functions. Requests may name resources that do not exist. These are not interned here
// (cluster/resources.h), because interned names are never freed.
#pragma once

#include <string>
#include <vector>

#include "base/quantity.h"
#include "cluster/elastic_quota.h"
#include "quota/balance.h"

namespace nos::controllers {

struct QuotaProblem {
  std::string rule;  // rule and its subject; equal in an earlier version of the quota
  Quantity excess;   // by how much the rule is broken, if measurable
  std::string text;  // the problem and what to do
};

// At most a hundred of each.
struct QuotaFindings {
  std::vector<QuotaProblem> problems;
  std::vector<std::string> warnings;
};

// `all`: existing quotas; an earlier version of `quota` among them is ignored.
QuotaFindings CheckQuota(const cluster::ElasticQuota& quota,
                         const std::vector<quota::SharedQuota>& all);

// The parts of each quota that are not in force, and what to do, by account: from quota::Terms and
// from the rules for limits and guarantees.
std::vector<std::vector<std::string>> ProblemsInForce(const quota::Balance& balance);

// Problems of `after` that `before` did not have or had to a lesser degree.
std::vector<QuotaProblem> NewProblems(const QuotaFindings& before, QuotaFindings after);

}  // namespace nos::controllers
