// What must hold of quotas together, so that each of them can be in force as it is written:
//   - a namespace has one ElasticQuota at most, or is named by one composite quota;
//   - a composite quota names namespaces, each once;
//   - max is at least min, and limits are set on what min names only;
//   - parents are no circle, and guarantee at least what their children are guaranteed together.
// Sources: nos-behaviour 6.2; quota/balance.h, where what breaks a rule is not in force.
//
// Pure functions of values. Whoever asks may name resources that do not exist: they are not
// interned here (cluster/resources.h), where they would stay.
#pragma once

#include <string>
#include <vector>

#include "base/quantity.h"
#include "cluster/elastic_quota.h"
#include "quota/balance.h"

namespace nos::controllers {

struct QuotaProblem {
  std::string rule;  // with what it is about: the same in a former version of the quota
  Quantity excess;   // how badly it is broken, where that can be told
  std::string text;  // what is wrong, and what to do
};

// A hundred of each at most.
struct QuotaFindings {
  std::vector<QuotaProblem> problems;
  std::vector<std::string> warnings;
};

// `all`: what there is; a former version of the quota among them does not count.
QuotaFindings CheckQuota(const cluster::ElasticQuota& quota,
                         const std::vector<quota::SharedQuota>& all);

// What of each quota is not in force as it is written, and what to do, for people: by account, what
// quota::Terms says, and what breaks the rules of limits and guarantees.
std::vector<std::vector<std::string>> ProblemsInForce(const quota::Balance& balance);

// What is wrong with `after` that was not already, or not as badly, wrong with `before`.
std::vector<QuotaProblem> NewProblems(const QuotaFindings& before, QuotaFindings after);

}  // namespace nos::controllers
