// Computes the status of quotas.
//
// Pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "cluster/elastic_quota.h"
#include "codec/json.h"
#include "quota/ledger.h"

namespace nos::controllers {

// The condition that says whether the quota is in force as written: True, or False with the reason
// PartlyInForce, NotInForce or Unreadable and a message.
inline constexpr const char* kInForceCondition = "InForce";

// The amount guaranteed to the account now: min plus its share of idle amounts, within its limits.
quota::Amount GuaranteedOf(const quota::Balance& balance, size_t account,
                           cluster::ResourceId resource);

// `problems`: the parts that are not in force (quota_rules.h). `known`: the current status, which
// gives the transition times of conditions.
cluster::QuotaStatus StatusOf(quota::Ledger& ledger, size_t account,
                              const std::vector<std::string>& problems,
                              const cluster::QuotaStatus& known, Time now);

// For a quota that cannot be read.
cluster::QuotaStatus UnreadableStatus(const std::string& why, const cluster::QuotaStatus& known,
                                      Time now);

// The merge patch from `known` to `wanted`. Null: they are equal.
Json StatusPatch(const cluster::QuotaStatus& known, const cluster::QuotaStatus& wanted);

// True if the patch changes only shares of idle amounts, of this quota and of borrowers.
bool ChangesSharesOnly(const Json& patch);

// "16Gi" for memory, "16" for other resources.
std::string TextOf(std::string_view resource, const Quantity& amount);
// "3 of nvidia.com/gpu, 2 of cpu"
std::string TextOf(const cluster::ResourceList& amounts);

}  // namespace nos::controllers
