// Keeps GPUs for pods that wait until other pods have left them: a scheduler has nominated them to
// the node, and they are not planned for before there is room. Without this, younger pods would get
// new slices in the free part of such a GPU, and there would be no room when the others have left.
//
//   HoldAwaitedGpus(pods, admitted, covered, snapshot);
//   planning::Plan plan = planning::MakePlan(snapshot, admitted, frameworks, options);
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "cluster/snapshot.h"

namespace nos::controllers {

// Fixes the layout of each GPU that such a pod is to get on its nominated node, and counts the free
// instances there as used. Nothing is kept for a pod that has room now, or none even when pods that
// are being deleted have left; nor while a pod in `planned` that goes before it, or is nominated to
// the same node, could get slices there. Pods that min covers go before others, then those of
// higher priority. `pods`: all pods, `planned`: those that a plan is made for, `covered`: keys of
// pods that min covers. `snapshot` holds running pods and slice reservations.
void HoldAwaitedGpus(const std::vector<std::shared_ptr<const cluster::Pod>>& pods,
                     const std::vector<std::shared_ptr<const cluster::Pod>>& planned,
                     const std::set<std::string, std::less<>>& covered,
                     cluster::ClusterSnapshot& snapshot);

}  // namespace nos::controllers
