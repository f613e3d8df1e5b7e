// The observations to which a scenario's expectations are compared: actual or planned instances,
// pods and counts. Internal to this folder.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "planning/plan.h"
#include "sim/scenarios/steps.h"
#include "sim/world.h"

namespace nos::sim {

struct SeenInstance {
  std::string profile;
  int start = 0;
  std::string state;  // used, free or new
  friend auto operator<=>(const SeenInstance&, const SeenInstance&) = default;
};
using SeenLayout = std::vector<SeenInstance>;  // sorted by start
using GpuId = std::pair<std::string, int>;     // node, index

// The actual state: an instance is used if a pod holds it.
std::map<GpuId, SeenLayout> TrueLayouts(const World& world);
// The state after the plan: new instances in place of destroyed ones.
std::map<GpuId, SeenLayout> PlannedLayouts(const World& world, const planning::Plan& plan);

// "3g.20gb@4 used, 1g.5gb@0 free", or "empty".
std::string ToString(const SeenLayout& layout);
std::string ToString(const ExpectedLayout& layout);
// True if expectations and instances can be paired one to one.
bool Matches(const ExpectedLayout& expected, const SeenLayout& seen);

// The state of a pod: "placed on n1 (3g.20gb@4 of GPU 0)", "pending: Code: message".
struct SeenPod {
  std::string outcome, node;
  std::vector<std::string> codes;
  std::string text;
};
SeenPod PlannedPod(const planning::Plan& plan, const std::string& name);
SeenPod ActualPod(World& world, const std::string& name);

// The counter of this name, from the plan or from the world; nullopt if there is no plan yet, or no
// such pool.
std::optional<int> Count(const std::string& what, const std::optional<planning::Plan>& plan,
                         World& world);

}  // namespace nos::sim
