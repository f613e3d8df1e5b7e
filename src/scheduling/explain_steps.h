// What somebody would have to do so that a node takes a pod, for each reason that filters give.
//
//   for (const Step& step : StepsFor(reason, pod, node, snapshot)) Say(step.text);
//
// Pure functions.
#pragma once

#include <string>
#include <vector>

#include "scheduling/plugin.h"

namespace nos::scheduling {

struct Step {
  std::string text;   // "uncordon node a"
  bool opens = true;  // once it is done, nothing of this reason is left; else: look there first
  friend bool operator==(const Step&, const Step&) = default;
};

// `node` gave the reason to `pod`.
std::vector<Step> StepsFor(const Reason& reason, const cluster::Pod& pod,
                           const cluster::NodeInfo& node, const cluster::ClusterSnapshot& snapshot);
// The reason is the same for all nodes: "" when nothing better is known than its message.
std::string StepForAll(const Reason& reason, const cluster::Pod& pod,
                       const cluster::ClusterSnapshot& snapshot);

// Its taints say that nothing can be run there for now, and the pod does not tolerate that.
bool IsOut(const cluster::Node& node, const cluster::Pod& pod);

}  // namespace nos::scheduling
