#include "reconcile/plan_result.h"

#include <fmt/core.h>

#include <utility>

#include "base/text.h"
#include "cluster/annotations.h"
#include "codec/json.h"

namespace nos::reconcile {
namespace {

// Eight per GPU: no GPU has more instances.
constexpr size_t kMaxObstacles = size_t{8} * cluster::kMaxGpusPerNode;
constexpr size_t kMaxText = 500;  // bytes

}  // namespace

std::string Describe(const std::vector<gpu::Obstacle>& obstacles) {
  std::vector<std::string> parts;
  parts.reserve(obstacles.size());
  for (const gpu::Obstacle& obstacle : obstacles) {
    parts.push_back(fmt::format("GPU {}: {}", obstacle.gpu, obstacle.message));
  }
  return Join(parts, "; ");
}

std::string WritePlanResult(const PlanResult& result) {
  JsonArray obstacles;
  for (const gpu::Obstacle& obstacle : result.obstacles) {
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
    const Json* gpu = Find(item, "gpu");
    if (gpu == nullptr || !gpu->is_int64()) return Invalid("obstacles[].gpu is not an integer");
    const int64_t index = gpu->get_int64();
    if (index < 0 || index >= cluster::kMaxGpusPerNode) continue;
    if (result.obstacles.size() == kMaxObstacles) break;
    const auto find = [&](const char* key) { return Shortened(FindString(item, key), kMaxText); };
    result.obstacles.push_back(
        {static_cast<int>(index), find("placement"), find("code"), find("message")});
  }
  return result;
}

}  // namespace nos::reconcile
