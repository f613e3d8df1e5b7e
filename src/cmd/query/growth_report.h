// Further parts of the report of `nos plan`: new nodes that would serve pods without a place, and
// moves of running pods that would. The output is JSON or text.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "codec/json.h"
#include "controllers/plan_within_quotas.h"
#include "planning/growth.h"
#include "planning/moves.h"

namespace nos::cmd {

// Pods that the plan does not place. The snapshot contains the pods that it places.
struct Unplaced {
  cluster::ClusterSnapshot snapshot;
  std::vector<std::shared_ptr<const cluster::Pod>> pods;
  std::vector<planning::Gang> gangs;  // of `pods`: gangs that still lack members
  // Pods beside `pods` that their quotas refuse: neither moves nor new nodes would serve them.
  std::vector<planning::PodOutcome> refused = {};
};
Unplaced UnplacedOf(const controllers::AdmittedPlan& admitted, cluster::ClusterSnapshot snapshot);
// Pods that remain without a place after all moves.
Unplaced StillUnplaced(const Unplaced& unplaced, const planning::MovePlan& moves);
// The same without the pods of these keys.
Unplaced Without(const std::set<std::string>& keys, Unplaced unplaced);

Json GrowthToJson(const planning::GrowthPlan& plan,
                  const std::vector<planning::NodePoolState>& pools, const Unplaced& unplaced);
// Table rows are at most `width` characters long.
std::string GrowthToText(const planning::GrowthPlan& plan,
                         const std::vector<planning::NodePoolState>& pools,
                         const Unplaced& unplaced, size_t width);

Json MovesToJson(const planning::MovePlan& plan, const Unplaced& unplaced);
std::string MovesToText(const planning::MovePlan& plan, const Unplaced& unplaced, size_t width);

}  // namespace nos::cmd
