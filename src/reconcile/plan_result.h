// What became of a node's plan, as the agent writes it into one annotation (cluster::kPlanResult)
// and the partitioner reads it. JSON:
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

// For people: "GPU 0: 3g.20gb@4 cannot be made: ...; GPU 1: ...".
std::string Describe(const std::vector<gpu::Obstacle>& obstacles);

std::string WritePlanResult(const PlanResult& result);
// What no agent tells is left out: obstacles of GPUs that no node can have, more than a few for
// each GPU, long texts. Error: kInvalid.
Result<PlanResult> ReadPlanResult(std::string_view text);

}  // namespace nos::reconcile
