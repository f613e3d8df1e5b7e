// The result of a node's plan. The agent writes it into one annotation (cluster::kPlanResult) and
// the partitioner reads it. JSON:
//
//   {"plan":"8","outcome":"partial","obstacles":[
//     {"gpu":0,"placement":"3g.20gb@4","code":"InUse","message":"1g.5gb@5 is in use by ml/a"}]}
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "gpu/obstacle.h"

namespace nos::reconcile {

struct PlanResult {
  std::string plan;
  bool applied = true;  // false: partial
  std::vector<gpu::Obstacle> obstacles;
};

// Text for people: "GPU 0: 3g.20gb@4 cannot be made: ...; GPU 1: ...".
std::string Describe(const std::vector<gpu::Obstacle>& obstacles);

std::string WritePlanResult(const PlanResult& result);
// Drops or shortens what no agent writes: obstacles of impossible GPU indices, too many obstacles,
// long texts. Error: kInvalid.
Result<PlanResult> ReadPlanResult(std::string_view text);

}  // namespace nos::reconcile
