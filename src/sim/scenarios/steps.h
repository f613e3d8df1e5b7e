// A scenario in text form: a cluster, operations on it, and expectations. test/scenarios/README.md
// describes the format.
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
#include "planning/plan.h"
#include "sim/specs.h"
#include "sim/world/run/infrastructure.h"

namespace nos::sim {

// Creates pods, each `spec.arrival` after the step begins. `waiting`: how long they have already
// been pending (only before the first run).
struct AddPods {
  std::vector<PodSpec> pods;
  Duration waiting{};
};
// A dry run of the planner on the current state.
struct PlanNow {};
// Advances virtual time, with the controllers of production running.
struct RunFor {
  Duration time{};
};
// An operation on the cluster: "cordon n1", "delete pod a", "crash agent n1".
struct Operate {
  enum class Verb {
    kDeletePod,
    kDeleteNode,
    kDeleteQuota,
    kCordon,
    kUncordon,
    kReboot,
    kCrash,     // target: "partitioner", "scheduler", "autoscaler", "agent NODE"; down for `time`
    kAnnotate,  // target: node; key and value
    kLabel,     // target: node; key and value
    kFailCreate,
    kFailDestroy,
    kFailReset,  // target: node; the next `count` device operations fail
    kGroup,      // target: a PodGroup with minMember `count`
    kFailPool,   // target: a pool, which has `fault` from now on
    kBudget,     // target: a PodDisruptionBudget for pods with label key=value; maxUnavailable is
                 // `count`, and its status allows `allowed` disruptions
    kQuota,      // target: a namespace, or several ("a,b"); sets their quota to `min` and `max`
  } verb = Verb::kCordon;
  std::string target, key, value;
  int count = 0;
  Duration time = std::chrono::seconds(3);
  PoolFault fault = PoolFault::kNone;
  int allowed = 0;
  bool force = false;  // kDeletePod: remove the object at once, whatever the kubelet does
  cluster::StringMap min = {}, max = {};  // amounts by resource
};

// An operation on objects of resource.k8s.io: creates one, deletes it, or allocates a claim by
// hand.
struct OnClaims {
  enum class Verb { kPut, kDelete, kAllocate } verb = Verb::kPut;
  std::string kind = {};  // ResourceClaim, ResourceClaimTemplate, DeviceClass, DeviceTaintRule
  std::string name;
  Json spec;                         // kPut
  std::vector<std::string> devices;  // kAllocate: "node/device"
};

struct ExpectPod {
  // placed pending | running succeeded failed waiting starting gone
  std::string pod, outcome;
  std::vector<std::string> nodes;  // alternatives; empty: any
  std::string code;                // a reason code that must be among those reported
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
// No instance on the node (any node, if empty) was created or destroyed.
struct ExpectUnchanged {
  std::string node;
};

struct ExpectAnnotation {
  std::string node, key, value;  // `value` empty: the annotation is absent
};

// The claim of this name, or else all that were made for the pod of this name.
struct ExpectClaim {
  std::string claim, outcome;  // allocated pending gone device
  std::string node;            // of `allocated`; empty: any
  // Alternatives of `device`: the devices of all these claims, "node/device"; a '*' at the end
  // stands for any text.
  std::vector<std::vector<std::string>> alternatives;
};

using Action = std::variant<AddPods, PlanNow, RunFor, Operate, ExpectPod, ExpectCount, ExpectGpu,
                            ExpectUnchanged, ExpectAnnotation, OnClaims, ExpectClaim>;
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
  bool scheduler_partitions = false;  // the scheduler creates slices itself
  std::optional<controllers::AutoscalerConfig> autoscaler;
};

// Error: kInvalid, "FILE:LINE: what was expected and what was found".
Result<Scenario> ParseScenario(std::string_view text, std::string_view source);

}  // namespace nos::sim
