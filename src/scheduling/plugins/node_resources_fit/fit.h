// Compares a pod's requests with the free resources of a node, for the plugin and for callers with
// their own resource vectors (cluster/resources.h).
//
//   for (const Shortfall& s : Shortfalls(cluster::RequestsOf(pod), node.allocatable,
//                                        node.requested, Mig::kIgnore)) ...
//
// Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "cluster/resources.h"
#include "cluster/snapshot.h"
#include "scheduling/reasons.h"

namespace nos::scheduling {

struct Shortfall {
  cluster::ResourceId resource = 0;
  int64_t requested = 0;    // by the pod
  int64_t used = 0;         // on the node
  int64_t allocatable = 0;  // of the node
  // Even the empty node has too little. Never set for GPU slices, since GPUs can be repartitioned,
  // nor for the number of pods, as in kube-scheduler.
  bool hopeless = false;
};

// Which GPU resources to check. A planner that partitions GPUs ignores slices, and on hybrid nodes
// also whole GPUs.
enum class Mig { kCount, kIgnore, kIgnoreWholeGpus };
// The value that such a planner uses for this node.
Mig MigOn(const cluster::NodeInfo& node);

// Sorted by resource id; empty if everything fits. A resource with a request of 0 is never short,
// even if the node is overcommitted.
std::vector<Shortfall> Shortfalls(const cluster::ResourceVector& requests,
                                  const cluster::ResourceVector& allocatable,
                                  const cluster::ResourceVector& used, Mig mig = Mig::kCount);
// True if there is no shortfall. Does not allocate memory.
bool Fits(const cluster::ResourceVector& requests, const cluster::ResourceVector& allocatable,
          const cluster::ResourceVector& used, Mig mig = Mig::kCount);

// The resource is whole GPUs, and the node has more of them than count as allocatable because nos
// may partition the others (cluster/snapshot.h).
bool IsKeptForMig(cluster::ResourceId resource, const cluster::NodeInfo& node);
Reason ReasonOf(const Shortfall& shortfall, const cluster::NodeInfo& node);

}  // namespace nos::scheduling
