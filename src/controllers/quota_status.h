// What is told of a quota in its status, from what is counted.
//
// Pure functions of values.
#pragma once

#include <string>
#include <string_view>

#include "base/clock.h"
#include "cluster/elastic_quota.h"
#include "codec/json.h"
#include "quota/ledger.h"

namespace nos::controllers {

// The condition that says whether the quota counts as it is written: True; False, with the reason
// PartlyInForce or NotInForce, and why.
inline constexpr const char* kInForceCondition = "InForce";

// `known`: what is there now, for the times of its conditions.
cluster::QuotaStatus StatusOf(quota::Ledger& ledger, size_t account,
                              const cluster::QuotaStatus& known, Time now);

// The merge patch that makes the one of the other; null: they say the same.
Json StatusPatch(const cluster::QuotaStatus& known, const cluster::QuotaStatus& wanted);

// "16Gi" of memory, "16" of anything else.
std::string TextOf(std::string_view resource, const Quantity& amount);
// "3 of nvidia.com/gpu, 2 of cpu"
std::string TextOf(const cluster::ResourceList& amounts);

}  // namespace nos::controllers
