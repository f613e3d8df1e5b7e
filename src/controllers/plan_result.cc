#include "controllers/plan_result.h"

#include <fmt/core.h>

#include <utility>

#include "base/text.h"
#include "codec/json.h"

namespace nos::controllers {

std::string Describe(const std::vector<device::Obstacle>& obstacles) {
  std::vector<std::string> parts;
  parts.reserve(obstacles.size());
  for (const device::Obstacle& obstacle : obstacles) {
    parts.push_back(fmt::format("GPU {}: {}", obstacle.gpu, obstacle.message));
  }
  return Join(parts, "; ");
}

std::string WritePlanResult(const PlanResult& result) {
  JsonArray obstacles;
  for (const device::Obstacle& obstacle : result.obstacles) {
    obstacles.push_back({{"gpu", obstacle.gpu},
                         {"placement", obstacle.placement},
                         {"code", obstacle.code},
                         {"message", obstacle.message}});
  }
  JsonObject json = {{"plan", result.plan}, {"outcome", result.applied ? "applied" : "partial"}};
  if (!obstacles.empty()) json["obstacles"] = std::move(obstacles);
  return WriteJson(json);
}

Result<PlanResult> ReadPlanResult(std::string_view text) {
  NOS_ASSIGN(const Json json, ParseJson(text));
  if (!json.is_object()) return Invalid("the plan result is not an object");
  PlanResult result;
  result.plan = FindString(json, "plan");
  result.applied = FindString(json, "outcome") == "applied";
  const Json* obstacles = Find(json, "obstacles");
  if (obstacles == nullptr || !obstacles->is_array()) return result;
  for (const Json& item : obstacles->get_array()) {
    device::Obstacle obstacle;
    const Json* gpu = Find(item, "gpu");
    if (gpu == nullptr || !gpu->is_int64()) return Invalid("obstacles[].gpu is not an integer");
    obstacle.gpu = static_cast<int>(gpu->get_int64());
    obstacle.placement = FindString(item, "placement");
    obstacle.code = FindString(item, "code");
    obstacle.message = FindString(item, "message");
    result.obstacles.push_back(std::move(obstacle));
  }
  return result;
}

}  // namespace nos::controllers
