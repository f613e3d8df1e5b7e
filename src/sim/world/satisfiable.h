// Whether one pod could run, judged without planner, scheduler framework or snapshot: by trying
// every placement of its slices beside what is in use. Slow and plain on purpose: it is the judge.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cluster/objects.h"
#include "sim/world/machine.h"

namespace nos::sim {

struct Judged {
  const cluster::Node* node = nullptr;
  const Machine* machine = nullptr;
  std::vector<const cluster::Pod*> bound;  // and not finished
};

// Whether the node could run the pod if all free instances were cut anew. With `empty`, as if
// nothing ran there. A node that is rebooting cannot.
bool CouldRun(const cluster::Pod& pod, const Judged& node, bool empty);

}  // namespace nos::sim
