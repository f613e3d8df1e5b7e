// Decides whether a pod could run, without planner, scheduler framework or snapshot: it tries every
// placement of its slices beside instances in use. It is deliberately simple, because it checks the
// others.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cluster/objects.h"
#include "gpu/occupancy.h"
#include "sim/world/node/machine.h"

namespace nos::sim {

struct CheckedNode {
  const cluster::Node* node = nullptr;
  const Machine* machine = nullptr;
  std::vector<const cluster::Pod*> bound;  // bound and not finished
  // True if devices of the node could serve the claims of all these pods at once; `empty` as in
  // CouldRun. Without it, no pod with claims could run.
  std::function<bool(const std::vector<const cluster::Pod*>& pods, bool empty)> serves_claims = {};
};

// True if the node's taints do not prevent scheduling of the pod.
bool ToleratesTaints(const cluster::Pod& pod, const cluster::Node& node);

// True if the node could run all the pods at once after repartitioning all free instances. `empty`:
// assumes that no other pod runs there. False for a node that is rebooting.
bool CouldRun(const std::vector<const cluster::Pod*>& pods, const CheckedNode& node, bool empty);
// True if the nodes in their current state could run the pods together.
bool CouldRunTogether(const std::vector<const cluster::Pod*>& pods,
                      const std::vector<CheckedNode>& nodes);

// True if the GPUs could hold these slices (resource names) beside their current content. `others`:
// the other model of each GPU while it is unused; null if it has none.
bool CanHold(const std::vector<std::string>& slices, const std::vector<gpu::Occupancy>& gpus,
             const std::vector<const gpu::Model*>& others);

}  // namespace nos::sim
