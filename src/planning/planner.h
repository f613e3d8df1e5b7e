// The partition planner. From the existing nodes and the pending pods it decides how to partition
// every GPU and where each pod runs, and explains why other pods stay pending.
//
//   Plan plan = MakePlan(snapshot, pending, frameworks, options);
//
// The whole batch is planned at once over all nodes. Used instances are never moved or destroyed.
// Free instances are destroyed only if that places a pod. The objectives, in this order:
// 1. priority: a lower-priority pod never takes the place of a higher one that could be served;
// 2. most pods, or most compute, or most memory served (Objective);
// 3. fewest instances destroyed and created, fewest GPUs and nodes touched;
// 4. least fragmentation left (gpu/fragmentation.h) for the current demand; pods without slices are
//    placed where the node loses least value (scheduling/packing/packer.h), as the scheduler does.
//
// A pod that has waited longer than `hold_after` is served first among pods of its priority.
// If it cannot be placed, slots are kept for it as they become free, where the fewest instances are
// in the way. Slots are kept for at most 32 pods at a time, and one for every four GPUs. Every
// further doubling of the wait ranks the pod before pods that have waited less. Before all of them
// go pods of the priority for which a scheduler has nominated a node: it has evicted others for
// them.
//
// For a gang, all pods that it lacks are placed, or none. No slots are kept for a pending gang. The
// lacking pods rank like the gang's most urgent pod (priority, then age). They are served before
// other pods of that priority and wait rank, unless serving them later serves more pods. The gang's
// other pods are handled as single pods.
//
// A search that ends early (out_of_time) returns the best plan found. Ties between plans are broken
// by names and ages, never by memory or hash order. docs/planner.md describes the algorithm.
//
// Pure: the same input gives the same plan, except for `out_of_time`.
#pragma once

#include <memory>
#include <span>

#include "cluster/snapshot.h"
#include "planning/plan.h"
#include "scheduling/framework_choice.h"

namespace nos::planning {

Plan MakePlan(const cluster::ClusterSnapshot& snapshot,
              std::span<const std::shared_ptr<const cluster::Pod>> pending,
              const scheduling::FrameworkChoice& frameworks, const PlanOptions& options);

}  // namespace nos::planning
