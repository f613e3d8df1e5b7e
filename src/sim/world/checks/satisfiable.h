// Whether one pod could run, judged without planner, scheduler framework or snapshot: by trying
// every placement of its slices beside what is in use. Plain on purpose: it is the judge.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cluster/objects.h"
#include "gpu/occupancy.h"
#include "sim/world/node/machine.h"

namespace nos::sim {

struct Judged {
  const cluster::Node* node = nullptr;
  const Machine* machine = nullptr;
  std::vector<const cluster::Pod*> bound;  // and not finished
};

// Its taints do not keep the pod from being scheduled to the node.
bool ToleratesTaints(const cluster::Pod& pod, const cluster::Node& node);

// Whether the node could run the pods, all at once, if all free instances were cut anew. With
// `empty`, as if nothing ran there. A node that is rebooting cannot.
bool CouldRun(const std::vector<const cluster::Pod*>& pods, const Judged& node, bool empty);
// Whether the nodes could together, as they are.
bool CouldRunTogether(const std::vector<const cluster::Pod*>& pods,
                      const std::vector<Judged>& nodes);

// Whether GPUs could hold these slices, by resource name, beside what they hold. `others`: what
// each may be instead while nothing is on it; null: nothing.
bool CanHold(const std::vector<std::string>& slices, const std::vector<gpu::Occupancy>& gpus,
             const std::vector<const gpu::Model*>& others);

}  // namespace nos::sim
