// A behaviour written down as text: a cluster, what happens to it, and what must come of it.
// The format is described for its writers in test/scenarios/README.md.
//
//   NOS_ASSIGN(Scenario scenario, ParseScenario(text, "test/scenarios/spans-gpus.scenario"));
//   ScenarioReport report = RunScenario(scenario);
//
// Plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "controllers/autoscaler.h"
#include "planning/planner.h"
#include "sim/world/run/infrastructure.h"
#include "sim/specs.h"

namespace nos::sim {

// Creates pods, `spec.arrival` after the step is reached; `waiting` says since when they have been
// pending already (only before the first run).
struct AddPods {
  std::vector<PodSpec> pods;
  Duration waiting{};
};
// A dry run over what is there now.
struct PlanNow {};
// Lets virtual time pass under the real controllers.
struct RunFor {
  Duration time{};
};
// Something done to the cluster: "cordon n1", "delete pod a", "crash agent n1".
struct Operate {
  enum class Verb {
    kDeletePod,
    kDeleteNode,
    kCordon,
    kUncordon,
    kReboot,
    kCrash,     // target: "partitioner", "scheduler", "autoscaler", "agent NODE"; dead for `time`
    kAnnotate,  // target: node; key and value
    kLabel,     // target: node; key and value
    kFailCreate,
    kFailDestroy,
    kFailReset,  // target: node; `count` device operations fail
    kGroup,      // target: a PodGroup; `count` of its pods are placed together
    kFailPool,   // target: a pool; `fault` from now on
    kBudget,     // target: a PodDisruptionBudget of pods with label key=value; `count` may be
                 // unavailable, and its status allows `allowed` disruptions
    kQuota,      // target: a namespace, whose elastic quota has these amounts
  } verb = Verb::kCordon;
  std::string target, key, value;
  int count = 0;
  Duration time = std::chrono::seconds(3);
  PoolFault fault = PoolFault::kNone;
  int allowed = 0;
  cluster::StringMap min = {}, max = {};  // resources and amounts
};

struct ExpectPod {
  std::string pod, outcome;        // placed pending | running succeeded failed waiting gone
  std::vector<std::string> nodes;  // alternatives; empty: any
  std::string code;                // a reason that must be among those given
};
struct ExpectCount {
  // placed, pending, bound, created, destroyed, gpus-touched, "pool a100 nodes", ...
  std::string what;
  std::string op;  // = <= >=
  int count = 0;
};
struct ExpectedInstance {
  std::string profile;
  std::optional<int> start;
  std::string state;  // used free new; empty: any
};
using ExpectedLayout = std::vector<ExpectedInstance>;
struct ExpectGpu {
  std::string node;
  int gpu = 0;
  std::vector<ExpectedLayout> alternatives;
};
// No GPU of the node (of any node, when empty) is cut otherwise.
struct ExpectUnchanged {
  std::string node;
};

struct ExpectAnnotation {
  std::string node, key, value;  // empty: there is none
};

using Action = std::variant<AddPods, PlanNow, RunFor, Operate, ExpectPod, ExpectCount, ExpectGpu,
                            ExpectUnchanged, ExpectAnnotation>;
struct Step {
  int line = 0;
  std::string text;  // as written, for messages
  Action action;
};

struct Scenario {
  std::string source;  // file name, for messages
  uint64_t seed = 1;
  planning::PlanOptions options;
  std::vector<NodeSpec> nodes;
  std::vector<Step> steps;
  std::vector<PoolSpec> pools;
  std::optional<controllers::AutoscalerConfig> autoscaler;
};

// Error: kInvalid, "FILE:LINE: what was expected and what was found".
Result<Scenario> ParseScenario(std::string_view text, std::string_view source);

}  // namespace nos::sim
