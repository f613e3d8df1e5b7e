// A plan as JSON (the documented shape of `nos plan -o json`) and as text.
#pragma once

#include <string>

#include "base/clock.h"
#include "cluster/snapshot.h"
#include "codec/json.h"
#include "planning/plan.h"

namespace nos::cmd {

Json PlanToJson(const planning::Plan& plan, planning::Objective objective, Duration took);
// Table rows are at most `width` characters long (TextTable).
std::string PlanToText(const planning::Plan& plan, Duration took, size_t width);

// A note for a cluster none of whose nodes nos partitions, if that is why pods are left pending:
// what to ask instead. "": another reason.
std::string AuditHint(const planning::Plan& plan, const cluster::ClusterSnapshot& snapshot);

}  // namespace nos::cmd
