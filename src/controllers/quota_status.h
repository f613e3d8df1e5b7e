// What is told of a quota in its status, from what is counted.
//
// Pure functions of values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "cluster/elastic_quota.h"
#include "codec/json.h"
#include "quota/ledger.h"

namespace nos::controllers {

// The condition that says whether the quota counts as it is written: True; False, with the reason
// PartlyInForce, NotInForce or Unreadable, and why.
inline constexpr const char* kInForceCondition = "InForce";

// What the account is guaranteed now: min, and its share of what is idle, as far as its limits let
// it have that.
quota::Amount GuaranteedOf(const quota::Balance& balance, size_t account,
                           cluster::ResourceId resource);

// `problems`: what of it is not in force (quota_rules.h). `known`: what is there now, for the times
// of its conditions.
cluster::QuotaStatus StatusOf(quota::Ledger& ledger, size_t account,
                              const std::vector<std::string>& problems,
                              const cluster::QuotaStatus& known, Time now);

// Of one that cannot be read.
cluster::QuotaStatus UnreadableStatus(const std::string& why, const cluster::QuotaStatus& known,
                                      Time now);

// The merge patch that makes the one of the other; null: they say the same.
Json StatusPatch(const cluster::QuotaStatus& known, const cluster::QuotaStatus& wanted);

// Whether such a patch tells no more than what is idle elsewhere, and who has it.
bool TellsSharesOnly(const Json& patch);

// "16Gi" of memory, "16" of anything else.
std::string TextOf(std::string_view resource, const Quantity& amount);
// "3 of nvidia.com/gpu, 2 of cpu"
std::string TextOf(const cluster::ResourceList& amounts);

}  // namespace nos::controllers
