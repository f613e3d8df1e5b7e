// What `nos plan` says beyond the plan: which new nodes would serve pods that have no place, and
// which pods would have to move for them. As JSON and as text for people.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "codec/json.h"
#include "planning/growth.h"
#include "planning/moves.h"

namespace nos::cmd {

// Pods that the plan has no place for, in a cluster that holds all whom it places.
struct Unplaced {
  cluster::ClusterSnapshot snapshot;
  std::vector<std::shared_ptr<const cluster::Pod>> pods;
  std::vector<planning::Gang> gangs;  // of `pods`: that lack some still
};
Unplaced UnplacedOf(const planning::Plan& plan, const std::vector<planning::Gang>& gangs,
                    cluster::ClusterSnapshot snapshot);
// Those whom moves do not help, where all moves are made.
Unplaced Unrelieved(const Unplaced& unplaced, const planning::MovePlan& moves);

Json GrowthToJson(const planning::GrowthPlan& plan, const std::vector<planning::PoolNow>& pools,
                  const Unplaced& unplaced);
// Rows of tables are at most `width` characters long.
std::string GrowthToText(const planning::GrowthPlan& plan,
                         const std::vector<planning::PoolNow>& pools, const Unplaced& unplaced,
                         size_t width);

Json MovesToJson(const planning::MovePlan& plan, const Unplaced& unplaced);
std::string MovesToText(const planning::MovePlan& plan, const Unplaced& unplaced, size_t width);

}  // namespace nos::cmd
