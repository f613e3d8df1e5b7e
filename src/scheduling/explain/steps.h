// What somebody would have to do so that a node takes a pod, for each reason that filters give, and
// what the cluster is then, as far as that can be tried.
//
//   for (const Step& step : StepsFor(reason, scene)) {
//     Say(step.text);
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

// Copies, in which steps are carried out.
struct Scene {
  cluster::ClusterSnapshot snapshot;
  cluster::Pod pod;    // waits
  std::string node;    // is in the snapshot
  std::string reader;  // of the texts (pod_names.h)
};

struct Step {
  std::string text;   // "uncordon node a"
  bool opens = true;  // once it is done, nothing of this reason is left; else: look there first
  std::function<void(Scene&)> carry_out = {};  // empty: nobody can try it
  friend bool operator==(const Step& a, const Step& b) { return a.text == b.text; }
};

// The scene's node gave the reason to its pod.
std::vector<Step> StepsFor(const Reason& reason, const Scene& scene);
// The reason is the same for all nodes: "" when nothing better is known than its message.
std::string StepForAll(const Reason& reason, const cluster::Pod& pod,
                       const cluster::ClusterSnapshot& snapshot);

// Its taints say that nothing can be run there for now, and the pod does not tolerate that.
bool IsOut(const cluster::Node& node, const cluster::Pod& pod);

}  // namespace nos::scheduling
