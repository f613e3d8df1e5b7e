// Steps that an administrator can take so that a node accepts a pod, for each reason that filters
// return, with the simulated effect on the cluster if possible.
//
//   for (const Step& step : StepsFor(reason, scene)) {
//     Print(step.text);
//     if (step.carry_out) step.carry_out(scene);
//   }
//
// Pure functions.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "scheduling/plugin.h"

namespace nos::scheduling {

// Copies on which steps are simulated.
struct Scene {
  cluster::ClusterSnapshot snapshot;
  cluster::Pod pod;    // pending
  std::string node;    // in the snapshot
  std::string reader;  // namespace of the readers of the texts (pod_names.h)
};

struct Step {
  std::string text;   // "uncordon node a"
  bool opens = true;  // true: the step resolves the reason; false: it only says what to inspect
  std::function<void(Scene&)> carry_out = {};  // empty: cannot be simulated
  friend bool operator==(const Step& a, const Step& b) { return a.text == b.text; }
};

// REQUIRES: the scene's node gave this reason to its pod.
std::vector<Step> StepsFor(const Reason& reason, const Scene& scene);
// For a reason that is the same on all nodes. "": no better advice than the reason's message.
std::string StepForAll(const Reason& reason, const cluster::Pod& pod,
                       const cluster::ClusterSnapshot& snapshot);

// The node has taints that the pod does not tolerate and that say the node cannot run pods for now.
bool IsOut(const cluster::Node& node, const cluster::Pod& pod);

}  // namespace nos::scheduling
